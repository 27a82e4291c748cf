//! Keeps the messages whose header `region` is the configured one.

use serde::Deserialize;
use sluice_guest::{Config, Guest, Inputs, Message, Source, Verdict};

/// The `config` table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Keep {
    keep: String,
}

impl Guest for Keep {
    const INPUTS: Inputs = Inputs::HEADERS;

    fn start(_source: &Source, config: &Config) -> Result<Self, String> {
        config.parse()
    }

    fn handle(&mut self, message: &Message<'_>) -> Verdict {
        match message.header("region").and_then(|value| value.as_str()) {
            Some(region) if region == self.keep => Verdict::Forward,
            _ => Verdict::Drop,
        }
    }
}

sluice_guest::export!(Keep);

#[cfg(test)]
mod tests {
    use sluice_guest::testing::{TestMessage, source};

    use super::*;

    #[test]
    fn one_region_is_kept() {
        let config = Config::new(r#"{"keep": "eu"}"#);
        let mut guest = Keep::start(&source(), &config).expect("it starts");
        let with = |region: &str| TestMessage::new("").header("region", region);
        assert_eq!(guest.handle(&with("eu").as_message()), Verdict::Forward);
        assert_eq!(guest.handle(&with("us").as_message()), Verdict::Drop);
        assert_eq!(guest.handle(&TestMessage::new("").as_message()), Verdict::Drop);
    }

    #[test]
    fn a_wrong_key_is_named() {
        let error = Keep::start(&source(), &Config::new(r#"{"kep": "eu"}"#)).expect_err("refused");
        assert!(error.contains("unknown field `kep`"), "{error}");
    }
}
