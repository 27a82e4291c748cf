//! A poll reply, verified and indexed but not copied.

use bytes::Bytes;
use iggy_binary_protocol::batch::{BATCH_HEADER_SIZE, BATCH_MESSAGE_HEADER_SIZE, BatchHeader};
use iggy_binary_protocol::batch::{BatchIntegrity, decode_batch_slice_with};
use iggy_binary_protocol::codec::WireDecode;
use iggy_binary_protocol::responses::messages::PollMessagesResponseHeader;
use twox_hash::XxHash3_64;

use super::Outgoing;

/// A poll reply that is not what the protocol says; nothing of it is used.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Broken framing.
    #[error("the poll reply is malformed: {0}")]
    Malformed(String),
    /// A message's bytes do not match its checksum.
    #[error("message at offset {offset} is corrupt: its checksum does not match its bytes")]
    Corrupt {
        /// Offset of the message at the source.
        offset: u64,
    },
}

/// One message of a [`Polled`] batch: its numbers, and where its bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Offset in the polled partition.
    pub offset: u64,
    /// Time of appending, in microseconds since the Unix epoch.
    pub timestamp: u64,
    /// Time of production, in microseconds since the Unix epoch.
    pub origin_timestamp: u64,
    /// Message id as the producer gave it; 0 when it gave none.
    pub id: u128,
    payload_start: usize,
    payload_length: usize,
    headers_length: usize,
}

/// The messages of one poll reply, in offset order.
#[derive(Debug, Clone, Default)]
pub struct Polled {
    /// Highest offset of the partition when it was polled; 0 also when it never held a message.
    pub current_offset: u64,
    bytes: Bytes,
    frames: Vec<Frame>,
}

impl Polled {
    /// Indexes a poll reply and checks every message's checksum.
    ///
    /// # Errors
    /// [`DecodeError`] on broken framing or on a checksum that does not match.
    pub fn decode(reply: Bytes) -> Result<Self, DecodeError> {
        let malformed = |error: &dyn std::fmt::Display| DecodeError::Malformed(error.to_string());
        let (head, mut position) =
            PollMessagesResponseHeader::decode(&reply).map_err(|error| malformed(&error))?;
        let mut frames = Vec::with_capacity(head.messages_count as usize);
        while position < reply.len() {
            // The checksum of a record is as stored, also for a slice of it; those of its messages always hold.
            let record = decode_batch_slice_with(&reply[position..], BatchIntegrity::LayoutOnly)
                .map_err(|error| malformed(&error))?;
            let blob_start = position + BATCH_HEADER_SIZE;
            for framed in record.iter_with_offsets() {
                let frame = index(
                    &record.header,
                    &framed.message.header,
                    blob_start + framed.start,
                );
                let covered = &record.blob()[framed.start + 8..framed.end];
                if XxHash3_64::oneshot(covered) != framed.message.header.checksum {
                    return Err(DecodeError::Corrupt {
                        offset: frame.offset,
                    });
                }
                frames.push(frame);
            }
            position += record.header.total_size();
        }
        Ok(Self {
            current_offset: head.current_offset,
            bytes: reply,
            frames,
        })
    }

    /// The messages' numbers, in offset order.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Whether the reply held no message.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The payload of one of this batch's frames.
    pub fn payload(&self, frame: &Frame) -> &[u8] {
        &self.bytes[frame.payload_start..frame.payload_start + frame.payload_length]
    }

    /// The user headers of one of this batch's frames, in wire form.
    pub fn headers(&self, frame: &Frame) -> &[u8] {
        let start = frame.payload_start + frame.payload_length;
        &self.bytes[start..start + frame.headers_length]
    }

    /// Its first `count` messages, and the others.
    #[must_use]
    pub fn split_at(&self, count: usize) -> (Self, Self) {
        let (front, back) = self.frames.split_at(count);
        let part = |frames: &[Frame]| Self {
            current_offset: self.current_offset,
            bytes: self.bytes.clone(),
            frames: frames.to_vec(),
        };
        (part(front), part(back))
    }
}

/// Messages that are gathered into a batch as if one poll had brought them.
#[derive(Debug, Default)]
pub struct Gathered {
    bytes: Vec<u8>,
    frames: Vec<Frame>,
}

impl Gathered {
    /// Adds a copy of a message that lies at `offset` of its partition and was appended there at `timestamp`, in
    /// microseconds since the Unix epoch.
    pub fn add(&mut self, offset: u64, timestamp: u64, message: &Outgoing<'_>) {
        self.frames.push(Frame {
            offset,
            timestamp,
            origin_timestamp: message.origin_timestamp,
            id: message.id,
            payload_start: self.bytes.len(),
            payload_length: message.payload.len(),
            headers_length: message.headers.len(),
        });
        self.bytes.extend_from_slice(message.payload);
        self.bytes.extend_from_slice(message.headers);
    }
}

impl From<Gathered> for Polled {
    fn from(gathered: Gathered) -> Self {
        Self {
            current_offset: gathered.frames.last().map_or(0, |frame| frame.offset),
            bytes: gathered.bytes.into(),
            frames: gathered.frames,
        }
    }
}

fn index(
    record: &BatchHeader,
    header: &iggy_binary_protocol::batch::BatchMessageHeader,
    start: usize,
) -> Frame {
    Frame {
        offset: record.base_offset + u64::from(header.offset_delta),
        timestamp: record.base_timestamp,
        origin_timestamp: record.origin_timestamp + u64::from(header.timestamp_delta),
        id: header.id,
        payload_start: start + BATCH_MESSAGE_HEADER_SIZE,
        payload_length: header.payload_length as usize,
        headers_length: header.user_headers_length as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gathered_messages_keep_their_offsets_and_bytes() {
        let mut gathered = Gathered::default();
        for (offset, payload, headers) in [(7, &b"one"[..], &b"h"[..]), (5, b"", b"")] {
            let message = Outgoing {
                id: 3,
                origin_timestamp: 9,
                headers,
                payload,
            };
            gathered.add(offset, 1, &message);
        }
        let batch = Polled::from(gathered);
        let seen: Vec<_> = batch
            .frames()
            .iter()
            .map(|frame| (frame.offset, batch.payload(frame), batch.headers(frame)))
            .collect();
        assert_eq!(seen, [(7, &b"one"[..], &b"h"[..]), (5, b"", b"")]);
    }
}
