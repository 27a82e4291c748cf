//! The configuration of a link.

use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Deserializer};

/// One replication flow from a source cluster to a destination cluster.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Unique name; it keys the checkpoints, so renaming a link makes it start anew.
    pub name: String,
    /// What is read.
    pub source: Source,
    /// Where it goes unless a guest routes it elsewhere.
    pub destination: Destination,
    /// Where a source partition without a checkpoint begins.
    #[serde(default)]
    pub start: Start,
    /// Names of guests, applied in order.
    #[serde(default)]
    pub guests: Vec<String>,
    /// How much is polled and sent at once.
    #[serde(default)]
    pub batch: Batch,
    /// How failed calls are repeated.
    #[serde(default)]
    pub retry: Retry,
    /// Whether missing streams, topics and partitions are created at the destination.
    #[serde(default = "Link::default_create")]
    pub create: bool,
    /// What becomes of a message that a guest rejects or fails on.
    #[serde(default)]
    pub on_error: OnError,
    /// Where dead letters go, at the destination cluster.
    #[serde(default)]
    pub dead_letter: DeadLetter,
    /// What happens when the source was purged, created anew or rolled back since a lane read it.
    #[serde(default)]
    pub on_source_reset: OnSourceReset,
    /// What happens when the source no longer has messages that were due.
    #[serde(default)]
    pub on_gap: OnGap,
}

impl Link {
    const fn default_create() -> bool {
        true
    }
}

/// What a link reads.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Name of the cluster.
    pub cluster: String,
    /// Stream names or globs.
    pub streams: Vec<String>,
    /// Topic names or globs; every topic when left out.
    #[serde(default = "Source::every_topic")]
    pub topics: Vec<String>,
    /// Topics matched by these globs are left out.
    #[serde(default)]
    pub exclude: Vec<String>,
}

impl Source {
    fn every_topic() -> Vec<String> {
        vec!["*".to_owned()]
    }
}

/// Where a link's messages go. `{stream}`, `{topic}` and `{cluster}` stand for the source's names.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Destination {
    /// Name of the cluster.
    pub cluster: String,
    /// Template of the stream name.
    #[serde(default = "Destination::same_stream")]
    pub stream: String,
    /// Template of the topic name.
    #[serde(default = "Destination::same_topic")]
    pub topic: String,
    /// How a source partition finds its destination partition.
    #[serde(default)]
    pub partitions: Partitions,
}

impl Destination {
    fn same_stream() -> String {
        "{stream}".to_owned()
    }

    fn same_topic() -> String {
        "{topic}".to_owned()
    }
}

/// How a source partition finds its destination partition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Partitions {
    /// The partition with the same id.
    #[default]
    Preserve,
}

/// Where a source partition without a checkpoint begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// At the oldest message that the source still has.
    #[default]
    Earliest,
    /// After the newest message at the time of the first start.
    Latest,
    /// At this offset, on every partition.
    Offset(u64),
}

/// How much is polled and sent at once.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Batch {
    /// Most messages in a poll and in a send.
    pub messages: u32,
    /// Most bytes in a send, and the size that polls aim at.
    pub bytes: ByteSize,
    /// First pause after an empty poll; later ones double up to 16 times this.
    #[serde(with = "humantime_serde")]
    pub linger: Duration,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            messages: 1000,
            bytes: ByteSize::mib(4),
            linger: Duration::from_millis(2),
        }
    }
}

/// How failed calls are repeated: exponential backoff with jitter.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retry {
    /// First pause.
    #[serde(with = "humantime_serde")]
    pub initial: Duration,
    /// Longest pause.
    #[serde(with = "humantime_serde")]
    pub max: Duration,
    /// Most attempts at one call in a row.
    pub attempts: Attempts,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(100),
            max: Duration::from_secs(30),
            attempts: Attempts::Unlimited,
        }
    }
}

/// A number of attempts, or `"unlimited"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempts {
    /// No bound.
    Unlimited,
    /// At most this many, at least one.
    AtMost(u32),
}

impl<'de> Deserialize<'de> for Attempts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Text {
            Number(u32),
            Word(String),
        }
        let refuse = || serde::de::Error::custom("expected a number above 0 or \"unlimited\"");
        match Text::deserialize(deserializer).map_err(|_| refuse())? {
            Text::Number(0) => Err(refuse()),
            Text::Number(attempts) => Ok(Self::AtMost(attempts)),
            Text::Word(word) if word == "unlimited" => Ok(Self::Unlimited),
            Text::Word(_) => Err(refuse()),
        }
    }
}

/// What becomes of a message that a guest rejects or fails on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// Keep it, with the reason, in the dead-letter topic.
    #[default]
    DeadLetter,
    /// Settle it without delivering it.
    Drop,
    /// Deliver it as it was before the guest that failed.
    Forward,
    /// Stop the link before it.
    Stop,
}

/// Where dead letters go.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DeadLetter {
    /// Stream name.
    pub stream: String,
    /// Topic name; created with one partition.
    pub topic: String,
}

impl Default for DeadLetter {
    fn default() -> Self {
        Self {
            stream: "sluice".to_owned(),
            topic: "dead-letters".to_owned(),
        }
    }
}

/// What happens when the source was purged, created anew or rolled back since a lane read it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnSourceReset {
    /// The link stops until somebody decides.
    #[default]
    Stop,
    /// All that the source holds now is copied, also what the destination may have from before.
    Restart,
    /// The lane goes on at the offset that was due, or at the source's end where that is lower. Other messages that
    /// the source got since, below that offset, are not copied.
    Continue,
}

/// What happens when the source no longer has messages that were due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnGap {
    /// They are counted and logged, and the lane goes on at the oldest message that is left.
    #[default]
    Continue,
    /// The link stops.
    Stop,
}
