//! The server itself: its one node, its clients, its numbers.

use bytes::Bytes;
use iggy_binary_protocol::codec::{WireDecode, WireEncode};
use iggy_binary_protocol::requests::system::GetClientRequest;
use iggy_binary_protocol::responses::clients::client_response::{
    ClientResponse, ConsumerGroupInfoResponse,
};
use iggy_binary_protocol::responses::clients::{ClientDetailsResponse, GetClientsResponse};
use iggy_binary_protocol::responses::system::get_cluster_metadata::{
    ClusterMetadataResponse, ClusterNodeResponse,
};
use iggy_binary_protocol::responses::system::get_stats::StatsResponse;

use super::{done, malformed};
use crate::broker::Shared;
use crate::partition::Partition;
use crate::state::{Session, State, now};
use crate::wire::{Answer, whole};

/// Code of TCP among the transports.
const TCP: u8 = 1;

pub fn cluster(shared: &Shared) -> Answer {
    let node = ClusterNodeResponse {
        name: "devbroker".to_owned(),
        ip: shared.address.ip().to_string(),
        tcp_port: shared.address.port(),
        quic_port: 0,
        http_port: 0,
        websocket_port: 0,
        role: 0,
        status: 0,
    };
    whole(
        ClusterMetadataResponse {
            name: "devbroker".to_owned(),
            nodes: vec![node],
        }
        .to_bytes(),
    )
}

fn groups_of(state: &State, connection: u32) -> Vec<ConsumerGroupInfoResponse> {
    let mut groups = Vec::new();
    for (stream_id, stream) in state.streams.iter() {
        for (topic_id, topic) in stream.topics.iter() {
            for (group_id, group) in topic.groups.iter() {
                if group.members.contains(&connection) {
                    groups.push(ConsumerGroupInfoResponse {
                        stream_id,
                        topic_id,
                        group_id,
                    });
                }
            }
        }
    }
    groups
}

fn describe(state: &State, id: u32, session: &Session) -> ClientResponse {
    ClientResponse {
        client_id: id,
        user_id: session.user,
        transport: TCP,
        address: session.address.clone(),
        consumer_groups_count: u32::try_from(groups_of(state, id).len()).unwrap_or(u32::MAX),
    }
}

pub fn client(state: &State, id: u32) -> Answer {
    match state.sessions.get(&id) {
        None => done(),
        Some(session) => whole(
            ClientDetailsResponse {
                client: describe(state, id, session),
                consumer_groups: groups_of(state, id),
            }
            .to_bytes(),
        ),
    }
}

pub fn client_by_id(state: &State, body: &[u8]) -> Answer {
    let request = GetClientRequest::decode_from(body).map_err(malformed)?;
    client(state, request.client_id)
}

pub fn clients(state: &State) -> Answer {
    let clients = state
        .sessions
        .iter()
        .map(|(id, session)| describe(state, *id, session))
        .collect();
    whole(GetClientsResponse { clients }.to_bytes())
}

pub fn stats(state: &State) -> Answer {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let topics = || {
        state
            .streams
            .iter()
            .flat_map(|(_, stream)| stream.topics.iter())
    };
    let partitions = || topics().flat_map(|(_, topic)| &topic.partitions);
    let size = partitions().map(Partition::size).sum();
    let numbers = StatsResponse {
        process_id: std::process::id(),
        cpu_usage: 0.0,
        total_cpu_usage: 0.0,
        memory_usage: 0,
        total_memory: 0,
        available_memory: 0,
        run_time: now().saturating_sub(state.started_at),
        start_time: state.started_at,
        read_bytes: 0,
        written_bytes: size,
        messages_size_bytes: size,
        streams_count: number(state.streams.len()),
        topics_count: number(topics().count()),
        partitions_count: number(partitions().count()),
        segments_count: number(partitions().count()),
        messages_count: partitions().map(Partition::messages).sum(),
        clients_count: number(state.sessions.len()),
        consumer_groups_count: number(topics().map(|(_, topic)| topic.groups.len()).sum()),
        hostname: "localhost".to_owned(),
        os_name: String::new(),
        os_version: String::new(),
        kernel_version: String::new(),
        iggy_server_version: "0.11.0-devbroker".to_owned(),
        iggy_server_semver: None,
        cache_metrics: Vec::new(),
        threads_count: 1,
        free_disk_space: 0,
        total_disk_space: 0,
    };
    let body: Bytes = numbers.to_bytes();
    whole(body)
}
