//! A guest's configuration.

use serde::de::DeserializeOwned;

/// The `config` table that the operator wrote for this guest.
#[derive(Debug, Clone)]
pub struct Config {
    json: String,
}

impl Config {
    /// A configuration from JSON text; `{}` is an empty one.
    pub fn new(json: impl Into<String>) -> Self {
        Self { json: json.into() }
    }

    /// The table as JSON text.
    pub fn as_json(&self) -> &str {
        &self.json
    }

    /// The table as a type of the guest's own. With `#[serde(deny_unknown_fields)]` a misspelt key is an error.
    ///
    /// # Errors
    /// A text for the operator that names the key.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, String> {
        let mut reader = serde_json::Deserializer::from_str(&self.json);
        serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let reason = error.inner().to_string();
            // The operator wrote a table, not this JSON text: places in it say nothing.
            let reason = match reason.rsplit_once(" at line ") {
                Some((reason, _)) => reason,
                None => &reason,
            };
            let path = error.path();
            if path.iter().next().is_none() {
                format!("config: {reason}")
            } else {
                format!("config.{path}: {reason}")
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Settings {
        limit: u8,
        #[serde(default)]
        #[expect(dead_code, reason = "only parsed")]
        names: BTreeMap<String, Vec<String>>,
    }

    fn error(json: &str) -> String {
        Config::new(json).parse::<Settings>().expect_err("refused")
    }

    #[test]
    fn every_error_names_the_key() {
        assert_eq!(error("{}"), "config: missing field `limit`");
        assert_eq!(
            error(r#"{"limit":300}"#),
            "config.limit: invalid value: integer `300`, expected u8"
        );
        assert_eq!(
            error(r#"{"limit":1,"names":{"a":["x",2]}}"#),
            "config.names.a[1]: invalid type: integer `2`, expected a string"
        );
        let misspelt = error(r#"{"limt":1}"#);
        assert!(misspelt.contains("unknown field `limt`"), "{misspelt}");
    }

    #[test]
    fn a_valid_table_is_read() {
        let settings: Settings = Config::new(r#"{"limit":3}"#).parse().expect("valid");
        assert_eq!(settings.limit, 3);
    }
}
