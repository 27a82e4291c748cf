//! Shop traffic, the same on every run: what is sent, and what must arrive.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::Result;
use iggy::prelude::{HeaderKey, HeaderValue, IggyMessage};

/// Partitions of the source topic.
pub const PARTITIONS: u32 = 4;

/// Messages in each partition.
pub const PER_PARTITION: u64 = 75_000;

/// Stream at both clusters.
pub const STREAM: &str = "sluice-demo";

/// Topic at the source, and of what no guest routes.
pub const TOPIC: &str = "events";

/// Topics at the destination.
pub const DESTINATIONS: [&str; 3] = [TOPIC, "orders", "payments"];

/// User headers by key; Iggy's own clients keep them sorted.
pub type Headers = BTreeMap<HeaderKey, HeaderValue>;

/// One message of the traffic.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Unique id.
    pub id: u128,
    /// Microseconds since the Unix epoch.
    pub origin_timestamp: u64,
    /// User headers.
    pub headers: Headers,
    /// A JSON document.
    pub payload: String,
}

/// What must become of a sample: its topic at the destination and the message there, or nothing.
pub type Expected = Option<(&'static str, Sample)>;

/// The message at a place of the traffic.
///
/// # Errors
/// When a header is not one that Iggy carries.
pub fn sample(partition: u32, index: u64) -> Result<Sample> {
    let mut dice = Dice(u64::from(partition) << 40 | index);
    let kind = match dice.below(10) {
        0..5 => "page-view",
        5..8 => "order",
        _ => "payment",
    };
    let region = match dice.below(10) {
        0..4 => "eu",
        4..7 => "us",
        7..9 => "apac",
        _ => "test",
    };
    let mut headers = BTreeMap::new();
    headers.insert(text_key("type")?, HeaderValue::try_from(kind)?);
    headers.insert(text_key("region")?, HeaderValue::try_from(region)?);
    headers.insert(text_key("src")?, HeaderValue::try_from("storefront")?);
    headers.insert(text_key("attempt")?, HeaderValue::from(1_u32));
    if dice.below(3) == 0 {
        headers.insert(text_key("debug")?, HeaderValue::from(true));
    }
    Ok(Sample {
        id: u128::from(dice.next()) << 64 | u128::from(dice.next()),
        origin_timestamp: 1_790_000_000_000_000 + index * 1_000 + u64::from(partition),
        headers,
        payload: payload(kind, &mut dice)?,
    })
}

/// What the three guests of config/demo.toml must make of a sample, worked out without them.
///
/// # Errors
/// When a header is not one that Iggy carries.
pub fn expected(sample: &Sample) -> Result<Expected> {
    let mut after = sample.clone();
    let text = |key: &str| -> Result<String> {
        let value = sample.headers.get(&text_key(key)?);
        Ok(value.map(HeaderValue::to_string_value).unwrap_or_default())
    };
    if text("region")? == "test" {
        return Ok(None);
    }
    let topic = match text("type")?.as_str() {
        "order" => "orders",
        "payment" => "payments",
        _ => TOPIC,
    };
    after.headers.remove(&text_key("debug")?);
    if let Some(service) = after.headers.remove(&text_key("src")?) {
        after.headers.insert(text_key("service")?, service);
    }
    after
        .headers
        .insert(text_key("origin")?, HeaderValue::try_from("eu")?);
    Ok(Some((topic, after)))
}

/// A header key that is text.
///
/// # Errors
/// When Iggy does not carry it.
pub fn text_key(key: &str) -> Result<HeaderKey> {
    Ok(HeaderKey::try_from(key)?)
}

impl Sample {
    /// The message as a producer sends it.
    ///
    /// # Errors
    /// When it breaks a limit of Iggy.
    pub fn to_message(&self) -> Result<IggyMessage> {
        let mut message = IggyMessage::builder()
            .id(self.id)
            .payload(self.payload.clone().into())
            .user_headers(self.headers.clone())
            .build()?;
        message.header.origin_timestamp = self.origin_timestamp;
        Ok(message)
    }

    /// The message as a consumer gets it.
    ///
    /// # Errors
    /// When its headers do not parse or its payload is not text.
    pub fn from_message(message: &IggyMessage) -> Result<Self> {
        Ok(Self {
            id: message.header.id,
            origin_timestamp: message.header.origin_timestamp,
            headers: message.user_headers_map()?.unwrap_or_default(),
            payload: String::from_utf8(message.payload.to_vec())?,
        })
    }

    /// Headers and payload on one line each.
    pub fn describe(&self) -> String {
        let headers: Vec<_> = self
            .headers
            .iter()
            .map(|(key, value)| format!("{}={}", key.to_string_value(), value.to_string_value()))
            .collect();
        let payload: String = self.payload.chars().take(72).collect();
        format!("{}\n  {payload}...", headers.join(" "))
    }
}

fn payload(kind: &str, dice: &mut Dice) -> Result<String> {
    let mut text = format!(
        r#"{{"type":"{kind}","customer":{},"session":"{:016x}","items":["#,
        dice.below(1_000_000),
        dice.next()
    );
    for item in 0..=dice.below(8) {
        let comma = if item == 0 { "" } else { "," };
        write!(
            text,
            r#"{comma}{{"sku":"{:08x}","quantity":{},"price":{}.{:02}}}"#,
            dice.below(1 << 32),
            1 + dice.below(5),
            dice.below(500),
            dice.below(100)
        )?;
    }
    text.push_str("]}");
    Ok(text)
}

/// Repeatable numbers: splitmix64.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
