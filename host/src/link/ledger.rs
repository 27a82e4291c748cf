//! A lane's page in the checkpoint store.

use std::sync::Arc;

use super::Error;
use super::retry::{Retrier, repeat};
use crate::checkpoint::{Checkpoint, LaneKey, Mark, Writer};
use crate::cluster::Partition;

/// Reads and writes the checkpoint of one lane. A store that fails for a while holds the lane up, and no more.
#[derive(Debug)]
pub struct Ledger {
    /// The lane.
    pub key: LaneKey,
    /// Where checkpoints are kept.
    pub writer: Arc<Writer>,
    /// How failed calls are repeated.
    pub retrier: Retrier,
}

impl Ledger {
    /// The checkpoint as it was last written; `usual` is where the lane delivers unless a guest routes elsewhere.
    ///
    /// # Errors
    /// [`Error`] when it cannot be read.
    pub async fn load(&self, usual: &Partition) -> Result<Option<Checkpoint>, Error> {
        repeat!(self.retrier, self.writer.load(&self.key, usual).await)
    }

    /// What a destination partition confirmed to an earlier run, as far as the checkpoint does not say.
    ///
    /// # Errors
    /// [`Error`] when it cannot be read.
    pub async fn mark(&self, to: &Partition) -> Result<Option<Mark>, Error> {
        repeat!(self.retrier, self.writer.mark(&self.key, to).await)
    }

    /// Takes the newest checkpoint, to be written soon.
    pub fn record(&self, checkpoint: Checkpoint) {
        self.writer.record(&self.key, checkpoint);
    }

    /// Writes what was recorded; when this returns it is durable.
    ///
    /// # Errors
    /// [`Error`] when it cannot be written.
    pub async fn flush(&self) -> Result<(), Error> {
        repeat!(self.retrier, self.writer.flush().await)
    }
}
