//! Streams.

use iggy_binary_protocol::codec::{WireDecode, WireEncode};
use iggy_binary_protocol::requests::streams::{
    CreateStreamRequest, DeleteStreamRequest, GetStreamRequest, PurgeStreamRequest,
};
use iggy_binary_protocol::responses::streams::{
    GetStreamResponse, GetStreamsResponse, StreamResponse,
};
use iggy_binary_protocol::{WireIdentifier, WireName, WireOptions};
use iggy_common::IggyError;

use super::{done, malformed, topics};
use crate::partition::Partition;
use crate::state::{Slots, State, Stream, now, stream_missing};
use crate::wire::{Answer, whole};

fn describe(id: u32, stream: &Stream) -> StreamResponse {
    let partitions = || {
        stream
            .topics
            .iter()
            .flat_map(|(_, topic)| &topic.partitions)
    };
    StreamResponse {
        id,
        created_at: stream.created_at,
        topics_count: u32::try_from(stream.topics.len()).unwrap_or(u32::MAX),
        size_bytes: partitions().map(Partition::size).sum(),
        messages_count: partitions().map(Partition::messages).sum(),
        name: stream.name.clone(),
        options: stream.options.clone(),
    }
}

fn details(id: u32, stream: &Stream) -> Answer {
    whole(
        GetStreamResponse {
            stream: describe(id, stream),
            topics: stream
                .topics
                .iter()
                .map(|(id, topic)| topics::header(id, topic))
                .collect(),
        }
        .to_bytes(),
    )
}

pub fn get(state: &State, body: &[u8]) -> Answer {
    let request = GetStreamRequest::decode_from(body).map_err(malformed)?;
    match state.streams.get(&request.stream_id) {
        Some((id, stream)) => details(id, stream),
        None => done(),
    }
}

pub fn list(state: &State) -> Answer {
    let streams = state
        .streams
        .iter()
        .map(|(id, stream)| describe(id, stream))
        .collect();
    whole(GetStreamsResponse { streams }.to_bytes())
}

/// An empty stream.
pub fn new(name: WireName, options: WireOptions) -> Stream {
    Stream {
        name,
        created_at: now(),
        options,
        topics: Slots::default(),
    }
}

pub fn create(state: &mut State, body: &[u8]) -> Answer {
    let request = CreateStreamRequest::decode_from(body).map_err(malformed)?;
    if state.streams.is_taken(&request.name) {
        return Err(IggyError::StreamNameAlreadyExists(String::new()).as_code());
    }
    let id = state.streams.add(new(request.name, request.options));
    let (id, stream) = state
        .streams
        .get(&WireIdentifier::numeric(id))
        .expect("added above");
    details(id, stream)
}

pub fn delete(state: &mut State, body: &[u8]) -> Answer {
    let request = DeleteStreamRequest::decode_from(body).map_err(malformed)?;
    match state.streams.remove(&request.stream_id) {
        Some(_) => done(),
        None => Err(stream_missing()),
    }
}

pub fn purge(state: &mut State, body: &[u8]) -> Answer {
    let request = PurgeStreamRequest::decode_from(body).map_err(malformed)?;
    for topic in state.stream(&request.stream_id)?.topics.values_mut() {
        topic.partitions.iter_mut().for_each(Partition::purge);
    }
    done()
}
