//! What became of the messages.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// Running totals of a lane since it started. Every settled message is in exactly one of `forwarded`, `dropped`
/// and `dead_lettered`; a message that several destinations get is forwarded once.
#[derive(Debug, Default)]
pub struct Counts {
    /// Settled by delivery to every destination.
    pub forwarded: AtomicU64,
    /// Settled by a guest's verdict, or by the policy `drop`.
    pub dropped: AtomicU64,
    /// Settled in the dead-letter topic.
    pub dead_lettered: AtomicU64,
    /// Messages that a guest rejected or failed on, whatever became of them.
    pub failed: AtomicU64,
    /// Messages that the source no longer had when they were due.
    pub gaps: AtomicU64,
    /// Messages that were found at the destination after a send of unknown outcome or a restart, and so not sent
    /// again.
    pub found: AtomicU64,
    /// Messages that destinations confirmed.
    pub sent: AtomicU64,
}

impl Counts {
    /// Adds to one total.
    pub fn add(total: &AtomicU64, count: usize) {
        total.fetch_add(count as u64, Ordering::Relaxed);
    }
}

/// A lane's totals.
#[derive(Debug, Clone, Serialize)]
pub struct LaneReport {
    /// The source partition.
    pub source: String,
    /// Messages settled by delivery.
    pub forwarded: u64,
    /// Messages settled by dropping.
    pub dropped: u64,
    /// Messages settled as dead letters.
    pub dead_lettered: u64,
    /// Messages that a guest rejected or failed on.
    pub failed: u64,
    /// Messages that the source lost before they were copied.
    pub gaps: u64,
    /// Messages found at the destination instead of sent again.
    pub found: u64,
    /// Messages confirmed by destinations; one message may go to several.
    pub sent: u64,
    /// The source offset from which the lane goes on.
    pub next_offset: u64,
}

impl LaneReport {
    /// The totals of the lane that reads `source`, and where it goes on.
    pub fn new(source: String, counts: &Counts, next_offset: u64) -> Self {
        let read = |total: &AtomicU64| total.load(Ordering::Relaxed);
        Self {
            source,
            forwarded: read(&counts.forwarded),
            dropped: read(&counts.dropped),
            dead_lettered: read(&counts.dead_lettered),
            failed: read(&counts.failed),
            gaps: read(&counts.gaps),
            found: read(&counts.found),
            sent: read(&counts.sent),
            next_offset,
        }
    }
}

/// What a link did, and why it stopped.
#[derive(Debug, Serialize)]
pub struct LinkReport {
    /// Name of the link.
    pub link: String,
    /// One entry a source partition.
    pub lanes: Vec<LaneReport>,
    /// Why it stopped before it was told to, if it did.
    #[serde(serialize_with = "display")]
    pub error: Option<super::Error>,
}

#[expect(clippy::ref_option, reason = "the signature that serde calls")]
fn display<S: serde::Serializer>(
    error: &Option<super::Error>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let text = error.as_ref().map(ToString::to_string);
    text.serialize(serializer)
}
