//! Guests: WebAssembly components that decide over messages. Only this module names wasmtime.

mod bindings;
mod breaker;
mod chain;
mod component;
mod decision;
mod engine;
mod fields;
mod grants;
mod inspect;
mod instance;
mod limits;
mod pack;
pub mod samples;
mod slot;
mod stats;

pub use chain::{Chain, ChainError};
pub use component::{Component, LoadError, LoadReason, Version};
pub use decision::{Edit, Failure, Fate, Outcome, RouteChoice, Stage};
pub use engine::Engine;
pub use inspect::{Import, Inspection, inspect};
pub use instance::Fault;
pub use slot::{GuestStatus, Slot};
pub use stats::{Own, Stats};

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::batch::{Frame, Polled};
use crate::cluster::Partition;

/// Decides over the batches of one source partition, in their order.
pub trait Judge: Send {
    /// The judge comes back with what it decided, at least about one message unless there is a pause. Where that is not
    /// the whole batch, it wants to be asked about the rest, and about nothing else, after any pause.
    fn judge(self: Box<Self>, batch: Arc<Polled>) -> Judging;
}

/// A batch that is being decided over.
pub type Judging = Pin<Box<dyn Future<Output = (Box<dyn Judge>, Judged)> + Send>>;

/// What was decided over a batch.
#[derive(Debug)]
pub struct Judged {
    /// One outcome a message, of a front part of the batch or of all of it.
    pub outcomes: Vec<Outcome>,
    /// A guest keeps failing and should be left alone.
    pub pause: Option<Pause>,
}

/// What to wait for before a guest is asked again.
pub struct Pause {
    /// Name of the guest in the configuration.
    pub guest: String,
    /// How it failed last.
    pub reason: String,
    /// How long this is.
    pub time: Duration,
    /// The end of that time, or somebody having the guest loaded anew.
    pub over: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl std::fmt::Debug for Pause {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { guest, reason, .. } = self;
        write!(formatter, "{guest} for {:?}: {reason}", self.time)
    }
}

/// The source partition that a chain of guests serves.
#[derive(Debug, Clone)]
pub struct Source {
    /// Name of the cluster in the configuration.
    pub cluster: String,
    /// The partition.
    pub partition: Partition,
}

impl std::fmt::Display for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}:{}", self.cluster, self.partition)
    }
}

/// A message as a guest sees it: its numbers as polled, its bytes as the guests before left them.
#[derive(Debug, Clone, Copy)]
struct View<'a> {
    frame: &'a Frame,
    payload: &'a [u8],
    headers: &'a [u8],
}

impl<'a> View<'a> {
    fn new(batch: &'a Polled, frame: &'a Frame, edit: Option<&'a Edit>) -> Self {
        Self {
            frame,
            payload: edit
                .and_then(|edit| edit.payload.as_deref())
                .unwrap_or_else(|| batch.payload(frame)),
            headers: edit
                .and_then(|edit| edit.headers.as_deref())
                .unwrap_or_else(|| batch.headers(frame)),
        }
    }
}
