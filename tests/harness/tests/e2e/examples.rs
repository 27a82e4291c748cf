//! The example guests of `guests/`, each over messages that show what it does. `guests` has filter, router and
//! rewriter.

use std::path::PathBuf;

use anyhow::{Context, Result};
use sluice_harness::{Message, Setup, guest, header, headers};

/// What a guest is given, and how it is configured.
struct Example {
    setup: Setup,
    sent: Vec<Message>,
    component: PathBuf,
    config: String,
}

impl Example {
    /// A topic `t` with these payloads, and a link over it with one guest, `keys` in its section.
    async fn new(name: &str, keys: &str, payloads: &[&str]) -> Result<Self> {
        let messages = payloads.iter().zip(1_u128..);
        let sent = messages.map(|(payload, id)| Message::new(id, (*payload).to_owned()));
        Self::with(name, keys, sent.collect()).await
    }

    async fn with(name: &str, keys: &str, sent: Vec<Message>) -> Result<Self> {
        let setup = Setup::new().await?;
        setup.topic("t", 1).await?;
        setup.produce("t", 0, &sent).await?;
        let component = guest(name)?;
        let section = format!(
            "[guests.g]\ncomponent = \"{}\"\n{keys}\n",
            component.display()
        );
        let config = setup.config(r#"guests = ["g"]"#, &section)?;
        Ok(Self {
            setup,
            sent,
            component,
            config,
        })
    }

    /// Runs sluice until each of these topics holds its messages, the dead letters too, and returns the totals:
    /// forwarded, dropped, dead-lettered.
    async fn run(&self, topics: &[(&str, usize)]) -> Result<(u64, u64, u64)> {
        let sluice = self.setup.run(&self.config)?;
        for (topic, count) in topics {
            self.setup.arrived(topic, 0, *count).await?;
        }
        Ok(sluice.stop().await?.settled())
    }

    /// As [`Example::run`], with a second link in the same process whose guest is the same component with `keys`, and
    /// which must end with `text`. The code of an interpreter takes many seconds to compile; this does it once.
    async fn run_beside_refused(
        &self,
        topics: &[(&str, usize)],
        keys: &str,
        text: &str,
    ) -> Result<(u64, u64, u64)> {
        let second = format!(
            r#"
[guests.refused]
component = "{}"
{keys}
[[links]]
name = "refused"
source = {{ cluster = "eu", streams = [{:?}] }}
destination = {{ cluster = "us", topic = "refused.{{topic}}" }}
guests = ["refused"]
"#,
            self.component.display(),
            self.setup.stream
        );
        let mut sluice = self.setup.run(&format!("{}{second}", self.config))?;
        for (topic, count) in topics {
            self.setup.arrived(topic, 0, *count).await?;
        }
        sluice.logged(text).await?;
        sluice.signal("TERM").await?;
        let (code, report, log) = sluice.end().await?;
        assert_eq!(code, Some(3), "{log}");
        Ok(report
            .with_context(|| format!("no report:\n{log}"))?
            .settled())
    }

    /// The payloads of a topic at the destination.
    async fn payloads(&self, topic: &str) -> Result<Vec<String>> {
        let delivered = self.setup.delivered(topic, 0).await?;
        let payloads = delivered.into_iter();
        Ok(payloads
            .map(|message| String::from_utf8_lossy(&message.payload).into_owned())
            .collect())
    }

    /// The reasons of the dead letters.
    async fn reasons(&self) -> Result<Vec<String>> {
        let letters = self.setup.dead_letters().await?;
        let reasons = letters.iter();
        Ok(reasons
            .map(|letter| header(letter, "sluice-reason").unwrap_or_default())
            .collect())
    }
}

/// A guest that refuses its configuration ends sluice with 3 and its own text.
async fn refused(name: &str, keys: &str, text: &str) -> Result<()> {
    let example = Example::new(name, keys, &[]).await?;
    let (code, _, log) = example.setup.run(&example.config)?.end().await?;
    assert_eq!(code, Some(3), "{log}");
    assert!(log.contains(text), "{text:?} is missing in:\n{log}");
    Ok(())
}

#[tokio::test]
async fn redact_replaces_the_named_fields_alone() -> Result<()> {
    let example = Example::new(
        "redact",
        r#"config = { fields = ["card", "customer.email", "items.note"] }"#,
        &[
            r#"{"card":4111, "n":1.10,"customer":{"email":"a@b.c","id":12345678901234567890123}}"#,
            r#"{"items":[{"note":"x","sku":1},{"note":["y"]}]}"#,
            r#"{"type":"visit"}"#,
            "no JSON",
        ],
    )
    .await?;
    let settled = example.run(&[("t", 3), ("dead-letters", 1)]).await?;
    assert_eq!(settled, (3, 0, 1));
    let expected = [
        r#"{"card":"[redacted]", "n":1.10,"customer":{"email":"[redacted]","id":12345678901234567890123}}"#,
        r#"{"items":[{"note":"[redacted]","sku":1},{"note":"[redacted]"}]}"#,
        r#"{"type":"visit"}"#,
    ];
    assert_eq!(example.payloads("t").await?, expected);
    let reasons = example.reasons().await?;
    assert!(
        reasons[0].starts_with("the payload is not JSON: "),
        "{reasons:?}"
    );
    refused(
        "redact",
        "config = { fields = [] }",
        "config.fields: names no field",
    )
    .await
}

/// Of sessions 0 to 39, those that the sampler's hash picks as one in four, on every machine.
const KEPT: [u128; 13] = [2, 3, 6, 7, 8, 12, 13, 16, 18, 19, 25, 32, 38];

#[tokio::test]
async fn sampler_keeps_a_key_always_or_never() -> Result<()> {
    let sent = |id: u128| {
        let session = format!("session-{}", id % 40);
        Message::new(id, "x").with(&[("session", &session)])
    };
    let mut sent: Vec<_> = (1..=400).map(sent).collect();
    // Kept for want of a session: when it has come, all before it are settled.
    sent.push(Message::new(1000, "last"));
    let keys = r#"config = { keep_one_in = 4, header = "session" }"#;
    let example = Example::with("sampler", keys, sent).await?;
    let kept = |message: &&Message| message.id == 1000 || KEPT.contains(&(message.id % 40));
    let expected: Vec<_> = example.sent.iter().filter(kept).cloned().collect();
    let settled = example.run(&[("t", expected.len())]).await?;
    assert_eq!(settled, (131, 270, 0));
    assert_eq!(example.setup.delivered("t", 0).await?, expected);
    Ok(())
}

#[tokio::test]
async fn sampler_drops_what_it_has_seen_among_the_last_keys() -> Result<()> {
    let ids = [1, 2, 1, 3, 2, 1, 4];
    let sent: Vec<_> = ids.map(|id| Message::new(id, id.to_string())).into();
    let example = Example::with("sampler", "config = { dedup_last = 2 }", sent).await?;
    // 1 is new again after 2 and 3 have pushed it out.
    assert_eq!(example.run(&[("t", 5)]).await?, (5, 2, 0));
    assert_eq!(example.payloads("t").await?, ["1", "2", "3", "1", "4"]);
    refused("sampler", "", "give keep_one_in or dedup_last").await
}

#[tokio::test]
async fn schema_rejects_with_the_name_of_the_field() -> Result<()> {
    let keys = r#"config = { required = { "id" = "integer", "items.sku" = "string" } }"#;
    let valid = r#"{"id":1,"items":[{"sku":"a"}]}"#;
    let example = Example::new(
        "schema",
        keys,
        &[
            r#"{"items":[]}"#,
            valid,
            r#"{"id":1,"items":[{"sku":"a"},{"sku":2}]}"#,
            "",
        ],
    )
    .await?;
    let settled = example.run(&[("t", 1), ("dead-letters", 3)]).await?;
    assert_eq!(settled, (1, 0, 3));
    assert_eq!(example.payloads("t").await?, [valid]);
    let reasons = example.reasons().await?;
    assert_eq!(reasons[0], "id: is missing");
    assert_eq!(reasons[1], "items[1].sku: is an integer, not a string");
    assert!(reasons[2].starts_with("the payload is not JSON: "));
    refused(
        "schema",
        r#"config = { required = { id = "int" } }"#,
        "config.required.id: ",
    )
    .await
}

#[tokio::test]
async fn a_guest_in_c_masks_card_numbers() -> Result<()> {
    let mut payloads = vec![
        r#"{"card":"4111 1111 1111 1111"}"#,
        "nothing",
        "card=5500005555555559;",
    ];
    // Far more than its memory could hold if calls left anything behind.
    let long = "4111111111111111 ".repeat(60_000);
    payloads.extend([long.as_str(); 40]);
    let keys = r#"config = { keep_last = 2, mask = "x" }"#;
    let example = Example::new("c-mask", keys, &payloads).await?;
    assert_eq!(example.run(&[("t", 43)]).await?, (43, 0, 0));
    let delivered = example.payloads("t").await?;
    let expected = [
        r#"{"card":"xxxx xxxx xxxx xx11"}"#,
        "nothing",
        "card=xxxxxxxxxxxxxx59;",
    ];
    assert_eq!(delivered[..3], expected);
    let long = "xxxxxxxxxxxxxx11 ".repeat(60_000);
    assert!(delivered[3..].iter().all(|payload| *payload == long));
    let text = "config.keep_last: is not a whole number from 0 to 6";
    refused("c-mask", "config = { keep_last = 9 }", text).await
}

#[tokio::test]
async fn a_guest_in_javascript_lifts_fields_into_headers() -> Result<()> {
    let keys = r#"config = { headers = { customer = "customer.id", total = "total" }, missing = "reject" }"#;
    let payload = r#"{"customer":{"id":"c-1"},"total":"12.50"}"#;
    let mut example = Example::new("js-enrich", keys, &[payload, "{}", "no JSON"]).await?;
    let more: Vec<_> = (4..=300).map(|id| Message::new(id, payload)).collect();
    example.setup.produce("t", 0, &more).await?;
    example.sent.extend(more);
    let refused = r#"config = { headers = { a = "a" }, missing = "stop" }"#;
    let text = r#"config.missing: is "stop"; it can be "skip" or "reject""#;
    let topics = [("t", 298), ("dead-letters", 2)];
    let settled = example.run_beside_refused(&topics, refused, text).await?;
    assert_eq!(settled, (298, 0, 2));
    let expected = example.sent.iter().filter(|sent| sent.payload == payload);
    let expected = expected.cloned().map(|mut message| {
        message.headers = headers(&[("customer", "c-1"), ("total", "12.50")]);
        message
    });
    let expected: Vec<_> = expected.collect();
    assert_eq!(example.setup.delivered("t", 0).await?, expected);
    let reasons = example.reasons().await?;
    assert_eq!(reasons[0], "customer.id: is missing");
    assert!(reasons[1].starts_with("the payload is not JSON: "));
    Ok(())
}

#[tokio::test]
async fn a_guest_in_python_routes_by_fields() -> Result<()> {
    let keys = r#"
[guests.g.config]
otherwise = "reject"
rules = [
  { field = "total", at_least = 1000, topic = "large" },
  { field = "country", matches = "DE|AT", topic = "dach" },
]"#;
    let payloads = [
        r#"{"total":1500,"country":"DE"}"#,
        r#"{"total":1,"country":"AT"}"#,
        r#"{"total":1,"country":"FR"}"#,
        "no JSON",
    ];
    let mut example = Example::new("py-router", keys, &payloads).await?;
    let more: Vec<_> = (5..=300).map(|id| Message::new(id, payloads[1])).collect();
    example.setup.produce("t", 0, &more).await?;
    example.sent.extend(more);
    let topics = [("large", 1), ("dach", 297), ("dead-letters", 2)];
    let text = "config.rules: give at least one rule";
    let settled = example
        .run_beside_refused(&topics, "config = { rules = [] }", text)
        .await?;
    assert_eq!(settled, (298, 0, 2));
    assert_eq!(
        example.setup.delivered("large", 0).await?,
        example.sent[..1]
    );
    let dach = [&example.sent[1..2], &example.sent[4..]].concat();
    assert_eq!(example.setup.delivered("dach", 0).await?, dach);
    let reasons = example.reasons().await?;
    assert_eq!(reasons[0], "no rule fits its payload");
    assert!(reasons[1].starts_with("the payload is not JSON: "));
    Ok(())
}
