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
        serde_json::from_str(&self.json).map_err(|error| format!("config: {error}"))
    }
}
