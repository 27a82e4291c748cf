//! What a lane does, and what became of the messages.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde::Serialize;

use crate::cluster::Fault;
use crate::lock;

/// Running totals of a lane since the gateway started. Every settled message is in exactly one of `forwarded`, `dropped`
/// and `dead_lettered`; a message that several destinations get is forwarded once.
#[derive(Debug, Default)]
pub struct Counts {
    /// Settled by delivery to every destination.
    pub forwarded: AtomicU64,
    /// Settled by a guest's verdict, or by the policy `drop`.
    pub dropped: AtomicU64,
    /// Settled in the dead-letter topic.
    pub dead_lettered: AtomicU64,
    /// Messages that a guest rejected or failed on, or that could not be sent, whatever became of them.
    pub failed: AtomicU64,
    /// Messages that the source no longer had when they were due.
    pub gaps: AtomicU64,
    /// Messages that were found at the destination after a send of unknown outcome or a restart, and so not sent
    /// again.
    pub found: AtomicU64,
    /// Messages that destinations confirmed.
    pub sent: AtomicU64,
    /// How often the source turned out to be another than it was.
    pub resets: AtomicU64,
    /// Failed calls that were repeated, by the place of their fault in [`Fault::ALL`].
    pub retries: [AtomicU64; Fault::ALL.len()],
}

impl Counts {
    /// Adds to one total.
    pub fn add(total: &AtomicU64, count: usize) {
        total.fetch_add(count as u64, Ordering::Relaxed);
    }
}

/// What needs attention although the lane goes on by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Alert {
    /// A guest fails on message after message, and the lane waits before it asks it again.
    GuestPaused {
        /// Its name.
        guest: String,
        /// How it failed last.
        error: String,
    },
    /// A call to a cluster keeps failing.
    Retrying {
        /// What failed last, and why.
        error: String,
    },
    /// The source gives no message at this offset although it says that it has some.
    ReadFault {
        /// The offset that is due.
        offset: u64,
    },
}

/// Where a lane is in its life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum State {
    /// It looks up where to go on.
    Starting,
    /// It copies.
    Running,
    /// It ended as it was told to, or with its link.
    Stopped,
    /// It cannot go on.
    Failed {
        /// Why, and the remedy.
        error: String,
    },
}

/// What a lane does, as it goes on. Written by the lane, read by anyone.
#[derive(Debug)]
pub struct Status {
    /// Name of the link.
    pub link: String,
    /// The source partition.
    pub source: String,
    /// Totals.
    pub counts: Arc<Counts>,
    /// Every message below this source offset is settled.
    pub next_offset: AtomicU64,
    /// The offset after the source's newest message, when it was last polled.
    pub source_end: AtomicU64,
    state: Mutex<State>,
    /// A repeated call, a read fault and a pause come and go independently; the read fault is the gravest one.
    retrying: Mutex<Option<String>>,
    read_fault: Mutex<Option<u64>>,
    paused: Mutex<Option<Alert>>,
}

impl Status {
    /// Of the lane of `link` that reads `source`.
    pub fn new(link: &str, source: &str) -> Self {
        Self {
            link: link.to_owned(),
            source: source.to_owned(),
            counts: Arc::default(),
            next_offset: AtomicU64::new(0),
            source_end: AtomicU64::new(0),
            state: Mutex::new(State::Starting),
            retrying: Mutex::new(None),
            read_fault: Mutex::new(None),
            paused: Mutex::new(None),
        }
    }

    /// Of a lane that goes on where another one ended, with the totals of both.
    pub(super) fn after(ended: &Self) -> Self {
        Self {
            counts: Arc::clone(&ended.counts),
            ..Self::new(&ended.link, &ended.source)
        }
    }

    /// Where the lane is in its life.
    pub fn state(&self) -> State {
        lock(&self.state).clone()
    }

    /// What needs attention.
    pub fn alerts(&self) -> Vec<Alert> {
        let retrying = lock(&self.retrying).clone();
        let read_fault = *lock(&self.read_fault);
        let retrying = retrying.map(|error| Alert::Retrying { error });
        let read_fault = read_fault.map(|offset| Alert::ReadFault { offset });
        let paused = lock(&self.paused).clone();
        read_fault
            .into_iter()
            .chain(retrying)
            .chain(paused)
            .collect()
    }

    pub(super) fn guest_paused(&self, alert: Option<Alert>) {
        *lock(&self.paused) = alert;
    }

    pub(super) fn enter(&self, state: State) {
        *lock(&self.state) = state;
    }

    /// Tells what is being repeated; tells whether that is news.
    pub(super) fn retrying(&self, error: Option<String>) {
        *lock(&self.retrying) = error;
    }

    /// Tells at which offset the source gives nothing; returns whether that is news.
    pub(super) fn read_fault(&self, offset: Option<u64>) -> bool {
        std::mem::replace(&mut *lock(&self.read_fault), offset) != offset
    }

    pub(super) fn settled(&self, next_offset: u64) {
        self.next_offset.store(next_offset, Ordering::Relaxed);
    }
}

/// A lane's totals.
#[derive(Debug, Clone, Serialize)]
pub struct LaneReport {
    /// The source partition.
    pub source: String,
    /// Where the lane is in its life.
    #[serde(flatten)]
    pub state: State,
    /// What needs attention.
    pub alerts: Vec<Alert>,
    /// Messages settled by delivery.
    pub forwarded: u64,
    /// Messages settled by dropping.
    pub dropped: u64,
    /// Messages settled as dead letters.
    pub dead_lettered: u64,
    /// Messages that a guest rejected or failed on, or that could not be sent.
    pub failed: u64,
    /// Messages that the source lost before they were copied.
    pub gaps: u64,
    /// How often the source was another than before.
    pub resets: u64,
    /// Messages found at the destination instead of sent again.
    pub found: u64,
    /// Messages confirmed by destinations; one message may go to several.
    pub sent: u64,
    /// Failed calls that were repeated.
    pub retries: u64,
    /// The source offset from which the lane goes on.
    pub next_offset: u64,
    /// Messages at the source from there on, when it was last polled.
    pub lag: u64,
}

impl From<&Status> for LaneReport {
    fn from(status: &Status) -> Self {
        let read = |total: &AtomicU64| total.load(Ordering::Relaxed);
        let counts = &status.counts;
        let next_offset = read(&status.next_offset);
        Self {
            source: status.source.clone(),
            state: status.state(),
            alerts: status.alerts(),
            forwarded: read(&counts.forwarded),
            dropped: read(&counts.dropped),
            dead_lettered: read(&counts.dead_lettered),
            failed: read(&counts.failed),
            gaps: read(&counts.gaps),
            resets: read(&counts.resets),
            found: read(&counts.found),
            sent: read(&counts.sent),
            retries: counts.retries.iter().map(read).sum(),
            next_offset,
            lag: read(&status.source_end).saturating_sub(next_offset),
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
pub(super) fn display<S: serde::Serializer>(
    error: &Option<super::Error>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let text = error.as_ref().map(ToString::to_string);
    text.serialize(serializer)
}
