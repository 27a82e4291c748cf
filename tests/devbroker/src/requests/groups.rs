//! Consumer groups.

use iggy_binary_protocol::WireIdentifier;
use iggy_binary_protocol::codec::{WireDecode, WireEncode};
use iggy_binary_protocol::requests::consumer_groups::{
    CreateConsumerGroupRequest, DeleteConsumerGroupRequest, GetConsumerGroupRequest,
    GetConsumerGroupsRequest, JoinConsumerGroupRequest, LeaveConsumerGroupRequest,
    SyncConsumerGroupRequest,
};
use iggy_binary_protocol::responses::consumer_groups::get_consumer_group::ConsumerGroupMemberResponse;
use iggy_binary_protocol::responses::consumer_groups::{
    ConsumerGroupDetailsResponse, ConsumerGroupResponse, GetConsumerGroupsResponse,
    SyncConsumerGroupResponse,
};
use iggy_common::{Identifier, IggyError};

use super::{done, malformed};
use crate::groups::Group;
use crate::state::{State, Topic, group_missing};
use crate::wire::{Answer, whole};

fn describe(id: u32, group: &Group, topic: &Topic) -> ConsumerGroupResponse {
    ConsumerGroupResponse {
        id,
        partitions_count: u32::try_from(topic.partitions.len()).unwrap_or(u32::MAX),
        members_count: u32::try_from(group.members.len()).unwrap_or(u32::MAX),
        name: group.name.clone(),
    }
}

fn details(id: u32, group: &Group, topic: &Topic) -> Answer {
    let members = group
        .members
        .iter()
        .map(|&member| {
            let partitions = group
                .owned_by(member, topic.partitions.len())
                .unwrap_or_default();
            ConsumerGroupMemberResponse {
                id: member,
                partitions_count: u32::try_from(partitions.len()).unwrap_or(u32::MAX),
                partitions,
            }
        })
        .collect();
    whole(
        ConsumerGroupDetailsResponse {
            group: describe(id, group, topic),
            members,
        }
        .to_bytes(),
    )
}

pub fn get(state: &mut State, body: &[u8]) -> Answer {
    let request = GetConsumerGroupRequest::decode_from(body).map_err(malformed)?;
    let topic = state.topic(&request.stream_id, &request.topic_id)?;
    match topic.groups.get(&request.group_id) {
        Some((id, group)) => details(id, group, topic),
        None => done(),
    }
}

pub fn list(state: &mut State, body: &[u8]) -> Answer {
    let request = GetConsumerGroupsRequest::decode_from(body).map_err(malformed)?;
    let topic = state.topic(&request.stream_id, &request.topic_id)?;
    let groups = topic
        .groups
        .iter()
        .map(|(id, group)| describe(id, group, topic))
        .collect();
    whole(GetConsumerGroupsResponse { groups }.to_bytes())
}

pub fn create(state: &mut State, body: &[u8]) -> Answer {
    let request = CreateConsumerGroupRequest::decode_from(body).map_err(malformed)?;
    let topic = state.topic(&request.stream_id, &request.topic_id)?;
    if topic.groups.is_taken(&request.name) {
        let error = IggyError::ConsumerGroupNameAlreadyExists(String::new(), Identifier::default());
        return Err(error.as_code());
    }
    let id = topic.groups.add(Group::new(request.name));
    let (id, group) = topic
        .groups
        .get(&WireIdentifier::numeric(id))
        .expect("added above");
    details(id, group, topic)
}

pub fn delete(state: &mut State, body: &[u8]) -> Answer {
    let request = DeleteConsumerGroupRequest::decode_from(body).map_err(malformed)?;
    let topic = state.topic(&request.stream_id, &request.topic_id)?;
    match topic.groups.remove(&request.group_id) {
        Some(_) => done(),
        None => Err(group_missing()),
    }
}

pub fn join(state: &mut State, body: &[u8], connection: u32) -> Answer {
    let request = JoinConsumerGroupRequest::decode_from(body).map_err(malformed)?;
    group(
        state,
        &request.stream_id,
        &request.topic_id,
        &request.group_id,
    )?
    .join(connection);
    done()
}

pub fn leave(state: &mut State, body: &[u8], connection: u32) -> Answer {
    let request = LeaveConsumerGroupRequest::decode_from(body).map_err(malformed)?;
    group(
        state,
        &request.stream_id,
        &request.topic_id,
        &request.group_id,
    )?
    .leave(connection);
    done()
}

/// The caller's partitions; nothing for one who is no member.
pub fn sync(state: &mut State, body: &[u8], connection: u32) -> Answer {
    let request = SyncConsumerGroupRequest::decode_from(body).map_err(malformed)?;
    let topic = state.topic(&request.stream_id, &request.topic_id)?;
    let (_, group) = topic
        .groups
        .get(&request.group_id)
        .ok_or_else(group_missing)?;
    match group.owned_by(connection, topic.partitions.len()) {
        None => done(),
        Some(partitions) => whole(
            SyncConsumerGroupResponse {
                generation: group.generation,
                partitions,
            }
            .to_bytes(),
        ),
    }
}

fn group<'a>(
    state: &'a mut State,
    stream: &WireIdentifier,
    topic: &WireIdentifier,
    group: &WireIdentifier,
) -> Result<&'a mut Group, u32> {
    state
        .topic(stream, topic)?
        .groups
        .get_mut(group)
        .ok_or_else(group_missing)
}
