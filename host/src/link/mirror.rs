//! Stores how far a link's lanes are as consumer offsets at the source, so that Iggy's own tools show the lag.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::report::Status;
use crate::cluster::{self, Client, Partition};

/// A lane that is mirrored.
#[derive(Debug)]
pub struct Mirrored {
    partition: Partition,
    status: Arc<Status>,
    stored: Option<u64>,
}

impl Mirrored {
    /// The lane that reads `partition`.
    pub const fn new(partition: Partition, status: Arc<Status>) -> Self {
        Self {
            partition,
            status,
            stored: None,
        }
    }
}

/// Stores the lanes' offsets under `consumer` every `interval` until `stop`, and then once more. Nothing depends on
/// them, so a failure is logged once and tried again at the next turn.
pub async fn run<C: Client>(
    mut client: C,
    consumer: String,
    mut lanes: Vec<Mirrored>,
    interval: Duration,
    stop: CancellationToken,
) {
    let mut failing = false;
    while !stop.is_cancelled() {
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = stop.cancelled() => {}
        }
        let mut failure = None;
        for lane in &mut lanes {
            let settled = lane.status.next_offset.load(Ordering::Relaxed);
            let Some(offset) = settled.checked_sub(1) else {
                continue;
            };
            if lane.stored == Some(offset) {
                continue;
            }
            match client
                .store_offset(&consumer, &lane.partition, offset)
                .await
            {
                Ok(()) => lane.stored = Some(offset),
                Err(error) => failure = Some(error),
            }
            if failure.as_ref().is_some_and(cluster::Error::is_retryable) {
                // The other lanes' would fail alike, each after its time limit.
                break;
            }
        }
        if let Some(error) = &failure
            && !failing
        {
            tracing::warn!(
                consumer,
                "the source does not take the lanes' offsets, so its own tools show no lag; copying goes on: {error}"
            );
        }
        failing = failure.is_some();
    }
}
