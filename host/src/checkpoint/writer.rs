//! Writes the checkpoints of all lanes together, so that a durable write is shared.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{Checkpoint, LaneKey, Mark, Store, StoreError};
use crate::cluster::Partition;
use crate::lock;

/// Collects checkpoints and writes them durably, at the latest after an interval.
///
/// A checkpoint that lags behind what the destination confirmed is safe: after a crash the lane finds what it had
/// sent at the destination.
#[derive(Debug)]
pub struct Writer {
    store: Arc<dyn Store>,
    pending: Mutex<BTreeMap<LaneKey, Checkpoint>>,
    dirty: Notify,
    writing: tokio::sync::Mutex<()>,
}

impl Writer {
    /// A writer for `store`.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            pending: Mutex::default(),
            dirty: Notify::new(),
            writing: tokio::sync::Mutex::default(),
        }
    }

    /// The checkpoint of a lane as it was last written, see [`Store::load`].
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn load(
        &self,
        key: &LaneKey,
        usual: &Partition,
    ) -> Result<Option<Checkpoint>, StoreError> {
        self.store.load(key, usual).await
    }

    /// See [`Store::mark`].
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn mark(&self, key: &LaneKey, to: &Partition) -> Result<Option<Mark>, StoreError> {
        self.store.mark(key, to).await
    }

    /// Takes a lane's newest checkpoint, to be written soon.
    pub fn record(&self, key: &LaneKey, checkpoint: Checkpoint) {
        lock(&self.pending).insert(key.clone(), checkpoint);
        self.dirty.notify_one();
    }

    /// Writes what was recorded so far; when this returns it is durable.
    ///
    /// # Errors
    /// [`StoreError`] when it could not be written; it is kept for the next try.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let _one_at_a_time = self.writing.lock().await;
        let batch: Vec<_> = std::mem::take(&mut *lock(&self.pending))
            .into_iter()
            .collect();
        if batch.is_empty() {
            return Ok(());
        }
        let mut unwritten = Unwritten(self, batch);
        let written = self.store.save(&unwritten.1).await;
        if written.is_ok() {
            unwritten.1.clear();
        }
        written
    }

    /// Flushes at most once per `interval` while there is something to write, until `stop`; then a last time.
    ///
    /// # Errors
    /// [`StoreError`] when the last flush fails. Earlier failures are logged and repeated.
    pub async fn run(&self, interval: Duration, stop: CancellationToken) -> Result<(), StoreError> {
        while !stop.is_cancelled() {
            tokio::select! {
                biased;
                () = self.dirty.notified() => {}
                () = stop.cancelled() => break,
            }
            if let Err(error) = self.flush().await {
                tracing::error!(%error, "checkpoints are not written; replication goes on, and they are tried again");
                self.dirty.notify_one();
            }
            tokio::select! {
                biased;
                () = tokio::time::sleep(interval) => {}
                () = stop.cancelled() => break,
            }
        }
        self.flush().await
    }
}

/// Checkpoints on their way to the store; they go back to the pending ones unless they are written, also when the
/// flush is cancelled half way.
struct Unwritten<'a>(&'a Writer, Vec<(LaneKey, Checkpoint)>);

impl Drop for Unwritten<'_> {
    fn drop(&mut self) {
        let mut pending = lock(&self.0.pending);
        for (key, checkpoint) in self.1.drain(..) {
            pending.entry(key).or_insert(checkpoint);
        }
    }
}
