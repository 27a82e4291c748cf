//! Sending and polling.

use bytes::{BufMut, Bytes, BytesMut};
use iggy_binary_protocol::codec::{WireDecode, WireEncode};
use iggy_binary_protocol::primitives::consumer::KIND_CONSUMER_GROUP;
use iggy_binary_protocol::requests::messages::{PollMessagesRequest, SendMessagesHeader};
use iggy_binary_protocol::responses::messages::{
    PollMessagesResponseHeader, SendMessagesConfirmationResponse, SendMessagesResponse,
};
use iggy_binary_protocol::{WireError, WirePartitioning};
use iggy_common::{Identifier, IggyError};

use super::{malformed, offsets};
use crate::partition::{Found, From, VerifiedBatch};
use crate::session::Outcome;
use crate::state::{State, now};
use crate::wire::{Answer, whole};

/// A send whose checksums were looked at.
#[derive(Debug)]
pub struct Send {
    header: SendMessagesHeader,
    /// None when a checksum is wrong.
    batch: Option<VerifiedBatch>,
}

impl Send {
    /// Reads a send. It goes over every byte, so the caller should hold no lock.
    ///
    /// # Errors
    /// When the routing part does not decode.
    pub fn read(body: Bytes) -> Result<Self, WireError> {
        let (header, start) = send_header(&body)?;
        let batch = VerifiedBatch::verify(BytesMut::from(body).split_off(start));
        Ok(Self { header, batch })
    }
}

/// The routing part of a send, and where the batch begins.
///
/// # Errors
/// When it does not decode.
pub fn send_header(body: &[u8]) -> Result<(SendMessagesHeader, usize), WireError> {
    let length = body
        .first_chunk::<4>()
        .map_or(0, |length| u32::from_le_bytes(*length) as usize);
    let metadata = body.get(4..4 + length).ok_or(WireError::UnexpectedEof {
        offset: 4,
        need: length,
        have: body.len(),
    })?;
    let (header, _) = SendMessagesHeader::decode(metadata)?;
    Ok((header, 4 + length))
}

/// Appends a batch. One whose checksums are wrong is dropped without an answer, as the real server does.
pub fn send(state: &mut State, send: Result<Send, WireError>, confirm: bool) -> Outcome {
    let Send { header, batch } = match send {
        Ok(send) => send,
        Err(error) => return Outcome::Answer(Err(malformed(error))),
    };
    let WirePartitioning::PartitionId(id) = header.partitioning else {
        return Outcome::Answer(Err(IggyError::InvalidCommand.as_code()));
    };
    let missing = IggyError::ResourceNotFound(String::new()).as_code();
    let Some((stream_id, stream)) = state.streams.get(&header.stream_id) else {
        return Outcome::Answer(Err(missing));
    };
    let Some(topic_id) = stream.topics.find(&header.topic_id) else {
        return Outcome::Answer(Err(missing));
    };
    let Ok(partition) = state.partition(&header.stream_id, &header.topic_id, id) else {
        return Outcome::Answer(Err(missing));
    };
    let Some(batch) = batch else {
        return Outcome::Silent;
    };
    let base_offset = partition.append(id, batch, now());
    if state.save_messages(stream_id, topic_id, id).is_err() {
        return Outcome::Unsaved;
    }
    let confirmation = SendMessagesConfirmationResponse {
        stream_id,
        topic_id,
        partition_id: id,
        base_offset,
    };
    let reply = SendMessagesResponse {
        confirmations: if confirm { vec![confirmation] } else { vec![] },
    };
    Outcome::Answer(whole(reply.to_bytes()))
}

/// Whether a poll also stores an offset.
pub fn commits(body: &[u8]) -> bool {
    PollMessagesRequest::decode_from(body).is_ok_and(|poll| poll.auto_commit)
}

/// Answers a poll; with `hide` as if nothing could be read.
pub fn poll(state: &mut State, body: &[u8], connection: u32, hide: bool) -> Answer {
    let poll = PollMessagesRequest::decode_from(body).map_err(malformed)?;
    if poll.count == 0 {
        return Err(IggyError::InvalidMessagesCount.as_code());
    }
    let id = poll.partition_id.unwrap_or(0);
    if poll.consumer.kind == KIND_CONSUMER_GROUP {
        check_ownership(state, &poll, id, connection)?;
    }
    let consumer = offsets::consumer_key(&poll.consumer);
    let partition = state.partition(&poll.stream_id, &poll.topic_id, id)?;
    let from = match poll.strategy.kind {
        1 => From::Offset(poll.strategy.value),
        2 => From::Timestamp(poll.strategy.value),
        3 => From::Offset(0),
        4 => From::Last,
        5 => From::Offset(
            partition
                .offsets
                .get(&consumer)
                .map_or(0, |offset| offset + 1),
        ),
        _ => return Err(IggyError::InvalidCommand.as_code()),
    };
    let found = if hide {
        Found::default()
    } else {
        partition.poll(from, poll.count)
    };
    if let (true, Some(last)) = (poll.auto_commit, found.last_offset) {
        partition.offsets.insert(consumer, last);
    }
    let head = PollMessagesResponseHeader {
        partition_id: id,
        current_offset: partition.current_offset(),
        messages_count: found.count,
    };
    let mut prefix = BytesMut::new();
    prefix.put_slice(&head.to_bytes());
    let mut parts: Vec<Bytes> = vec![prefix.freeze()];
    parts.extend(found.records);
    Ok(parts)
}

fn check_ownership(
    state: &mut State,
    poll: &PollMessagesRequest,
    partition: u32,
    connection: u32,
) -> Result<(), u32> {
    let topic = state.topic(&poll.stream_id, &poll.topic_id)?;
    let owned = topic
        .groups
        .get(&poll.consumer.id)
        .and_then(|(_, group)| group.owned_by(connection, topic.partitions.len()));
    match owned {
        Some(owned) if owned.contains(&partition) => Ok(()),
        Some(_) => Err(IggyError::ConsumerGroupPartitionNotOwned(0, 0).as_code()),
        None => Err(IggyError::ConsumerGroupMemberNotFound(
            0,
            Identifier::default(),
            Identifier::default(),
        )
        .as_code()),
    }
}
