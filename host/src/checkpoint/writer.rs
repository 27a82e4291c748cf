//! Writes the checkpoints of all lanes together, so that a durable write is shared.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{Checkpoint, LaneKey, LocalStore, StoreError};
use crate::blocking;

/// Collects checkpoints and writes them durably, at the latest after an interval.
///
/// A checkpoint that lags behind what the destination confirmed is safe: after a crash the lane finds what it had
/// sent at the destination.
#[derive(Debug)]
pub struct Writer {
    store: Arc<LocalStore>,
    pending: Mutex<HashMap<LaneKey, Checkpoint>>,
    dirty: Notify,
    writing: tokio::sync::Mutex<()>,
}

impl Writer {
    /// A writer for `store`.
    pub fn new(store: LocalStore) -> Self {
        Self {
            store: Arc::new(store),
            pending: Mutex::default(),
            dirty: Notify::new(),
            writing: tokio::sync::Mutex::default(),
        }
    }

    /// The checkpoint of a lane as it was last written.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub fn load(&self, key: &LaneKey) -> Result<Option<Checkpoint>, StoreError> {
        self.store.load(key)
    }

    /// Takes a lane's newest checkpoint, to be written soon.
    pub fn record(&self, key: &LaneKey, checkpoint: Checkpoint) {
        self.lock().insert(key.clone(), checkpoint);
        self.dirty.notify_one();
    }

    /// Writes what was recorded so far; when this returns it is on disk.
    ///
    /// # Errors
    /// [`StoreError`] when it could not be written; it is kept for the next try.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let _one_at_a_time = self.writing.lock().await;
        let batch = std::mem::take(&mut *self.lock());
        if batch.is_empty() {
            return Ok(());
        }
        let store = Arc::clone(&self.store);
        let (batch, written) = blocking(move || {
            let written = store.save(batch.iter());
            (batch, written)
        })
        .await;
        if written.is_err() {
            let mut pending = self.lock();
            for (key, checkpoint) in batch {
                pending.entry(key).or_insert(checkpoint);
            }
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
                () = self.dirty.notified() => {}
                () = stop.cancelled() => break,
            }
            if let Err(error) = self.flush().await {
                tracing::error!(%error, "checkpoints are not written; replication goes on, and they are tried again");
                self.dirty.notify_one();
            }
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                () = stop.cancelled() => break,
            }
        }
        self.flush().await
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<LaneKey, Checkpoint>> {
        // A map is whole at any time, also if a thread panicked while it held the lock.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
