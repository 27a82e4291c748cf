//! Requests by their command code.

mod groups;
pub mod messages;
mod offsets;
pub mod place;
pub mod streams;
mod system;
pub mod topics;
mod updates;
pub mod users;

use bytes::Bytes;
use iggy_binary_protocol::WireError;
use iggy_binary_protocol::codes::{
    CHANGE_PASSWORD_CODE, CREATE_CONSUMER_GROUP_CODE, CREATE_PARTITIONS_CODE,
    CREATE_PERSONAL_ACCESS_TOKEN_CODE, CREATE_STREAM_CODE, CREATE_TOPIC_CODE, CREATE_USER_CODE,
    DELETE_CONSUMER_GROUP_CODE, DELETE_CONSUMER_OFFSET_CODE, DELETE_PARTITIONS_CODE,
    DELETE_PERSONAL_ACCESS_TOKEN_CODE, DELETE_STREAM_CODE, DELETE_TOPIC_CODE, DELETE_USER_CODE,
    GET_CLIENT_CODE, GET_CLIENTS_CODE, GET_CLUSTER_METADATA_CODE, GET_CONSUMER_GROUP_CODE,
    GET_CONSUMER_GROUPS_CODE, GET_CONSUMER_OFFSET_CODE, GET_ME_CODE,
    GET_PERSONAL_ACCESS_TOKENS_CODE, GET_STATS_CODE, GET_STREAM_CODE, GET_STREAMS_CODE,
    GET_TOPIC_CODE, GET_TOPICS_CODE, GET_USER_CODE, GET_USERS_CODE, JOIN_CONSUMER_GROUP_CODE,
    LEAVE_CONSUMER_GROUP_CODE, LOGOUT_USER_CODE, PING_CODE, PURGE_STREAM_CODE, PURGE_TOPIC_CODE,
    STORE_CONSUMER_OFFSET_CODE, SYNC_CONSUMER_GROUP_CODE, UPDATE_STREAM_CODE, UPDATE_TOPIC_CODE,
};
use iggy_common::IggyError;

use crate::broker::Shared;
use crate::state::State;
use crate::wire::{Answer, whole};

/// Executes every request but logins, sends and polls.
pub fn answer(state: &mut State, shared: &Shared, code: u32, body: &[u8], id: u32) -> Answer {
    match code {
        PING_CODE => done(),
        GET_CLUSTER_METADATA_CODE => system::cluster(shared),
        GET_STATS_CODE => system::stats(state),
        GET_ME_CODE => system::client(state, id),
        GET_CLIENT_CODE => system::client_by_id(state, body),
        GET_CLIENTS_CODE => system::clients(state),
        LOGOUT_USER_CODE => users::log_out(state, id),
        GET_USER_CODE => users::get(state, body),
        GET_USERS_CODE => users::list(state),
        CREATE_USER_CODE => users::create(state, body),
        DELETE_USER_CODE => users::delete(state, body),
        CHANGE_PASSWORD_CODE => users::change_password(state, body),
        GET_PERSONAL_ACCESS_TOKENS_CODE => users::tokens(state, id),
        CREATE_PERSONAL_ACCESS_TOKEN_CODE => users::create_token(state, body, id),
        DELETE_PERSONAL_ACCESS_TOKEN_CODE => users::delete_token(state, body, id),
        GET_STREAM_CODE => streams::get(state, body),
        GET_STREAMS_CODE => streams::list(state),
        CREATE_STREAM_CODE => streams::create(state, body),
        DELETE_STREAM_CODE => streams::delete(state, body),
        UPDATE_STREAM_CODE => updates::stream(state, body),
        PURGE_STREAM_CODE => streams::purge(state, body),
        GET_TOPIC_CODE => topics::get(state, body),
        GET_TOPICS_CODE => topics::list(state, body),
        CREATE_TOPIC_CODE => topics::create(state, body),
        DELETE_TOPIC_CODE => topics::delete(state, body),
        UPDATE_TOPIC_CODE => updates::topic(state, body),
        PURGE_TOPIC_CODE => topics::purge(state, body),
        CREATE_PARTITIONS_CODE => topics::add_partitions(state, body),
        DELETE_PARTITIONS_CODE => topics::remove_partitions(state, body),
        GET_CONSUMER_OFFSET_CODE => offsets::get(state, body),
        STORE_CONSUMER_OFFSET_CODE => offsets::store(state, body),
        DELETE_CONSUMER_OFFSET_CODE => offsets::delete(state, body),
        GET_CONSUMER_GROUP_CODE => groups::get(state, body),
        GET_CONSUMER_GROUPS_CODE => groups::list(state, body),
        CREATE_CONSUMER_GROUP_CODE => groups::create(state, body),
        DELETE_CONSUMER_GROUP_CODE => groups::delete(state, body),
        JOIN_CONSUMER_GROUP_CODE => groups::join(state, body, id),
        LEAVE_CONSUMER_GROUP_CODE => groups::leave(state, body, id),
        SYNC_CONSUMER_GROUP_CODE => groups::sync(state, body, id),
        _ => Err(IggyError::FeatureUnavailable.as_code()),
    }
}

/// Success without content.
fn done() -> Answer {
    whole(Bytes::new())
}

/// A body that does not decode.
fn malformed(_: WireError) -> u32 {
    IggyError::InvalidCommand.as_code()
}
