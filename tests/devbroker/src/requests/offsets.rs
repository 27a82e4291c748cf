//! Stored consumer offsets.

use iggy_binary_protocol::WireConsumer;
use iggy_binary_protocol::codec::{WireDecode, WireEncode};
use iggy_binary_protocol::requests::consumer_offsets::{
    DeleteConsumerOffsetRequest, GetConsumerOffsetRequest, StoreConsumerOffsetRequest,
};
use iggy_binary_protocol::responses::consumer_offsets::get_consumer_offset::ConsumerOffsetResponse;
use iggy_common::IggyError;

use super::{done, malformed};
use crate::partition::ConsumerKey;
use crate::state::State;
use crate::wire::{Answer, whole};

/// Under which key a consumer's or a group's offset is stored.
pub fn consumer_key(consumer: &WireConsumer) -> ConsumerKey {
    (consumer.kind, consumer.id.to_bytes().to_vec())
}

pub fn get(state: &mut State, body: &[u8]) -> Answer {
    let request = GetConsumerOffsetRequest::decode_from(body).map_err(malformed)?;
    let id = request.partition_id.unwrap_or(0);
    let partition = state.partition(&request.stream_id, &request.topic_id, id)?;
    match partition.offsets.get(&consumer_key(&request.consumer)) {
        None => done(),
        Some(stored) => whole(
            ConsumerOffsetResponse {
                partition_id: id,
                current_offset: partition.current_offset(),
                stored_offset: *stored,
            }
            .to_bytes(),
        ),
    }
}

pub fn store(state: &mut State, body: &[u8]) -> Answer {
    let request = StoreConsumerOffsetRequest::decode_from(body).map_err(malformed)?;
    let id = request.partition_id.unwrap_or(0);
    let partition = state.partition(&request.stream_id, &request.topic_id, id)?;
    if request.offset >= partition.next_offset() {
        return Err(IggyError::InvalidOffset(request.offset).as_code());
    }
    let key = consumer_key(&request.consumer);
    partition.offsets.insert(key, request.offset);
    done()
}

pub fn delete(state: &mut State, body: &[u8]) -> Answer {
    let request = DeleteConsumerOffsetRequest::decode_from(body).map_err(malformed)?;
    let id = request.partition_id.unwrap_or(0);
    let partition = state.partition(&request.stream_id, &request.topic_id, id)?;
    match partition.offsets.remove(&consumer_key(&request.consumer)) {
        Some(_) => done(),
        None => Err(IggyError::ConsumerOffsetNotFound(0).as_code()),
    }
}
