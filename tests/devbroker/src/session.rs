//! One connection: requests in lockstep, each with the fate that the faults have for it.

use std::sync::Arc;

use bytes::Bytes;
use iggy_binary_protocol::codec::WireDecode;
use iggy_binary_protocol::codes::{
    LOGIN_REGISTER_CODE, PING_CODE, POLL_MESSAGES_CODE, SEND_MESSAGES_CODE,
};
use iggy_binary_protocol::consensus::EvictionReason;
use iggy_binary_protocol::requests::messages::{PollMessagesRequest, SendMessagesHeader};
use iggy_binary_protocol::{WireIdentifier, WirePartitioning};
use iggy_common::IggyError;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;

use crate::broker::Shared;
use crate::faults::Action;
use crate::requests;
use crate::wire::{self, Answer, Request};

/// What the execution of a request comes to.
pub enum Outcome {
    /// It is answered.
    Answer(Answer),
    /// The server says nothing at all.
    Silent,
    /// The session ends.
    Evict(EvictionReason),
}

/// Whether the connection goes on.
enum Next {
    Request,
    Close,
}

/// Serves a connection until it closes.
pub async fn serve(shared: Arc<Shared>, stream: TcpStream, id: u32) {
    let outcome = converse(&shared, stream, id).await;
    if let Err(error) = outcome {
        tracing::debug!(id, %error, "connection ended");
    }
    shared.state().leave(id);
    shared.changed();
}

async fn converse(shared: &Arc<Shared>, stream: TcpStream, id: u32) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let address = stream.peer_addr()?.to_string();
    let (mut reader, mut writer) = stream.into_split();
    while let Some(header) = wire::read_header(&mut reader).await? {
        let length = wire::body_length(&header);
        let empty = Request {
            header,
            body: Bytes::new(),
        };
        if shared.faults.take_cut(empty.code()) {
            wire::read_body(&mut reader, length / 2).await?;
            return Ok(());
        }
        let body = wire::read_body(&mut reader, length).await?;
        let request = Request { header, body };
        shared.count(request.code());
        match answer(shared, request, id, &address, &mut writer).await? {
            Next::Request => {}
            Next::Close => return Ok(()),
        }
    }
    Ok(())
}

async fn answer(
    shared: &Arc<Shared>,
    request: Request,
    id: u32,
    address: &str,
    writer: &mut OwnedWriteHalf,
) -> std::io::Result<Next> {
    let header = request.header;
    let action = shared
        .faults
        .take(request.code(), partition_of(&request).as_ref());
    match &action {
        Some(Action::CloseBefore) => return Ok(Next::Close),
        Some(Action::Refuse(code)) => {
            wire::write(writer, &wire::reply(&header, &Err(*code))).await?;
            return Ok(Next::Request);
        }
        Some(Action::Evict(reason)) => {
            wire::write(writer, &wire::eviction(header.client, *reason)).await?;
            return Ok(Next::Close);
        }
        _ => {}
    }
    let outcome = execute(shared, request, id, address, action.clone()).await;
    let answer = match outcome {
        Outcome::Answer(answer) => answer,
        Outcome::Silent => return Ok(Next::Request),
        Outcome::Evict(reason) => {
            wire::write(writer, &wire::eviction(header.client, reason)).await?;
            return Ok(Next::Close);
        }
    };
    let frame = wire::reply(&header, &answer);
    match action {
        Some(Action::LoseReply) => return Ok(Next::Close),
        Some(Action::CutReply) => {
            wire::write_half(writer, &frame).await?;
            return Ok(Next::Close);
        }
        Some(Action::RefuseAfter(code)) => {
            wire::write(writer, &wire::reply(&header, &Err(code))).await?;
        }
        Some(Action::Silence) => {}
        Some(Action::HoldReply(gate)) => {
            gate.pass().await;
            wire::write(writer, &frame).await?;
        }
        Some(Action::Delay(time)) => {
            tokio::time::sleep(time).await;
            wire::write(writer, &frame).await?;
        }
        _ => wire::write(writer, &frame).await?,
    }
    Ok(Next::Request)
}

/// Executes a request in a task of its own, so that a held one is executed also when the client has gone.
async fn execute(
    shared: &Arc<Shared>,
    request: Request,
    id: u32,
    address: &str,
    action: Option<Action>,
) -> Outcome {
    let (shared, address) = (Arc::clone(shared), address.to_owned());
    let execution = async move {
        if let Some(Action::HoldExecution(gate)) = &action {
            gate.pass().await;
        }
        let outcome = run(&shared, &request, id, &address, action.as_ref());
        shared.changed();
        outcome
    };
    match tokio::spawn(execution).await {
        Ok(outcome) => outcome,
        Err(error) => {
            tracing::error!(%error, "a request could not be executed");
            Outcome::Silent
        }
    }
}

fn run(
    shared: &Shared,
    request: &Request,
    id: u32,
    address: &str,
    action: Option<&Action>,
) -> Outcome {
    let code = request.code();
    let mut state = shared.state();
    if code == LOGIN_REGISTER_CODE {
        return requests::users::log_in(&mut state, &request.body, id, address);
    }
    if code != PING_CODE && !state.sessions.contains_key(&id) {
        return Outcome::Answer(Err(IggyError::Unauthenticated.as_code()));
    }
    match code {
        SEND_MESSAGES_CODE => {
            let confirm = !matches!(action, Some(Action::LoseConfirmation));
            requests::messages::send(&mut state, &request.body, confirm)
        }
        POLL_MESSAGES_CODE => {
            let hide = matches!(action, Some(Action::EmptyPoll));
            Outcome::Answer(requests::messages::poll(
                &mut state,
                &request.body,
                id,
                hide,
            ))
        }
        _ => Outcome::Answer(requests::answer(
            &mut state,
            shared,
            code,
            &request.body,
            id,
        )),
    }
}

/// The topic's name and the partition that a send or a poll is about.
fn partition_of(request: &Request) -> Option<(String, u32)> {
    let (topic, partition) = match request.code() {
        SEND_MESSAGES_CODE => {
            let header = requests::messages::send_header(&request.body).ok()?.0;
            let SendMessagesHeader {
                topic_id,
                partitioning,
                ..
            } = header;
            match partitioning {
                WirePartitioning::PartitionId(partition) => (topic_id, partition),
                _ => return None,
            }
        }
        POLL_MESSAGES_CODE => {
            let poll = PollMessagesRequest::decode_from(&request.body).ok()?;
            (poll.topic_id, poll.partition_id.unwrap_or(0))
        }
        _ => return None,
    };
    match topic {
        WireIdentifier::String(name) => Some((name.to_string(), partition)),
        WireIdentifier::Numeric(_) => None,
    }
}
