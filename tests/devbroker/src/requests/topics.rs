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
use iggy_binary_protocol::{WireIdentifier, WireName, WireOptions};
use iggy_common::{
    CompressionAlgorithm, DEFAULT_MESSAGES_REQUIRED_TO_SAVE, DEFAULT_PREALLOCATE_SEGMENTS,
    DEFAULT_SEGMENT_SIZE, DEFAULT_SIZE_OF_MESSAGES_REQUIRED_TO_SAVE, Durability, IggyByteSize,
    IggyError, IggyExpiry, MAX_TOPIC_SEGMENT_SIZE, MaxTopicSize, TopicCreateOptions,
    TopicRuntimeDefaults, validate_topic_segment_size,
};

use super::{done, malformed};
use crate::partition::Partition;
use crate::state::{Slots, State, Stream, Topic, now, topic_missing};
use crate::wire::{Answer, whole};

/// Most partitions in one request.
const PARTITIONS_LIMIT: u32 = 100_000;

/// What a topic has where its creator said nothing.
const DEFAULTS: TopicRuntimeDefaults = TopicRuntimeDefaults {
    segment_size: IggyByteSize::new(DEFAULT_SEGMENT_SIZE),
    durability: Durability::Replicated,
    consumer_offset_durability: Durability::Replicated,
    messages_required_to_save: DEFAULT_MESSAGES_REQUIRED_TO_SAVE,
    size_of_messages_required_to_save: IggyByteSize::new(DEFAULT_SIZE_OF_MESSAGES_REQUIRED_TO_SAVE),
    preallocate_segments: DEFAULT_PREALLOCATE_SEGMENTS,
};

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
        derived_options: topic.derived_options.clone(),
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
    let topic = new(request.name, &request.options, request.partitions_count)?;
    let stream = state.stream(&request.stream_id)?;
    let (id, topic) = add(stream, topic)?;
    details(id, topic)
}

/// Adds a topic to a stream.
///
/// # Errors
/// When there is one of its name.
pub fn add(stream: &mut Stream, topic: Topic) -> Result<(u32, &Topic), u32> {
    if stream.topics.is_taken(&topic.name) {
        return Err(already_there());
    }
    let id = stream.topics.add(topic);
    let added = stream.topics.get(&WireIdentifier::numeric(id));
    Ok(added.expect("added above"))
}

/// An empty topic. Like the real server it keeps the options that were given apart from those that follow from its
/// defaults, and knows both.
///
/// # Errors
/// When an option is unknown or has a wrong value, or there are too many partitions.
pub fn new(name: WireName, options: &WireOptions, partitions: u32) -> Result<Topic, u32> {
    let given = TopicCreateOptions::parse(options).map_err(|error| error.as_code())?;
    if partitions > PARTITIONS_LIMIT {
        return Err(IggyError::TooManyPartitions.as_code());
    }
    if let Some(size) = given.segment_size {
        validate_topic_segment_size(size.as_bytes_u64(), MAX_TOPIC_SEGMENT_SIZE)
            .map_err(|error| error.as_code())?;
    }
    let is_given = |key: &str| {
        options
            .into_iter()
            .any(|option| option.key == key.as_bytes())
    };
    let explicit = given
        .to_explicit_wire(is_given)
        .map_err(|error| error.as_code())?;
    let derived = given
        .derived_block(
            CompressionAlgorithm::None,
            IggyExpiry::NeverExpire,
            MaxTopicSize::Unlimited,
            DEFAULTS,
            options,
        )
        .map_err(|error| error.as_code())?;
    let now = now();
    let compression = given
        .compression_algorithm
        .unwrap_or(CompressionAlgorithm::None);
    Ok(Topic {
        name,
        created_at: now,
        options: explicit,
        derived_options: derived,
        message_expiry: u64::from(given.message_expiry.unwrap_or(IggyExpiry::NeverExpire)),
        compression_algorithm: compression.as_code(),
        max_topic_size: u64::from(given.max_topic_size.unwrap_or(MaxTopicSize::Unlimited)),
        partitions: (0..partitions).map(|_| Partition::new(now)).collect(),
        groups: Slots::default(),
    })
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
