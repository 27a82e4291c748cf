//! Why a link stopped before it was told to.

use crate::checkpoint::StoreError;
use crate::cluster;
use crate::guest::ChainError;

/// Why a link stopped before it was told to. Nothing is lost: it goes on from its checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A cluster refused, or the bounded retries ran out.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// A guest cannot be started.
    #[error(transparent)]
    Guest(#[from] ChainError),
    /// A guest fails on message after message.
    #[error("guest `{guest}` fails on message after message, at last with: {reason}")]
    GuestKeepsFailing {
        /// Its name.
        guest: String,
        /// How it failed last.
        reason: String,
    },
    /// The checkpoint store failed.
    #[error(transparent)]
    Checkpoint(#[from] StoreError),
    /// What is to be copied, or where to, does not exist.
    #[error("{0}")]
    Topology(String),
    /// The source answers what cannot be copied.
    #[error("{0}")]
    Source(String),
    /// The source is another than it was.
    #[error(
        "{0}. Nothing is copied until you decide: restore the source, set `on_source_reset` of the link to \"restart\" \
         or \"continue\", or set the checkpoint with `sluice checkpoint set`"
    )]
    Reset(String),
    /// The source no longer has messages that were due, and the link's policy is to stop.
    #[error(
        "{0}; the link stops because its on_gap is \"stop\": set it to \"continue\", or the checkpoint with \
         `sluice checkpoint set`"
    )]
    Gap(String),
    /// A guest failed on a message and the link's policy is to stop.
    #[error(
        "{partition} offset {offset}: {culprit}{reason}; the link stops before this message because its on_error \
         is \"stop\""
    )]
    Stopped {
        /// The source partition.
        partition: String,
        /// Offset of the message.
        offset: u64,
        /// The guest, where one is to blame.
        culprit: String,
        /// Why.
        reason: String,
    },
    /// The gateway was told to stop, and the lanes took longer than they may.
    #[error(
        "not drained within {0}: cut off; nothing is lost, the next start finds what was delivered and goes on"
    )]
    Undrained(humantime::FormattedDuration),
    /// It was cut off lately, and something of it may still be under way.
    #[error(
        "cut off while it drained; what it was sending may still arrive: reload again in {} s, when that is over",
        .0.as_secs() + 1
    )]
    CutOff(std::time::Duration),
    /// The gateway was told to stop while a call was being retried.
    #[error("stopped while waiting to try again")]
    Interrupted,
}
