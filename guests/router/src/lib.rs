//! Sends each message where the value of a header says.

use std::collections::HashMap;

use serde::Deserialize;
use sluice_guest::{Config, Guest, Inputs, Message, Route, Source, Verdict};

/// The `config` table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Key of the header, which holds text.
    header: String,
    /// Destinations by value.
    routes: HashMap<String, Destination>,
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

impl From<Destination> for Verdict {
    fn from(destination: Destination) -> Self {
        let mut route = Route::default();
        if let Some(stream) = destination.stream {
            route = route.in_stream(stream);
        }
        if let Some(topic) = destination.topic {
            route = route.in_topic(topic);
        }
        if let Some(partition) = destination.partition {
            route = route.in_partition(partition);
        }
        Self::route(route)
    }
}

/// The router. Its verdicts are made once.
#[derive(Debug)]
pub struct Router {
    header: String,
    routes: HashMap<String, Verdict>,
    otherwise: Verdict,
}

impl Guest for Router {
    const INPUTS: Inputs = Inputs::HEADERS;

    fn start(_source: &Source, config: &Config) -> Result<Self, String> {
        let settings: Settings = config.parse()?;
        let routes = settings.routes.into_iter();
        Ok(Self {
            routes: routes.map(|(value, to)| (value, to.into())).collect(),
            otherwise: match settings.otherwise {
                Otherwise::Forward => Verdict::Forward,
                Otherwise::Drop => Verdict::Drop,
                Otherwise::Reject => {
                    Verdict::reject(format!("no route for its header {}", settings.header))
                }
            },
            header: settings.header,
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
}
