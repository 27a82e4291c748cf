//! Where checkpoints are kept.

use std::path::PathBuf;

use async_trait::async_trait;

use super::{Checkpoint, LaneKey, Mark};
use crate::cluster::{self, Partition};

/// Keeps the checkpoints of lanes. One gateway at a time writes the checkpoints of a lane.
#[async_trait]
pub trait Store: Send + Sync + std::fmt::Debug {
    /// The checkpoint of a lane that delivers to `usual` unless a guest routes elsewhere; none when it never settled
    /// anything.
    async fn load(
        &self,
        key: &LaneKey,
        usual: &Partition,
    ) -> Result<Option<Checkpoint>, StoreError>;

    /// What a destination partition confirmed to a lane, where [`Store::load`] cannot know which ones there are.
    async fn mark(&self, key: &LaneKey, to: &Partition) -> Result<Option<Mark>, StoreError>;

    /// Writes checkpoints. When this returns they survive the end of the process; after an error each lane has its
    /// earlier or its new one.
    async fn save(&self, checkpoints: &[(LaneKey, Checkpoint)]) -> Result<(), StoreError>;

    /// Forgets what the lane's usual destination confirmed, where [`Store::save`] does not: the lane begins there anew.
    async fn forget_mark(&self, _key: &LaneKey, _usual: &Partition) -> Result<(), StoreError> {
        Ok(())
    }
}

/// A checkpoint store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The embedded store.
    #[error("checkpoint store {path}: {reason}", path = path.display())]
    Local {
        /// The file.
        path: PathBuf,
        /// Why, and the remedy.
        reason: String,
        /// Whether it may work later without anybody's doing, such as on a full disk.
        passing: bool,
    },
    /// The store at the clusters.
    #[error("checkpoints at the clusters: {0}")]
    Server(#[from] cluster::Error),
}

impl StoreError {
    /// Whether the same call may succeed later.
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Local { passing, .. } => *passing,
            Self::Server(error) => error.is_retryable(),
        }
    }
}
