use proptest::prelude::*;
use serde_json::{Map, Value};
use sluice_guest::testing::{TestMessage, payload_of, source};

use super::*;

fn verdict(config: &str, payload: impl Into<Vec<u8>>) -> Verdict {
    let mut redact = Redact::start(&source(), &Config::new(config)).expect("a valid configuration");
    redact.handle(&TestMessage::new(payload).as_message())
}

fn redacted(config: &str, payload: &str) -> String {
    match verdict(config, payload) {
        Verdict::Rewrite(rewrite) => {
            let payload = payload_of(&rewrite).expect("a new payload");
            String::from_utf8(payload.to_vec()).expect("text")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn fields_are_replaced_and_every_other_byte_stays() {
    let config = r#"{"fields":["card","customer.email"]}"#;
    assert_eq!(
        redacted(
            config,
            r#" { "card" : 4111, "n":1.10, "customer":{"email" :"a@b.c","name":"x"},"big":123456789012345678901 } "#
        ),
        r#" { "card" : "[redacted]", "n":1.10, "customer":{"email" :"[redacted]","name":"x"},"big":123456789012345678901 } "#
    );
}

#[test]
fn arrays_are_looked_through_and_whole_values_replaced() {
    let config = r#"{"fields":["people.email","notes"],"with":null}"#;
    assert_eq!(
        redacted(
            config,
            r#"{"people":[{"email":"a","id":1},[{"email":["b",{"c":"}"}]}],"email"],"notes":{"email":"\"]}"}}"#
        ),
        r#"{"people":[{"email":null,"id":1},[{"email":null}],"email"],"notes":null}"#
    );
    assert_eq!(
        redacted(r#"{"fields":["a"],"with":0}"#, r#"[{"a":1},{"a":2}]"#),
        r#"[{"a":0},{"a":0}]"#
    );
}

#[test]
fn a_key_cannot_hide_behind_an_escape_or_a_repetition() {
    let config = r#"{"fields":["email"],"with":"x"}"#;
    assert_eq!(
        redacted(config, r#"{"\u0065mail":"a","email":"b","email":"c"}"#),
        r#"{"\u0065mail":"x","email":"x","email":"x"}"#
    );
}

#[test]
fn a_path_of_keys_may_hold_dots() {
    assert_eq!(
        redacted(
            r#"{"fields":[["a.b","c"]],"with":1}"#,
            r#"{"a.b":{"c":0},"a":{"b":{"c":0}}}"#
        ),
        r#"{"a.b":{"c":1},"a":{"b":{"c":0}}}"#
    );
}

#[test]
fn a_payload_without_the_fields_is_forwarded_as_it_is() {
    let config = r#"{"fields":["customer.email"]}"#;
    for payload in [
        r#"{"email":"a","customer":"email"}"#,
        r#"{"customer":{"name":{"email":"a"}}}"#,
        "[]",
        "{}",
        "\"customer\"",
        "1",
    ] {
        assert_eq!(verdict(config, payload), Verdict::Forward, "{payload}");
    }
}

#[test]
fn what_is_not_json_is_rejected_or_passes() {
    let reject = r#"{"fields":["a"]}"#;
    for payload in [
        &b"plain"[..],
        b"",
        b"{\"a\":1",
        b"{\"a\":1} {}",
        b"\"\xff\"",
    ] {
        let Verdict::Reject(reason) = verdict(reject, payload) else {
            panic!("{payload:?} is not rejected");
        };
        assert!(reason.starts_with("the payload is not JSON: "), "{reason}");
    }
    let pass = r#"{"fields":["a"],"not_json":"pass"}"#;
    assert_eq!(verdict(pass, "plain"), Verdict::Forward);
}

#[test]
fn absurdly_nested_arrays_are_rejected() {
    let payload = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let Verdict::Reject(reason) = verdict(r#"{"fields":["a"]}"#, payload) else {
        panic!("not rejected");
    };
    assert!(reason.contains("nested deeper"), "{reason}");
}

#[test]
fn errors_name_the_key() {
    let error = |config: &str| Redact::start(&source(), &Config::new(config)).expect_err("refused");
    assert_eq!(error(r#"{"fields":[]}"#), "config.fields: names no field");
    assert_eq!(
        error(r#"{"fields":["a","b..c"]}"#),
        "config.fields[1]: a path holds at least one key, and no empty one"
    );
    assert!(error(r#"{"fields":[1]}"#).starts_with("config.fields"));
    assert!(error(r#"{"feilds":["a"]}"#).contains("feilds"));
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a\"\\\\{}\\[\\],: é]{0,5}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[ab\"]{1,2}", inner, 0..4)
                .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

/// What redaction of the path `keys` means, said over values.
fn expected(value: Value, keys: &[&str]) -> Value {
    match value {
        Value::Array(elements) => elements
            .into_iter()
            .map(|element| expected(element, keys))
            .collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(key, member)| {
                let changed = match keys {
                    [last] if key == *last => "x".into(),
                    [first, rest @ ..] if key == *first => expected(member, rest),
                    _ => member,
                };
                (key, changed)
            })
            .collect(),
        other => other,
    }
}

proptest! {
    #[test]
    fn any_json_is_redacted_as_its_values_say(value in json(), pretty: bool) {
        let payload = if pretty {
            serde_json::to_string_pretty(&value).expect("text")
        } else {
            value.to_string()
        };
        let config = r#"{"fields":["a.b","b","a.a.a"],"with":"x"}"#;
        let result = match verdict(config, payload.as_str()) {
            Verdict::Forward => value.clone(),
            Verdict::Rewrite(rewrite) => {
                serde_json::from_slice(payload_of(&rewrite).expect("a payload")).expect("JSON")
            }
            other => panic!("{other:?}"),
        };
        let mut wanted = value;
        for path in [&["b"][..], &["a", "b"], &["a", "a", "a"]] {
            wanted = expected(wanted, path);
        }
        prop_assert_eq!(result, wanted);
    }
}
