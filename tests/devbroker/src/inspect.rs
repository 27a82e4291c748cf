//! What tests see of a broker, and what they do to its partitions.

use std::io;

use bytes::Bytes;
use iggy_binary_protocol::batch::{BatchIntegrity, decode_batch_slice_with};
use iggy_binary_protocol::{WireIdentifier, WireName, WireOptions};
use iggy_common::IggyError;

use crate::Broker;
use crate::partition::{From, Partition};
use crate::requests::{streams, topics};
use crate::state::State;

/// A message as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its offset.
    pub offset: u64,
    /// Its id.
    pub id: u128,
    /// Microseconds since the Unix epoch.
    pub origin_timestamp: u64,
    /// Checksum of its frame.
    pub checksum: u64,
    /// The content.
    pub payload: Bytes,
    /// User headers in wire form.
    pub headers: Bytes,
}

impl Broker {
    /// How many requests with this command code came.
    pub fn requests(&self, code: u32) -> u64 {
        self.shared.counts().get(&code).copied().unwrap_or_default()
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        self.shared.connections().len()
    }

    /// How many connections are logged in.
    pub fn sessions(&self) -> usize {
        self.shared.state().sessions.len()
    }

    /// Number of messages in a partition; none when there is no such partition.
    pub fn messages(&self, stream: &str, topic: &str, partition: u32) -> Option<u64> {
        self.with_partition(stream, topic, partition, |partition| partition.messages())
    }

    /// Every message of a partition, in offset order; none when there is no such partition.
    pub fn contents(&self, stream: &str, topic: &str, partition: u32) -> Option<Vec<Stored>> {
        let records = self.with_partition(stream, topic, partition, |partition| {
            partition.poll(From::Offset(0), u32::MAX).records
        })?;
        Some(records.iter().flat_map(stored).collect())
    }

    /// Waits until a partition holds at least `count` messages.
    pub async fn holds(&self, stream: &str, topic: &str, partition: u32, count: u64) {
        self.wait_until(|broker| broker.messages(stream, topic, partition) >= Some(count))
            .await;
    }

    /// Waits until at least `count` requests with this command code came.
    pub async fn requested(&self, code: u32, count: u64) {
        self.wait_until(|broker| broker.requests(code) >= count)
            .await;
    }

    /// Waits until `condition` holds; it is looked at after every request.
    pub async fn wait_until(&self, condition: impl Fn(&Self) -> bool) {
        let mut changes = self.shared.changes();
        while !condition(self) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Creates a topic, and its stream where there is none of that name.
    ///
    /// # Errors
    /// When a name is not one, the topic is there (`AlreadyExists`), it would have too many partitions, or it cannot
    /// be saved.
    pub fn create_topic(&self, stream: &str, topic: &str, partitions: u32) -> io::Result<()> {
        let name = |name: &str| {
            WireName::new(name.to_owned())
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))
        };
        let refused = |code| {
            let error = IggyError::from_code(code);
            let kind = match error {
                IggyError::TopicNameAlreadyExists(..) => io::ErrorKind::AlreadyExists,
                _ => io::ErrorKind::Other,
            };
            io::Error::new(kind, error.to_string())
        };
        let (stream, topic) = (name(stream)?, name(topic)?);
        let topic = topics::new(topic, &WireOptions::empty(), partitions).map_err(refused)?;
        let mut state = self.shared.state();
        if !state.streams.is_taken(&stream) {
            let new = streams::new(stream.clone(), WireOptions::empty());
            state.streams.add(new);
        }
        let stream = state.stream(&WireIdentifier::String(stream));
        stream
            .and_then(|stream| topics::add(stream, topic).map(|_| ()))
            .map_err(refused)?;
        state.save()
    }

    /// Purges a partition: it is empty, and its offsets begin at 0 again. Tells whether there is such a partition
    /// and, with a data folder, that was saved.
    pub fn purge(&self, stream: &str, topic: &str, partition: u32) -> bool {
        self.change(stream, topic, partition, Partition::purge)
    }

    /// Expires the messages of a partition below `offset`. Tells whether there is such a partition
    /// and, with a data folder, that was saved.
    pub fn expire(&self, stream: &str, topic: &str, partition: u32, offset: u64) -> bool {
        self.change(stream, topic, partition, |partition| {
            partition.expire(offset);
        })
    }

    /// Rolls a partition back by `count` messages; their offsets are given again. Tells whether there is such a
    /// partition and, with a data folder, that was saved.
    pub fn roll_back(&self, stream: &str, topic: &str, partition: u32, count: u64) -> bool {
        self.change(stream, topic, partition, |partition| {
            partition.roll_back(count);
        })
    }

    pub(crate) fn roll_all_back(&self, count: u64) -> io::Result<()> {
        let mut state = self.shared.state();
        for partition in state.partitions() {
            partition.roll_back(count);
        }
        state.save()
    }

    /// Changes a partition and saves what became of it.
    fn change(
        &self,
        stream: &str,
        topic: &str,
        partition: u32,
        change: impl FnOnce(&mut Partition),
    ) -> bool {
        let is_there = self
            .with_partition(stream, topic, partition, change)
            .is_some();
        let saved = self.shared.state().save();
        is_there && saved.is_ok()
    }

    fn with_partition<T>(
        &self,
        stream: &str,
        topic: &str,
        partition: u32,
        look: impl FnOnce(&mut Partition) -> T,
    ) -> Option<T> {
        let name = |name: &str| {
            WireName::new(name.to_owned())
                .ok()
                .map(WireIdentifier::String)
        };
        let mut state = self.shared.state();
        State::partition(&mut state, &name(stream)?, &name(topic)?, partition)
            .ok()
            .map(look)
    }
}

fn stored(record: &Bytes) -> Vec<Stored> {
    let Ok(batch) = decode_batch_slice_with(record, BatchIntegrity::LayoutOnly) else {
        return Vec::new();
    };
    batch
        .iter()
        .map(|message| Stored {
            offset: batch.header.base_offset + u64::from(message.header.offset_delta),
            id: message.header.id,
            origin_timestamp: batch.header.origin_timestamp
                + u64::from(message.header.timestamp_delta),
            checksum: message.header.checksum,
            payload: Bytes::copy_from_slice(message.payload),
            headers: Bytes::copy_from_slice(message.user_headers),
        })
        .collect()
}
