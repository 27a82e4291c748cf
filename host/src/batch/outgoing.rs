//! Batches on their way out: splitting by Iggy's limits, and encoding.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use iggy_binary_protocol::batch::{
    BATCH_HEADER_SIZE, BATCH_MESSAGE_HEADER_SIZE, MAX_TIMESTAMP_DELTA_MICROS,
};
use iggy_binary_protocol::requests::messages::{RawMessage, SendMessagesEncoder};
use iggy_binary_protocol::{WireError, WireIdentifier, WirePartitioning};
use twox_hash::XxHash3_64;

use super::headers;

/// Longest body of a request: a frame of 64 MiB less its header.
pub const REQUEST_LIMIT: usize = 64 * 1024 * 1024 - 256;

/// Most bytes that the messages of one send may take. A request frame of Iggy is limited to 64 MiB; the rest is
/// room for the request header, the names and the batch header.
pub const FRAME_LIMIT: usize = 64 * 1024 * 1024 - 2048;

/// One message to send.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    /// Sent as it is, also when it is 0.
    pub id: u128,
    /// Microseconds since the Unix epoch.
    pub origin_timestamp: u64,
    /// User headers in wire form.
    pub headers: &'a [u8],
    /// The content.
    pub payload: &'a [u8],
}

/// What tells a message from others at a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Identity {
    /// Its id and its time of production, also when a guest rewrites it differently each time.
    Message(u128, u64),
    /// The hash of all of a message without an id.
    Content(u64, u64),
    /// The hash of what a dead letter says of its source: letters of many lanes share a partition, and the reason
    /// may be worded differently each time.
    Letter(u64),
}

impl<'a> Outgoing<'a> {
    fn raw(&self) -> RawMessage<'a> {
        RawMessage {
            id: self.id,
            origin_timestamp: self.origin_timestamp,
            headers: (!self.headers.is_empty()).then_some(self.headers),
            payload: self.payload,
        }
    }

    /// Bytes that it takes in a batch.
    pub const fn size(&self) -> usize {
        frame_size(self.payload.len(), self.headers.len())
    }

    /// What tells this message from others.
    pub fn identity(&self) -> Identity {
        if let Some(letter) = self.letter() {
            letter
        } else if self.id == 0 {
            Identity::Content(self.origin_timestamp, self.content())
        } else {
            Identity::Message(self.id, self.origin_timestamp)
        }
    }

    /// The hash of its headers and payload.
    pub fn content(&self) -> u64 {
        XxHash3_64::oneshot(self.headers) ^ XxHash3_64::oneshot(self.payload).rotate_left(1)
    }

    fn letter(&self) -> Option<Identity> {
        let origin = headers::letter_origin(self.headers)?;
        Some(Identity::Letter(XxHash3_64::oneshot(&origin)))
    }
}

/// Bytes that a message takes in a batch.
pub const fn frame_size(payload: usize, headers: usize) -> usize {
    BATCH_MESSAGE_HEADER_SIZE + payload + headers
}

/// Whether a request that sends this message alone to a topic stays within [`REQUEST_LIMIT`].
pub fn fits(stream: &str, topic: &str, message: &Outgoing<'_>) -> bool {
    let names = 2 * (stream.len() + topic.len());
    let about = frame_size(message.payload.len(), message.headers.len()) + names;
    if about <= REQUEST_LIMIT / 2 {
        return true;
    }
    let (Ok(stream), Ok(topic)) = (WireIdentifier::named(stream), WireIdentifier::named(topic))
    else {
        return false;
    };
    let partitioning = WirePartitioning::PartitionId(0);
    let raw = [message.raw()];
    SendMessagesEncoder::encoded_size(&stream, &topic, &partitioning, &raw) <= REQUEST_LIMIT
}

/// The request body that sends `messages` to one partition.
///
/// # Errors
/// [`WireError`] when `messages` is empty or breaks a limit that [`Chunks`] keeps.
pub fn encode_send(
    stream: &str,
    topic: &str,
    partition: u32,
    messages: &[Outgoing<'_>],
) -> Result<Bytes, WireError> {
    let stream = WireIdentifier::named(stream)?;
    let topic = WireIdentifier::named(topic)?;
    let partitioning = WirePartitioning::PartitionId(partition);
    let raw: Vec<_> = messages.iter().map(Outgoing::raw).collect();
    let size = SendMessagesEncoder::encoded_size(&stream, &topic, &partitioning, &raw);
    let mut body = BytesMut::with_capacity(size);
    SendMessagesEncoder::encode(&mut body, &stream, &topic, &partitioning, &raw)?;
    Ok(body.freeze())
}

/// Splits messages into ranges that one send each can carry: by count, by bytes, and by the span of origin
/// timestamps, which Iggy limits to 2^32 microseconds (71 minutes).
#[derive(Debug)]
pub struct Chunks<'a> {
    messages: &'a [Outgoing<'a>],
    most_messages: usize,
    most_bytes: usize,
    next: usize,
}

