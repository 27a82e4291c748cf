//! Changes of streams and topics that exist: their names and some options.

use iggy_binary_protocol::WireName;
use iggy_binary_protocol::codec::WireDecode;
use iggy_binary_protocol::requests::streams::UpdateStreamRequest;
use iggy_binary_protocol::requests::topics::UpdateTopicRequest;
use iggy_common::wire_conversions::{
    resource_options_from_wire, resource_options_from_wire_split, resource_options_to_wire_split,
};
use iggy_common::{Identifier, IggyError, TopicCreateOptions, UPDATABLE_TOPIC_OPTION_KEYS};

use super::{done, malformed};
use crate::state::{Named, Slots, State, Topic, stream_missing, topic_missing};
use crate::wire::Answer;

/// Renames a stream. It has no options that could be changed.
pub fn stream(state: &mut State, body: &[u8]) -> Answer {
    let request = UpdateStreamRequest::decode_from(body).map_err(malformed)?;
    if let Some(option) = request.options.into_iter().next() {
        return Err(unsupported(option.key));
    }
    let id = state.streams.find(&request.stream_id);
    let id = id.ok_or_else(stream_missing)?;
    if is_anothers(&state.streams, &request.name, id) {
        return Err(IggyError::StreamNameAlreadyExists(String::new()).as_code());
    }
    state.stream(&request.stream_id)?.name = request.name;
    done()
}

/// Renames a topic and changes the options that are given.
pub fn topic(state: &mut State, body: &[u8]) -> Answer {
    let request = UpdateTopicRequest::decode_from(body).map_err(malformed)?;
    for option in &request.options {
        let is_option = |key: &&str| key.as_bytes() == option.key;
        if !UPDATABLE_TOPIC_OPTION_KEYS.iter().any(is_option) {
            return Err(unsupported(option.key));
        }
    }
    let topics = &mut state.stream(&request.stream_id)?.topics;
    let id = topics.find(&request.topic_id).ok_or_else(topic_missing)?;
    if is_anothers(topics, &request.name, id) {
        let error = IggyError::TopicNameAlreadyExists(String::new(), Identifier::default());
        return Err(error.as_code());
    }
    let topic = topics
        .get_mut(&request.topic_id)
        .ok_or_else(topic_missing)?;
    change(topic, &request).map_err(|error| error.as_code())?;
    topic.name = request.name;
    done()
}

fn change(topic: &mut Topic, request: &UpdateTopicRequest) -> Result<(), IggyError> {
    let given = TopicCreateOptions::parse(&request.options)?;
    let mut options = resource_options_from_wire_split(&topic.options, &topic.derived_options)?;
    options.extend(resource_options_from_wire(&request.options, true)?);
    (topic.options, topic.derived_options) = resource_options_to_wire_split(&options)?;
    if let Some(compression) = given.compression_algorithm {
        topic.compression_algorithm = compression.as_code();
    }
    if let Some(expiry) = given.message_expiry {
        topic.message_expiry = expiry.into();
    }
    if let Some(size) = given.max_topic_size {
        topic.max_topic_size = size.into();
    }
    Ok(())
}

fn is_anothers<T: Named>(things: &Slots<T>, name: &WireName, id: u32) -> bool {
    things
        .iter()
        .any(|(other, thing)| other != id && thing.name() == name)
}

fn unsupported(key: &[u8]) -> u32 {
    let key = String::from_utf8_lossy(key).into_owned();
    IggyError::UnsupportedOptionKey(key).as_code()
}
