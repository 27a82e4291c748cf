//! What can go wrong at a cluster, sorted by what helps.

use iggy::prelude::IggyError;

use crate::batch::DecodeError;
use crate::config::SecretError;

/// Whose fault a failed call is, and what helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The cluster did not carry the request out, and may do so later.
    Transient,
    /// The network, or a cluster that cannot answer now. Trying again helps. Whether a request took effect is unknown.
    Ambiguous,
    /// The session is gone, or its renewal is refused. Logging in again helps, with a renewed secret at the latest.
    Login,
    /// The cluster does not let this gateway in. The operator must mend credentials or permissions.
    Operator,
    /// A stream, topic or partition does not exist.
    Topology,
    /// The cluster refused this very request, or answered nonsense. The same request fails again.
    Poison,
}

impl Fault {
    /// Each of them.
    pub const ALL: [Self; 6] = [
        Self::Transient,
        Self::Ambiguous,
        Self::Login,
        Self::Operator,
        Self::Topology,
        Self::Poison,
    ];

    /// The name in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Ambiguous => "ambiguous",
            Self::Login => "login",
            Self::Operator => "operator",
            Self::Topology => "topology",
            Self::Poison => "poison",
        }
    }
}

/// A failed call to a cluster.
#[derive(Debug, thiserror::Error)]
#[error("cluster `{cluster}` at {address}: {operation}: {reason}")]
pub struct Error {
    /// Name of the cluster in the configuration.
    pub cluster: String,
    /// Its address.
    pub address: String,
    /// What was attempted, and on what.
    pub operation: String,
    /// What went wrong, and the remedy where one is known.
    pub reason: String,
    /// Whose fault it is.
    pub fault: Fault,
}

impl Error {
    /// Whether the same call may succeed later without anybody's doing.
    pub const fn is_retryable(&self) -> bool {
        matches!(
            self.fault,
            Fault::Transient | Fault::Ambiguous | Fault::Login
        )
    }
}

/// A failure before it is tied to a cluster and an operation.
#[derive(Debug)]
pub(super) struct Cause {
    pub fault: Fault,
    pub reason: String,
}

impl From<IggyError> for Cause {
    fn from(error: IggyError) -> Self {
        let fault = classify(&error);
        let reason = match (&error, fault) {
            (IggyError::CannotEstablishConnection, _) => {
                "cannot connect: nothing listens there, or the network is down".to_owned()
            }
            (IggyError::InvalidCredentials | IggyError::InvalidPersonalAccessToken, _) => {
                format!("{error}: correct the cluster's username, password or token")
            }
            (_, Fault::Operator) => {
                format!("{error}: grant the cluster's user the permission, or use another user")
            }
            _ => error.to_string(),
        };
        Self { fault, reason }
    }
}

impl Cause {
    /// Of a send. Only these say that the batch itself is at fault; whatever else a cluster answers, the messages may be
    /// there, and may be taken later.
    pub(super) fn of_send(error: IggyError) -> Self {
        let code = error.as_code();
        let at_fault = matches!(
            error,
            IggyError::InvalidCommand
                | IggyError::InvalidFormat
                | IggyError::InvalidIdentifier
                | IggyError::InvalidMessagesCount
                | IggyError::InvalidMessagePayloadLength
                | IggyError::TooBigMessagePayload
                | IggyError::TooBigUserHeaders
        );
        let cause = Self::from(error);
        if cause.fault != Fault::Poison || at_fault {
            return cause;
        }
        Self {
            fault: Fault::Ambiguous,
            reason: format!("{} (code {code})", cause.reason),
        }
    }
}

impl From<SecretError> for Cause {
    fn from(error: SecretError) -> Self {
        Self {
            fault: Fault::Operator,
            reason: error.to_string(),
        }
    }
}

impl From<DecodeError> for Cause {
    fn from(error: DecodeError) -> Self {
        Self {
            fault: Fault::Poison,
            reason: error.to_string(),
        }
    }
}

fn classify(error: &IggyError) -> Fault {
    match error {
        IggyError::InvalidCredentials
        | IggyError::InvalidPersonalAccessToken
        | IggyError::InvalidUsername
        | IggyError::InvalidPassword
        | IggyError::PersonalAccessTokenExpired(..)
        | IggyError::Unauthorized
        | IggyError::UserInactive => Fault::Operator,
        IggyError::ResourceNotFound(_)
        | IggyError::StreamIdNotFound(_)
        | IggyError::StreamNameNotFound(_)
        | IggyError::TopicIdNotFound(..)
        | IggyError::TopicNameNotFound(..)
        | IggyError::NoPartitions(..)
        | IggyError::PartitionNotFound(..) => Fault::Topology,
        IggyError::TransientNotAccepted => Fault::Transient,
        IggyError::StaleClient | IggyError::Unauthenticated => Fault::Login,
        // Over the binary protocol these carry no more than their code, and none says that a request had no effect.
        IggyError::Disconnected
        | IggyError::CannotEstablishConnection
        | IggyError::NotConnected
        | IggyError::ConnectionClosed
        | IggyError::ClientShutdown
        | IggyError::EmptyResponse
        | IggyError::TcpError
        | IggyError::TransientNotCommitted
        | IggyError::RequestAlreadyApplied
        | IggyError::ShardCommunicationError
        | IggyError::TaskTimeout
        | IggyError::IoError(_) => Fault::Ambiguous,
        _ => Fault::Poison,
    }
}