impl<'a> Chunks<'a> {
    /// Ranges over `messages` of at most `most_messages` messages and `most_bytes` bytes; a single message may
    /// be larger than `most_bytes`.
    pub fn new(messages: &'a [Outgoing<'a>], most_messages: usize, most_bytes: usize) -> Self {
        Self {
            messages,
            most_messages: most_messages.max(1),
            most_bytes,
            next: 0,
        }
    }
}

impl Iterator for Chunks<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let start = self.next;
        let first = self.messages.get(start)?;
        let (mut earliest, mut latest) = (first.origin_timestamp, first.origin_timestamp);
        let mut bytes = BATCH_HEADER_SIZE;
        for (index, message) in self.messages.iter().enumerate().skip(start) {
            bytes += message.size();
            earliest = earliest.min(message.origin_timestamp);
            latest = latest.max(message.origin_timestamp);
            let full = index - start >= self.most_messages
                || bytes > self.most_bytes
                || latest - earliest > MAX_TIMESTAMP_DELTA_MICROS;
            if full && index > start {
                self.next = index;
                return Some(start..index);
            }
        }
        self.next = self.messages.len();
        Some(start..self.next)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message<'a>(id: u128, payload: &'a [u8], headers: &'a [u8]) -> Outgoing<'a> {
        Outgoing {
            id,
            origin_timestamp: 5,
            headers,
            payload,
        }
    }

    #[test]
    fn a_message_is_told_by_its_id_and_without_one_by_its_content() {
        let identity = |id, payload| message(id, payload, &[]).identity();
        assert_eq!(identity(7, b"before"), identity(7, b"after"));
        assert_ne!(identity(7, b"same"), identity(8, b"same"));
        assert_eq!(identity(0, b"same"), identity(0, b"same"));
        assert_ne!(identity(0, b"before"), identity(0, b"after"));
        let later = Outgoing {
            origin_timestamp: 6,
            ..message(7, b"before", &[])
        };
        assert_ne!(later.identity(), identity(7, b"before"));
    }

    #[test]
    fn a_dead_letter_is_told_by_its_source() {
        let letter = |partition: &str, reason: &str| {
            let text = headers::Field::text;
            let list = [
                ("sluice-link", "l"),
                ("sluice-offset", partition),
                ("sluice-reason", reason),
            ];
            headers::encode(&list.map(|(key, value)| (text(key), text(value))))
        };
        let identity = |headers: &[u8]| message(7, b"same", headers).identity();
        assert_eq!(identity(&letter("1", "a")), identity(&letter("1", "b")));
        assert_ne!(identity(&letter("1", "a")), identity(&letter("2", "a")));
        assert_ne!(identity(&letter("1", "a")), identity(&[]));
    }

    proptest! {
        #[test]
        fn chunks_tile_the_messages_and_keep_every_limit(
            sizes in prop::collection::vec((0_usize..400, 0_u64..3 * MAX_TIMESTAMP_DELTA_MICROS), 0..60),
            most_messages in 1_usize..10,
            most_bytes in 300_usize..2000,
        ) {
            let payload = [7_u8; 400];
            let messages: Vec<_> = sizes
                .iter()
                .map(|&(size, origin_timestamp)| Outgoing {
                    id: 1,
                    origin_timestamp,
                    headers: &[],
                    payload: &payload[..size],
                })
                .collect();
            let mut next = 0;
            for range in Chunks::new(&messages, most_messages, most_bytes) {
                prop_assert_eq!(range.start, next);
                prop_assert!(!range.is_empty());
                next = range.end;
                let chunk = &messages[range];
                prop_assert!(chunk.len() <= most_messages);
                let bytes: usize = chunk.iter().map(|m| frame_size(m.payload.len(), 0)).sum();
                prop_assert!(chunk.len() == 1 || bytes + BATCH_HEADER_SIZE <= most_bytes);
                prop_assert!(encode_send("s", "t", 0, chunk).is_ok());
            }
            prop_assert_eq!(next, messages.len());
        }
    }
}
