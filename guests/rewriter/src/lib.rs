//! Sets, removes and renames user headers.

use std::collections::BTreeMap;

use serde::Deserialize;
use sluice_guest::{Config, Guest, Inputs, Message, Rewrite, Source, Verdict};

/// The `config` table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Keys to rename, and their new names.
    #[serde(default)]
    rename: BTreeMap<String, String>,
    /// Keys to remove.
    #[serde(default)]
    remove: Vec<String>,
    /// Text values by key.
    #[serde(default)]
    set: BTreeMap<String, String>,
}

/// The rewriter. Its one verdict is made once.
#[derive(Debug)]
pub struct Rewriter(Verdict);

impl Guest for Rewriter {
    const INPUTS: Inputs = Inputs::NONE;

    fn start(_source: &Source, config: &Config) -> Result<Self, String> {
        let settings: Settings = config.parse()?;
        let mut rewrite = Rewrite::new();
        for (from, to) in &settings.rename {
            check("rename", [from, to])?;
            rewrite = rewrite.rename(from, to);
        }
        for key in &settings.remove {
            check("remove", [key])?;
            rewrite = rewrite.remove(key);
        }
        for (key, value) in &settings.set {
            check("set", [key, value])?;
            rewrite = rewrite.set(key, value);
        }
        Ok(Self(rewrite.into()))
    }

    fn handle(&mut self, _message: &Message<'_>) -> Verdict {
        self.0.clone()
    }
}

/// Refuses what Iggy cannot carry as the key or the value of a header.
fn check<const N: usize>(table: &str, fields: [&String; N]) -> Result<(), String> {
    match fields
        .iter()
        .find(|field| !(1..=255).contains(&field.len()))
    {
        None => Ok(()),
        Some(field) => Err(format!(
            "config.{table}.{}: `{field}` has {} bytes; header keys and values have 1 to 255",
            fields[0],
            field.len()
        )),
    }
}

sluice_guest::export!(Rewriter);

#[cfg(test)]
mod tests {
    use sluice_guest::testing::{TestMessage, source};

    use super::*;

    #[test]
    fn renames_then_removes_then_sets() {
        let config = r#"{"set":{"origin":"eu"},"remove":["debug"],"rename":{"src":"service"}}"#;
        let mut rewriter =
            Rewriter::start(&source(), &Config::new(config)).expect("a valid configuration");
        let expected = Rewrite::new()
            .rename("src", "service")
            .remove("debug")
            .set("origin", "eu");
        assert_eq!(
            rewriter.handle(&TestMessage::new("").as_message()),
            expected.into()
        );
    }

    #[test]
    fn a_value_that_iggy_cannot_carry_is_refused_at_the_start() {
        let error = Rewriter::start(&source(), &Config::new(r#"{"set":{"origin":""}}"#))
            .expect_err("refused");
        assert!(error.starts_with("config.set.origin: "), "{error}");
        assert!(error.contains("0 bytes"), "{error}");
    }
}
