//! Why a link stopped before it was told to.

use crate::checkpoint::StoreError;
use crate::cluster;
use crate::guest::{ChainError, LoadError};

/// Why a link stopped before it was told to. Nothing is lost: it goes on from its checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A cluster refused, or the bounded retries ran out.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// A guest's component cannot be used.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A guest cannot be started.
    #[error(transparent)]
    Guest(#[from] ChainError),
    /// The checkpoint store failed.
    #[error(transparent)]
    Checkpoint(#[from] StoreError),
    /// What is to be copied, or where to, does not exist.
    #[error("{0}")]
    Topology(String),
    /// The source no longer continues what was copied.
    #[error("{0}")]
    Source(String),
    /// A guest failed on a message and the link's policy is to stop.
    #[error(
        "{partition} offset {offset}: guest `{guest}`: {reason}; the link stops before this message \
         because its on_error is \"stop\""
    )]
    Stopped {
        /// The source partition.
        partition: String,
        /// Offset of the message.
        offset: u64,
        /// Name of the guest.
        guest: String,
        /// Why.
        reason: String,
    },
    /// The gateway was told to stop while a call was being retried.
    #[error("stopped while waiting to try again")]
    Interrupted,
}
