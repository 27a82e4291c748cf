//! Topics and partitions.

use iggy_binary_protocol::codec::{WireDecode, WireEncode};
use iggy_binary_protocol::requests::partitions::{
    CreatePartitionsRequest, DeletePartitionsRequest,
};
use iggy_binary_protocol::requests::topics::{
    CreateTopicRequest, DeleteTopicRequest, GetTopicRequest, GetTopicsRequest, PurgeTopicRequest,
};
use iggy_binary_protocol::responses::streams::get_stream::TopicHeader;
use iggy_binary_protocol::responses::topics::{
    GetTopicResponse, GetTopicsResponse, PartitionResponse,
};
use iggy_binary_protocol::{WireIdentifier, WireOptions};
use iggy_common::{CompressionAlgorithm, IggyError, IggyExpiry, MaxTopicSize, TopicCreateOptions};

use super::{done, malformed};
use crate::partition::Partition;
use crate::state::{Slots, State, Topic, now, stream_missing, topic_missing};
use crate::wire::{Answer, whole};

/// Most partitions in one request.
const PARTITIONS_LIMIT: u32 = 100_000;

pub fn header(id: u32, topic: &Topic) -> TopicHeader {
    TopicHeader {
        id,
        created_at: topic.created_at,
        partitions_count: count(topic),
        message_expiry: topic.message_expiry,
        compression_algorithm: topic.compression_algorithm,
        max_topic_size: topic.max_topic_size,
        size_bytes: topic.partitions.iter().map(Partition::size).sum(),
        messages_count: topic.partitions.iter().map(Partition::messages).sum(),
        name: topic.name.clone(),
        options: topic.options.clone(),
        derived_options: WireOptions::empty(),
    }
}

fn count(topic: &Topic) -> u32 {
    u32::try_from(topic.partitions.len()).unwrap_or(u32::MAX)
}

fn details(id: u32, topic: &Topic) -> Answer {
    let partitions = topic
        .partitions
        .iter()
        .zip(0..)
        .map(|(partition, id)| PartitionResponse {
            id,
            created_at: partition.created_at,
            segments_count: 1,
            current_offset: partition.current_offset(),
            size_bytes: partition.size(),
            messages_count: partition.messages(),
        })
        .collect();
    whole(
        GetTopicResponse {
            topic: header(id, topic),
            partitions,
        }
        .to_bytes(),
    )
}

pub fn get(state: &State, body: &[u8]) -> Answer {
    let request = GetTopicRequest::decode_from(body).map_err(malformed)?;
    let topic = state
        .streams
        .get(&request.stream_id)
        .and_then(|(_, stream)| stream.topics.get(&request.topic_id));
    match topic {
        Some((id, topic)) => details(id, topic),
        None => done(),
    }
}

pub fn list(state: &mut State, body: &[u8]) -> Answer {
    let request = GetTopicsRequest::decode_from(body).map_err(malformed)?;
    let topics = state
        .stream(&request.stream_id)?
        .topics
        .iter()
        .map(|(id, topic)| header(id, topic))
        .collect();
    whole(GetTopicsResponse { topics }.to_bytes())
}

pub fn create(state: &mut State, body: &[u8]) -> Answer {
    let request = CreateTopicRequest::decode_from(body).map_err(malformed)?;
    let options = TopicCreateOptions::parse(&request.options).map_err(|error| error.as_code())?;
    if request.partitions_count > PARTITIONS_LIMIT {
        return Err(IggyError::TooManyPartitions.as_code());
    }
    let stream = state
        .streams
        .get_mut(&request.stream_id)
        .ok_or_else(stream_missing)?;
    if stream.topics.is_taken(&request.name) {
        return Err(already_there());
    }
    let now = now();
    let compression = options
        .compression_algorithm
        .unwrap_or(CompressionAlgorithm::None);
    let id = stream.topics.add(Topic {
        name: request.name,
        created_at: now,
        options: request.options,
        message_expiry: u64::from(options.message_expiry.unwrap_or(IggyExpiry::NeverExpire)),
        compression_algorithm: compression.as_code(),
        max_topic_size: u64::from(options.max_topic_size.unwrap_or(MaxTopicSize::Unlimited)),
        partitions: (0..request.partitions_count)
            .map(|_| Partition::new(now))
            .collect(),
        groups: Slots::default(),
    });
    let (id, topic) = stream
        .topics
        .get(&WireIdentifier::numeric(id))
        .expect("added above");
    details(id, topic)
}

fn already_there() -> u32 {
    IggyError::TopicNameAlreadyExists(String::new(), iggy_common::Identifier::default()).as_code()
}

pub fn delete(state: &mut State, body: &[u8]) -> Answer {
    let request = DeleteTopicRequest::decode_from(body).map_err(malformed)?;
    let stream = state.stream(&request.stream_id)?;
    match stream.topics.remove(&request.topic_id) {
        Some(_) => done(),
        None => Err(topic_missing()),
    }
}

pub fn purge(state: &mut State, body: &[u8]) -> Answer {
    let request = PurgeTopicRequest::decode_from(body).map_err(malformed)?;
    let topic = state.topic(&request.stream_id, &request.topic_id)?;
    topic.partitions.iter_mut().for_each(Partition::purge);
    done()
}

pub fn add_partitions(state: &mut State, body: &[u8]) -> Answer {
    let request = CreatePartitionsRequest::decode_from(body).map_err(malformed)?;
    let topic = state.topic(&request.stream_id, &request.topic_id)?;
    if request.partitions_count > PARTITIONS_LIMIT {
        return Err(IggyError::TooManyPartitions.as_code());
    }
    let now = now();
    let added = (0..request.partitions_count).map(|_| Partition::new(now));
    topic.partitions.extend(added);
    rebalance(topic);
    done()
}

pub fn remove_partitions(state: &mut State, body: &[u8]) -> Answer {
    let request = DeletePartitionsRequest::decode_from(body).map_err(malformed)?;
    let topic = state.topic(&request.stream_id, &request.topic_id)?;
    let left = count(topic)
        .checked_sub(request.partitions_count)
        .ok_or(IggyError::InvalidPartitionsCount.as_code())?;
    topic.partitions.truncate(left as usize);
    rebalance(topic);
    done()
}

fn rebalance(topic: &mut Topic) {
    for group in topic.groups.values_mut() {
        group.generation += 1;
    }
}
