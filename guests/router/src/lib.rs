//! Sends each message where the value of a header says.

use std::collections::BTreeMap;

use serde::Deserialize;
use sluice_guest::{Config, Guest, Inputs, Message, Route, Source, Verdict};

/// The `config` table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Key of the header, which holds text.
    header: String,
    /// Destinations by value.
    routes: BTreeMap<String, Destination>,
    /// What becomes of the other messages.
    #[serde(default)]
    otherwise: Otherwise,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Otherwise {
    /// They go where the link sends them.
    #[default]
    Forward,
    /// They are dropped.
    Drop,
    /// They are rejected.
    Reject,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Destination {
    stream: Option<String>,
    topic: Option<String>,
    partition: Option<u32>,
}

impl Destination {
    /// The verdict that sends messages there; `key` is where the config has it.
    fn verdict(self, key: &str) -> Result<Verdict, String> {
        if self.stream.is_none() && self.topic.is_none() && self.partition.is_none() {
            return Err(format!(
                "{key}: names no destination: give a stream, a topic or a partition"
            ));
        }
        let mut route = Route::default();
        if let Some(stream) = self.stream {
            route = route.in_stream(checked(stream, &format!("{key}.stream"))?);
        }
        if let Some(topic) = self.topic {
            route = route.in_topic(checked(topic, &format!("{key}.topic"))?);
        }
        if let Some(partition) = self.partition {
            route = route.in_partition(partition);
        }
        Ok(Verdict::route(route))
    }
}

/// A name that Iggy can carry.
fn checked(name: String, key: &str) -> Result<String, String> {
    match name.len() {
        1..=255 => Ok(name),
        length => Err(format!("{key}: has {length} bytes; names have 1 to 255")),
    }
}

/// The router. Its verdicts are made once.
#[derive(Debug)]
pub struct Router {
    header: String,
    routes: BTreeMap<String, Verdict>,
    otherwise: Verdict,
}

impl Guest for Router {
    const INPUTS: Inputs = Inputs::HEADERS;

    fn start(_source: &Source, config: &Config) -> Result<Self, String> {
        let settings: Settings = config.parse()?;
        let header = checked(settings.header, "config.header")?;
        let mut routes = BTreeMap::new();
        for (value, destination) in settings.routes {
            let verdict = destination.verdict(&format!("config.routes.{value}"))?;
            routes.insert(value, verdict);
        }
        Ok(Self {
            routes,
            otherwise: match settings.otherwise {
                Otherwise::Forward => Verdict::Forward,
                Otherwise::Drop => Verdict::Drop,
                Otherwise::Reject => Verdict::reject(format!("no route for its header {header}")),
            },
            header,
        })
    }

    fn handle(&mut self, message: &Message<'_>) -> Verdict {
        message
            .header(&self.header)
            .and_then(|value| self.routes.get(value.as_str()?))
            .unwrap_or(&self.otherwise)
            .clone()
    }
}

sluice_guest::export!(Router);

#[cfg(test)]
mod tests {
    use sluice_guest::testing::{TestMessage, source};

    use super::*;

    fn verdict(config: &str, kind: &str) -> Verdict {
        let mut router =
            Router::start(&source(), &Config::new(config)).expect("a valid configuration");
        router.handle(&TestMessage::new("").header("type", kind).as_message())
    }

    #[test]
    fn the_value_chooses_the_destination() {
        let config = r#"{"header":"type","routes":{
            "order":{"topic":"orders"},
            "refund":{"stream":"finance","topic":"refunds","partition":3}}}"#;
        assert_eq!(
            verdict(config, "order"),
            Verdict::route(Route::topic("orders"))
        );
        let refunds = Route::stream("finance").in_topic("refunds").in_partition(3);
        assert_eq!(verdict(config, "refund"), Verdict::route(refunds));
        assert_eq!(verdict(config, "visit"), Verdict::Forward);
    }

    #[test]
    fn other_values_can_be_dropped_or_rejected() {
        let drop = r#"{"header":"type","routes":{},"otherwise":"drop"}"#;
        assert_eq!(verdict(drop, "visit"), Verdict::Drop);
        let reject = r#"{"header":"type","routes":{},"otherwise":"reject"}"#;
        assert_eq!(
            verdict(reject, "visit"),
            Verdict::reject("no route for its header type")
        );
    }

    #[test]
    fn errors_name_the_key() {
        let error =
            |config: &str| Router::start(&source(), &Config::new(config)).expect_err("refused");
        assert_eq!(
            error(r#"{"header":"type","routes":{"order":{}}}"#),
            "config.routes.order: names no destination: give a stream, a topic or a partition"
        );
        assert_eq!(
            error(r#"{"header":"type","routes":{"order":{"topic":""}}}"#),
            "config.routes.order.topic: has 0 bytes; names have 1 to 255"
        );
        let misspelt = error(r#"{"header":"type","routes":{"order":{"topik":"a"}}}"#);
        assert!(
            misspelt.contains("config.routes.order") && misspelt.contains("topik"),
            "{misspelt}"
        );
    }
}
