//! Users, tokens, logging in and out.

use iggy_binary_protocol::codec::{WireDecode, WireEncode};
use iggy_binary_protocol::consensus::EvictionReason;
use iggy_binary_protocol::requests::personal_access_tokens::{
    CreatePersonalAccessTokenRequest, DeletePersonalAccessTokenRequest,
};
use iggy_binary_protocol::requests::users::{
    ChangePasswordRequest, CreateUserRequest, DeleteUserRequest, GetUserRequest,
    LoginRegisterRequest, LoginRegisterWithPatRequest,
};
use iggy_binary_protocol::responses::personal_access_tokens::{
    GetPersonalAccessTokensResponse, PersonalAccessTokenResponse, RawPersonalAccessTokenResponse,
};
use iggy_binary_protocol::responses::users::{
    GetUsersResponse, LoginRegisterResponse, UserDetailsResponse, UserResponse,
};
use iggy_binary_protocol::version::{ClientVersionInfo, IGGY_PROTOCOL_VERSION};
use iggy_binary_protocol::{WireIdentifier, WireName};
use iggy_common::IggyError;
use secrecy::ExposeSecret;

use super::{done, malformed};
use crate::session::Outcome;
use crate::state::{Session, State, Token, User, now};
use crate::wire::{Answer, whole};

/// A login with a password or with a token. Both come as the same operation; the bodies tell them apart.
pub fn log_in(state: &mut State, body: &[u8], connection: u32, address: &str) -> Outcome {
    let user = match identify(state, body) {
        Ok(user) => user,
        Err(reason) => return Outcome::Evict(reason),
    };
    state.last_session += 1;
    let session = Session {
        user,
        user_deleted: false,
        address: address.to_owned(),
    };
    state.sessions.insert(connection, session);
    let reply = LoginRegisterResponse {
        user_id: user,
        session: state.last_session,
        server_protocol_version: IGGY_PROTOCOL_VERSION,
        server_version: name("0.11.0-devbroker"),
    };
    Outcome::Answer(whole(reply.to_bytes()))
}

fn identify(state: &State, body: &[u8]) -> Result<u32, EvictionReason> {
    let (version, prefix) =
        ClientVersionInfo::decode(body).map_err(|_| EvictionReason::MalformedLogin)?;
    let tail = &body[prefix..];
    if let Ok((login, length)) = LoginRegisterRequest::decode_after_prefix(version.clone(), tail)
        && length == tail.len()
    {
        let (id, user) = state
            .users
            .get(&WireIdentifier::String(login.username))
            .ok_or(EvictionReason::InvalidCredentials)?;
        return if user.password == login.password.expose_secret() {
            Ok(id)
        } else {
            Err(EvictionReason::InvalidCredentials)
        };
    }
    let (login, _) = LoginRegisterWithPatRequest::decode_after_prefix(version, tail)
        .map_err(|_| EvictionReason::MalformedLogin)?;
    match state.tokens.get(login.token.expose_secret()) {
        Some(token) if token.expires_at == 0 || token.expires_at > now() => Ok(token.user),
        _ => Err(EvictionReason::InvalidToken),
    }
}

pub fn log_out(state: &mut State, connection: u32) -> Answer {
    state.leave(connection);
    done()
}

fn describe(id: u32, user: &User) -> UserResponse {
    UserResponse {
        id,
        created_at: user.created_at,
        status: user.status,
        username: user.name.clone(),
        options: user.options.clone(),
    }
}

fn details(id: u32, user: &User) -> Answer {
    whole(
        UserDetailsResponse {
            user: describe(id, user),
            permissions: None,
        }
        .to_bytes(),
    )
}

pub fn get(state: &State, body: &[u8]) -> Answer {
    let request = GetUserRequest::decode_from(body).map_err(malformed)?;
    match state.users.get(&request.user_id) {
        Some((id, user)) => details(id, user),
        None => done(),
    }
}

