//! Checkpoints: how far each lane has settled, and what its destinations confirmed.

mod local;
mod replays;
mod server;
mod store;
mod writer;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use local::LocalStore;
pub use replays::{LetterId, ReplayStore, Replays, Scope, Selection, Sending, Unfinished};
pub use server::{ServerStore, consumer_name};
pub use store::{Store, StoreError};
pub use writer::Writer;

use crate::batch::Frame;
use crate::cluster::Partition;

/// Names a lane in the checkpoint store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LaneKey {
    /// Name of the link.
    pub link: String,
    /// Name of the source cluster.
    pub cluster: String,
    /// Stream at the source.
    pub stream: String,
    /// Topic at the source.
    pub topic: String,
    /// Partition at the source.
    pub partition: u32,
    /// Name of the destination cluster: what one cluster confirmed says nothing of another.
    pub destination: String,
}

impl LaneKey {
    /// The source partition.
    pub fn source(&self) -> Partition {
        Partition {
            stream: self.stream.as_str().into(),
            topic: self.topic.as_str().into(),
            id: self.partition,
        }
    }
}

impl fmt::Display for LaneKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            link,
            cluster,
            stream,
            topic,
            partition,
            destination,
        } = self;
        write!(
            formatter,
            "{link} {cluster}:{stream}/{topic}/{partition} -> {destination}"
        )
    }
}

/// How far a lane is. Everything that it sent from source offsets below `next_offset` lies, at each destination
/// partition, below that partition's mark; everything after lies at or above it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Every message below this source offset is settled: acknowledged, dropped on purpose or dead-lettered.
    pub next_offset: u64,
    /// The last settled message, by which a purged or replaced source is told.
    pub last: Option<LastSettled>,
    /// What each destination partition confirmed.
    pub destinations: Vec<Mark>,
}

/// The last message that a lane settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastSettled {
    /// Its offset at the source.
    pub offset: u64,
    /// Its id; 0 when it has none. Written in hexadecimal: many readers of JSON round such numbers.
    #[serde(with = "hexadecimal")]
    pub id: u128,
    /// Its time of production, in microseconds since the Unix epoch.
    pub origin_timestamp: u64,
}

impl From<&Frame> for LastSettled {
    fn from(frame: &Frame) -> Self {
        Self {
            offset: frame.offset,
            id: frame.id,
            origin_timestamp: frame.origin_timestamp,
        }
    }
}

/// What one destination partition confirmed to a lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Stream at the destination.
    pub stream: String,
    /// Topic at the destination.
    pub topic: String,
    /// Partition at the destination.
    pub partition: u32,
    /// The offset after the lane's last confirmed message, or the partition's end when the lane first used it.
    pub next_offset: u64,
    /// The lane's last confirmed message there, at the offset before; by it a purged partition is told.
    pub last: Option<Sent>,
    /// Ranges of offsets below, each from its first to before its second, that an earlier run may have filled and that
    /// did not come up as due again yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<(u64, u64)>,
}

/// What tells a message that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Its id; 0 when it has none. Written in hexadecimal: many readers of JSON round such numbers.
    #[serde(with = "hexadecimal")]
    pub id: u128,
    /// Its time of production, in microseconds since the Unix epoch.
    pub origin_timestamp: u64,
}

impl Mark {
    /// The partition that this mark is about.
    pub fn destination(&self) -> Partition {
        Partition {
            stream: self.stream.as_str().into(),
            topic: self.topic.as_str().into(),
            id: self.partition,
        }
    }
}

mod hexadecimal {
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(id: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{id:032x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
        let text = String::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16)
            .map_err(|_| de::Error::custom(format!("`{text}` is no hexadecimal id")))
    }
}
