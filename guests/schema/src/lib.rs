//! Checks JSON payloads against a schema; rejects those that break it, naming the field.

mod kind;

use std::collections::BTreeMap;

use kind::{Kind, Kinds};
use serde::Deserialize;
use serde_json::Value;
use sluice_guest::{Config, Guest, Inputs, Message, Source, Verdict};

/// The `config` table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Kinds by the path of a field that must be there.
    #[serde(default)]
    required: BTreeMap<String, Kinds>,
    /// Kinds by the path of a field that may be missing.
    #[serde(default)]
    optional: BTreeMap<String, Kinds>,
}

/// A field of the schema.
#[derive(Debug)]
struct Field {
    keys: Vec<String>,
    kinds: Kinds,
    required: bool,
}

/// The checker.
#[derive(Debug)]
pub struct Schema(Vec<Field>);

impl Guest for Schema {
    const INPUTS: Inputs = Inputs::PAYLOADS;

    fn start(_source: &Source, config: &Config) -> Result<Self, String> {
        let settings: Settings = config.parse()?;
        let mut fields = Vec::new();
        for (table, entries, required) in [
            ("required", settings.required, true),
            ("optional", settings.optional, false),
        ] {
            for (path, kinds) in entries {
                fields.push(field(table, &path, kinds, required)?);
            }
        }
        if fields.is_empty() {
            return Err("config: names no field: give required, optional or both".to_owned());
        }
        Ok(Self(fields))
    }

    fn handle(&mut self, message: &Message<'_>) -> Verdict {
        let value: Value = match serde_json::from_slice(message.payload()) {
            Ok(value) => value,
            Err(error) => return Verdict::reject(format!("the payload is not JSON: {error}")),
        };
        let mut fields = self.0.iter();
        let checked =
            fields.try_for_each(|field| check(&value, &field.keys, field, &mut Vec::new()));
        match checked {
            Ok(()) => Verdict::Forward,
            Err(reason) => Verdict::reject(reason),
        }
    }
}

fn field(table: &str, path: &str, kinds: Kinds, required: bool) -> Result<Field, String> {
    let keys: Vec<String> = path.split('.').map(str::to_owned).collect();
    if keys.iter().any(String::is_empty) {
        return Err(format!("config.{table}.{path:?}: holds an empty key"));
    }
    if kinds.is_empty() {
        return Err(format!("config.{table}.{path:?}: names no kind"));
    }
    Ok(Field {
        keys,
        kinds,
        required,
    })
}

/// A step from a value to one inside it.
#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

/// Checks what `keys` lead to from `value`, which is at `place`.
fn check<'a>(
    value: &Value,
    keys: &'a [String],
    field: &Field,
    place: &mut Vec<Step<'a>>,
) -> Result<(), String> {
    let Some((key, rest)) = keys.split_first() else {
        return if field.kinds.accept(value) {
            Ok(())
        } else {
            let (found, kinds) = (Kind::of(value), &field.kinds);
            Err(format!("{}: is {found}, not {kinds}", text(place)))
        };
    };
    match value {
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                place.push(Step::Index(index));
                check(element, keys, field, place)?;
                place.pop();
            }
            Ok(())
        }
        Value::Object(members) => {
            place.push(Step::Key(key));
            match members.get(key) {
                Some(member) => check(member, rest, field, place)?,
                None if field.required => return Err(format!("{}: is missing", text(place))),
                None => {}
            }
            place.pop();
            Ok(())
        }
        _ if !field.required => Ok(()),
        other => {
            let found = Kind::of(other);
            Err(format!(
                "{}: is {found}, not an object with {key}",
                text(place)
            ))
        }
    }
}

/// A place as operators read it: `items[1].sku`.
fn text(place: &[Step<'_>]) -> String {
    if place.is_empty() {
        return "the payload".to_owned();
    }
    let mut text = String::new();
    for step in place {
        match step {
            Step::Index(index) => text.extend(["[", &index.to_string(), "]"]),
            Step::Key(key) if text.is_empty() => text.push_str(key),
            Step::Key(key) => text.extend([".", key]),
        }
    }
    text
}

sluice_guest::export!(Schema);

#[cfg(test)]
mod tests {
    use sluice_guest::testing::{TestMessage, source};

    use super::*;

    fn schema(config: &str) -> Schema {
        Schema::start(&source(), &Config::new(config)).expect("a valid configuration")
    }

    fn reason(config: &str, payload: &str) -> Option<String> {
        match schema(config).handle(&TestMessage::new(payload).as_message()) {
            Verdict::Forward => None,
            Verdict::Reject(reason) => Some(reason.to_string()),
            other => panic!("{other:?}"),
        }
    }

    const ORDER: &str = r#"{
        "required":{"id":"integer","customer.email":"string","items.sku":["string","null"]},
        "optional":{"customer.age":"number","paid":"boolean"}}"#;

    #[test]
    fn a_payload_of_the_schema_passes() {
        for payload in [
            r#"{"id":1,"customer":{"email":"a","age":1.5},"items":[{"sku":"a"},{"sku":null}],"paid":true}"#,
            r#"{"id":2.0,"customer":{"email":""},"items":[],"more":{}}"#,
        ] {
            assert_eq!(reason(ORDER, payload), None, "{payload}");
        }
    }

    #[test]
    fn the_reason_names_the_field() {
        for (payload, expected) in [
            (r#"{"customer":{"email":"a"},"items":[]}"#, "id: is missing"),
            (
                r#"{"id":"1","customer":{"email":"a"},"items":[]}"#,
                "id: is a string, not an integer",
            ),
            (
                r#"{"id":1.5,"customer":{"email":"a"},"items":[]}"#,
                "id: is a number, not an integer",
            ),
            (
                r#"{"id":1,"customer":{},"items":[]}"#,
                "customer.email: is missing",
            ),
            (
                r#"{"id":1,"customer":"a","items":[]}"#,
                "customer: is a string, not an object with email",
            ),
            (
                r#"{"id":1,"customer":{"email":"a"},"items":[{"sku":"a"},{"sku":7}]}"#,
                "items[1].sku: is an integer, not a string or null",
            ),
            (
                r#"{"id":1,"customer":{"email":"a","age":"x"},"items":[]}"#,
                "customer.age: is a string, not a number",
            ),
            (
                "7",
                "the payload: is an integer, not an object with customer",
            ),
        ] {
            assert_eq!(
                reason(ORDER, payload).as_deref(),
                Some(expected),
                "{payload}"
            );
        }
    }

    #[test]
    fn what_is_not_json_is_rejected() {
        let deep = "[".repeat(100_000);
        for payload in ["", "plain", "{}{}", &deep] {
            let reason = reason(ORDER, payload).expect("rejected");
            assert!(reason.starts_with("the payload is not JSON: "), "{reason}");
        }
    }

    #[test]
    fn errors_name_the_key() {
        let error =
            |config: &str| Schema::start(&source(), &Config::new(config)).expect_err("refused");
        assert!(error("{}").starts_with("config: names no field"));
        assert!(error(r#"{"required":{"a..b":"any"}}"#).contains("empty key"));
        assert!(error(r#"{"required":{"a":[]}}"#).contains("names no kind"));
        let unknown = error(r#"{"optional":{"a":"text"}}"#);
        assert!(unknown.starts_with("config.optional.a: "), "{unknown}");
        assert!(error(r#"{"require":{}}"#).contains("require"));
    }
}