pub fn list(state: &State) -> Answer {
    let users = state
        .users
        .iter()
        .map(|(id, user)| describe(id, user))
        .collect();
    whole(GetUsersResponse { users }.to_bytes())
}

pub fn create(state: &mut State, body: &[u8]) -> Answer {
    let request = CreateUserRequest::decode_from(body).map_err(malformed)?;
    if state.users.is_taken(&request.username) {
        return Err(IggyError::UserAlreadyExists.as_code());
    }
    let id = state.users.add(User {
        name: request.username,
        password: request.password,
        created_at: now(),
        status: request.status,
        options: request.options,
    });
    let (id, user) = state
        .users
        .get(&WireIdentifier::numeric(id))
        .expect("added above");
    details(id, user)
}

pub fn delete(state: &mut State, body: &[u8]) -> Answer {
    let request = DeleteUserRequest::decode_from(body).map_err(malformed)?;
    let id = state.users.find(&request.user_id);
    match id {
        Some(0) => Err(IggyError::CannotDeleteUser(0).as_code()),
        Some(id) => {
            state.users.remove(&request.user_id);
            state.tokens.retain(|_, token| token.user != id);
            for session in state.sessions.values_mut() {
                session.user_deleted |= session.user == id;
            }
            done()
        }
        None => Err(IggyError::ResourceNotFound(String::new()).as_code()),
    }
}

pub fn change_password(state: &mut State, body: &[u8]) -> Answer {
    let request = ChangePasswordRequest::decode_from(body).map_err(malformed)?;
    let user = state
        .users
        .get_mut(&request.user_id)
        .ok_or_else(|| IggyError::ResourceNotFound(String::new()).as_code())?;
    if user.password != request.current_password {
        return Err(IggyError::InvalidCredentials.as_code());
    }
    user.password = request.new_password;
    done()
}

fn user_of(state: &State, connection: u32) -> Result<u32, u32> {
    state
        .sessions
        .get(&connection)
        .map(|session| session.user)
        .ok_or_else(|| IggyError::Unauthenticated.as_code())
}

pub fn tokens(state: &State, connection: u32) -> Answer {
    let user = user_of(state, connection)?;
    let tokens = state
        .tokens
        .values()
        .filter(|token| token.user == user)
        .map(|token| PersonalAccessTokenResponse {
            name: token.name.clone(),
            expiry_at: token.expires_at,
        })
        .collect();
    whole(GetPersonalAccessTokensResponse { tokens }.to_bytes())
}

pub fn create_token(state: &mut State, body: &[u8], connection: u32) -> Answer {
    let request = CreatePersonalAccessTokenRequest::decode_from(body).map_err(malformed)?;
    let user = user_of(state, connection)?;
    let mut of_user = state.tokens.values().filter(|token| token.user == user);
    if of_user.any(|token| token.name == request.name) {
        let error = IggyError::PersonalAccessTokenAlreadyExists(String::new(), user);
        return Err(error.as_code());
    }
    state.last_token += 1;
    let text = format!("devbroker-token-{}", state.last_token);
    // Clients that want a token without end send the highest or the lowest number.
    let expires_at = match request.expiry {
        0 | u64::MAX => 0,
        lifetime => now().saturating_add(lifetime),
    };
    let token = Token {
        user,
        name: request.name,
        expires_at,
    };
    state.tokens.insert(text.clone(), token);
    whole(RawPersonalAccessTokenResponse { token: name(&text) }.to_bytes())
}

pub fn delete_token(state: &mut State, body: &[u8], connection: u32) -> Answer {
    let request = DeletePersonalAccessTokenRequest::decode_from(body).map_err(malformed)?;
    let user = user_of(state, connection)?;
    let before = state.tokens.len();
    state
        .tokens
        .retain(|_, token| token.user != user || token.name != request.name);
    if state.tokens.len() == before {
        return Err(IggyError::ResourceNotFound(String::new()).as_code());
    }
    done()
}

fn name(text: &str) -> WireName {
    WireName::new(text.to_owned()).expect("shorter than 256 bytes and not empty")
}
