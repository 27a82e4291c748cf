//! Keeps the messages whose header has one of the listed values; drops the rest.

use serde::Deserialize;
use sluice_guest::{Config, Guest, Inputs, Message, Source, Verdict};

/// The `config` table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Key of the header, which holds text.
    header: String,
    /// Values to keep.
    keep: Vec<String>,
    /// Whether messages without the header are kept.
    #[serde(default)]
    keep_missing: bool,
}

/// The filter.
#[derive(Debug)]
pub struct Filter(Settings);

impl Guest for Filter {
    const INPUTS: Inputs = Inputs::HEADERS;

    fn start(_source: &Source, config: &Config) -> Result<Self, String> {
        config.parse().map(Self)
    }

    fn handle(&mut self, message: &Message<'_>) -> Verdict {
        let Self(settings) = self;
        let keep = match message
            .header(&settings.header)
            .and_then(|value| value.as_str())
        {
            Some(value) => settings.keep.iter().any(|kept| kept == value),
            None => settings.keep_missing,
        };
        if keep {
            Verdict::Forward
        } else {
            Verdict::Drop
        }
    }
}

sluice_guest::export!(Filter);

#[cfg(test)]
mod tests {
    use sluice_guest::testing::{TestMessage, source};

    use super::*;

    fn filter(config: &str) -> Filter {
        Filter::start(&source(), &Config::new(config)).expect("a valid configuration")
    }

    #[test]
    fn keeps_the_listed_values_alone() {
        let mut filter = filter(r#"{"header":"region","keep":["eu","us"]}"#);
        let mut verdict = |region: &str| {
            filter.handle(&TestMessage::new("").header("region", region).as_message())
        };
        assert_eq!(verdict("eu"), Verdict::Forward);
        assert_eq!(verdict("test"), Verdict::Drop);
    }

    #[test]
    fn a_message_without_the_header_is_dropped_unless_the_config_says_so() {
        let message = TestMessage::new("").header("other", "eu");
        let mut strict = filter(r#"{"header":"region","keep":["eu"]}"#);
        assert_eq!(strict.handle(&message.as_message()), Verdict::Drop);
        let mut lenient = filter(r#"{"header":"region","keep":["eu"],"keep_missing":true}"#);
        assert_eq!(lenient.handle(&message.as_message()), Verdict::Forward);
    }

    #[test]
    fn a_misspelt_key_is_named() {
        let error = Filter::start(&source(), &Config::new(r#"{"heder":"region","keep":[]}"#))
            .expect_err("refused");
        assert!(error.contains("heder"), "{error}");
    }
}
