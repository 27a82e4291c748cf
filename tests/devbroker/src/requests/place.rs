//! What a request is about: a stream, a topic, a partition.

use bytes::Bytes;
use iggy_binary_protocol::codec::WireDecode;
use iggy_binary_protocol::codes::{
    CREATE_CONSUMER_GROUP_CODE, CREATE_PARTITIONS_CODE, CREATE_TOPIC_CODE,
    DELETE_CONSUMER_GROUP_CODE, DELETE_CONSUMER_OFFSET_CODE, DELETE_PARTITIONS_CODE,
    DELETE_STREAM_CODE, DELETE_TOPIC_CODE, GET_CONSUMER_GROUP_CODE, GET_CONSUMER_GROUPS_CODE,
    GET_CONSUMER_OFFSET_CODE, GET_STREAM_CODE, GET_TOPIC_CODE, GET_TOPICS_CODE,
    JOIN_CONSUMER_GROUP_CODE, LEAVE_CONSUMER_GROUP_CODE, POLL_MESSAGES_CODE, PURGE_STREAM_CODE,
    PURGE_TOPIC_CODE, SEND_MESSAGES_CODE, STORE_CONSUMER_OFFSET_CODE, SYNC_CONSUMER_GROUP_CODE,
    UPDATE_STREAM_CODE, UPDATE_TOPIC_CODE,
};
use iggy_binary_protocol::requests::consumer_offsets::GetConsumerOffsetRequest;
use iggy_binary_protocol::{WireIdentifier, WirePartitioning};

use super::messages::send_header;
use crate::state::State;

/// Names of what a request is about, as far as it tells and as far as it exists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    pub stream: Option<String>,
    pub topic: Option<String>,
    pub partition: Option<u32>,
}

impl Place {
    /// The place of a request; numbers are resolved to names.
    pub fn of(state: &State, code: u32, body: &Bytes) -> Self {
        let (stream, topic, partition) = identifiers(code, body).unwrap_or_default();
        let found = stream.as_ref().and_then(|stream| state.streams.get(stream));
        let found_topic = found
            .zip(topic.as_ref())
            .and_then(|((_, stream), topic)| stream.topics.get(topic));
        Self {
            stream: found
                .map(|(_, stream)| stream.name.to_string())
                .or_else(|| name(stream)),
            topic: found_topic
                .map(|(_, topic)| topic.name.to_string())
                .or_else(|| name(topic)),
            partition,
        }
    }
}

fn name(identifier: Option<WireIdentifier>) -> Option<String> {
    match identifier? {
        WireIdentifier::String(name) => Some(name.to_string()),
        WireIdentifier::Numeric(_) => None,
    }
}

type Identifiers = (Option<WireIdentifier>, Option<WireIdentifier>, Option<u32>);

fn identifiers(code: u32, body: &Bytes) -> Option<Identifiers> {
    match code {
        SEND_MESSAGES_CODE => {
            let (header, _) = send_header(body).ok()?;
            let partition = match header.partitioning {
                WirePartitioning::PartitionId(partition) => Some(partition),
                _ => None,
            };
            Some((Some(header.stream_id), Some(header.topic_id), partition))
        }
        POLL_MESSAGES_CODE
        | GET_CONSUMER_OFFSET_CODE
        | STORE_CONSUMER_OFFSET_CODE
        | DELETE_CONSUMER_OFFSET_CODE => {
            // All of them begin with what this one consists of.
            let (offset, _) = GetConsumerOffsetRequest::decode(body).ok()?;
            let partition = Some(offset.partition_id.unwrap_or(0));
            Some((Some(offset.stream_id), Some(offset.topic_id), partition))
        }
        GET_STREAM_CODE | DELETE_STREAM_CODE | UPDATE_STREAM_CODE | PURGE_STREAM_CODE
        | GET_TOPICS_CODE | CREATE_TOPIC_CODE => {
            let (stream, _) = WireIdentifier::decode(body).ok()?;
            Some((Some(stream), None, None))
        }
        GET_TOPIC_CODE
        | DELETE_TOPIC_CODE
        | UPDATE_TOPIC_CODE
        | PURGE_TOPIC_CODE
        | CREATE_PARTITIONS_CODE
        | DELETE_PARTITIONS_CODE
        | GET_CONSUMER_GROUP_CODE
        | GET_CONSUMER_GROUPS_CODE
        | CREATE_CONSUMER_GROUP_CODE
        | DELETE_CONSUMER_GROUP_CODE
        | JOIN_CONSUMER_GROUP_CODE
        | LEAVE_CONSUMER_GROUP_CODE
        | SYNC_CONSUMER_GROUP_CODE => {
            let (stream, length) = WireIdentifier::decode(body).ok()?;
            let (topic, _) = WireIdentifier::decode(&body[length..]).ok()?;
            Some((Some(stream), Some(topic), None))
        }
        _ => None,
    }
}
