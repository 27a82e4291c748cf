//! One connection: requests in lockstep, each with the fate that the faults have for it.

use std::sync::Arc;

use bytes::Bytes;
use iggy_binary_protocol::codes::{
    LOGIN_REGISTER_CODE, PING_CODE, POLL_MESSAGES_CODE, SEND_MESSAGES_CODE,
};
use iggy_binary_protocol::consensus::EvictionReason;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;

use crate::broker::Shared;
use crate::faults::{Action, Gate};
use crate::requests::messages::Send;
use crate::requests::place::Place;
use crate::requests::{self, messages, users};
use crate::state::State;
use crate::wire::{self, Answer, Request};

/// What the execution of a request comes to.
pub enum Outcome {
    /// It is answered.
    Answer(Answer),
    /// The server says nothing at all.
    Silent,
    /// The session ends.
    Evict(EvictionReason),
    /// It was executed, but what came of it could not be saved: the connection closes.
    Unsaved,
}

/// Whether the connection goes on.
enum Next {
    Request,
    Close,
}

/// An open connection. Its session ends with it, however it ends.
struct Connection {
    shared: Arc<Shared>,
    id: u32,
    address: String,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.state().leave(self.id);
        self.shared.connections().remove(&self.id);
        self.shared.changed();
    }
}

/// Serves a connection until either side closes it. It counts as open from the call on.
pub fn serve(shared: Arc<Shared>, stream: TcpStream, id: u32) -> impl Future<Output = ()> {
    let mut closing = shared.closing();
    shared.connections().insert(id);
    let mut connection = Connection {
        shared,
        id,
        address: String::new(),
    };
    async move {
        let ended = tokio::select! {
            ended = connection.converse(stream) => ended,
            _ = closing.changed() => Ok(()),
        };
        if let Err(error) = ended {
            tracing::debug!(id, %error, "connection ended");
        }
    }
}

impl Connection {
    async fn converse(&mut self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        self.address = stream.peer_addr()?.to_string();
        let (mut reader, mut writer) = stream.into_split();
        while let Some(header) = wire::read_header(&mut reader).await? {
            let length = wire::body_length(&header);
            if self.shared.faults.take_cut(wire::code(&header)) {
                wire::read_body(&mut reader, length / 2).await?;
                return Ok(());
            }
            let body = wire::read_body(&mut reader, length).await?;
            let request = Request { header, body };
            self.shared.count(request.code());
            match self.answer(request, &mut writer).await? {
                Next::Request => {}
                Next::Close => return Ok(()),
            }
        }
        Ok(())
    }

    async fn answer(&self, request: Request, writer: &mut OwnedWriteHalf) -> std::io::Result<Next> {
        let header = request.header;
        let action = self.fate(&request);
        match &action {
            Some(Action::CloseBefore) => return Ok(Next::Close),
            Some(Action::Ignore) => return Ok(Next::Request),
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
        let outcome = match &action {
            Some(Action::HoldExecution(gate)) => self.execute_later(request, gate.clone()).await,
            _ => execute(
                &self.shared,
                request,
                self.id,
                &self.address,
                action.as_ref(),
            ),
        };
        match outcome {
            Outcome::Answer(answer) => {
                let frame = wire::reply(&header, &answer);
                reply(writer, &frame, action, |code| {
                    wire::reply(&header, &Err(code))
                })
                .await
            }
            Outcome::Silent => Ok(Next::Request),
            Outcome::Evict(reason) => {
                wire::write(writer, &wire::eviction(header.client, reason)).await?;
                Ok(Next::Close)
            }
            Outcome::Unsaved => Ok(Next::Close),
        }
    }

    fn fate(&self, request: &Request) -> Option<Action> {
        let faults = &self.shared.faults;
        if faults.is_idle() {
            return None;
        }
        let code = request.code();
        let place = Place::of(&self.shared.state(), code, &request.body);
        faults.take(code, &place)
    }

    /// Executes a request when the gate opens, in a task of its own: also when the client has gone by then.
    async fn execute_later(&self, request: Request, gate: Gate) -> Outcome {
        let (shared, id, address) = (Arc::clone(&self.shared), self.id, self.address.clone());
        if let Err(code) = admit(&shared, request.code(), id) {
            return Outcome::Answer(Err(code));
        }
        let execution = tokio::spawn(async move {
            gate.pass().await;
            execute_admitted(&shared, request, id, &address, None)
        });
        match execution.await {
            Ok(outcome) => outcome,
            Err(error) => {
                tracing::error!(%error, "a request could not be executed");
                Outcome::Silent
            }
        }
    }
}

/// Answers an executed request, as well as its fate allows.
async fn reply(
    writer: &mut OwnedWriteHalf,
    frame: &[Bytes],
    action: Option<Action>,
    refusal: impl Fn(u32) -> Vec<Bytes>,
) -> std::io::Result<Next> {
    match action {
        Some(Action::LoseReply) => return Ok(Next::Close),
        Some(Action::CutReply) => {
            wire::write_half(writer, frame).await?;
            return Ok(Next::Close);
        }
        Some(Action::RefuseAfter(code)) => wire::write(writer, &refusal(code)).await?,
        Some(Action::Silence) => {}
        Some(Action::HoldReply(gate)) => {
            gate.pass().await;
            wire::write(writer, frame).await?;
        }
        Some(Action::Delay(time)) => {
            tokio::time::sleep(time).await;
            wire::write(writer, frame).await?;
        }
        _ => wire::write(writer, frame).await?,
    }
    Ok(Next::Request)
}

/// Whether a connection may ask for this.
fn admit(shared: &Shared, code: u32, id: u32) -> Result<(), u32> {
    match code {
        LOGIN_REGISTER_CODE | PING_CODE => Ok(()),
        _ => shared.state().admit(id),
    }
}

fn execute(
    shared: &Shared,
    request: Request,
    id: u32,
    address: &str,
    action: Option<&Action>,
) -> Outcome {
    match admit(shared, request.code(), id) {
        Ok(()) => execute_admitted(shared, request, id, address, action),
        Err(code) => Outcome::Answer(Err(code)),
    }
}

fn execute_admitted(
    shared: &Shared,
    request: Request,
    id: u32,
    address: &str,
    action: Option<&Action>,
) -> Outcome {
    let code = request.code();
    let body = request.body;
    let outcome = match code {
        LOGIN_REGISTER_CODE => users::log_in(&mut shared.state(), &body, id, address),
        SEND_MESSAGES_CODE => {
            let confirm = !matches!(action, Some(Action::LoseConfirmation));
            let send = Send::read(body);
            messages::send(&mut shared.state(), send, confirm)
        }
        POLL_MESSAGES_CODE => {
            let hide = matches!(action, Some(Action::EmptyPoll));
            let mut state = shared.state();
            let answer = messages::poll(&mut state, &body, id, hide);
            saved(&mut state, answer, messages::commits(&body))
        }
        _ => {
            let mut state = shared.state();
            let answer = requests::answer(&mut state, shared, code, &body, id);
            saved(&mut state, answer, true)
        }
    };
    shared.changed();
    outcome
}

/// The answer to a request; where it may have changed something, only once that is saved.
fn saved(state: &mut State, answer: Answer, may_have_changed: bool) -> Outcome {
    if may_have_changed && state.save().is_err() {
        return Outcome::Unsaved;
    }
    Outcome::Answer(answer)
}
