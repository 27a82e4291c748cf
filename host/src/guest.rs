//! Guests: WebAssembly components that decide over messages. Only this module names wasmtime.

mod bindings;
mod chain;
mod component;
mod decision;
mod engine;
mod fields;
mod grants;
mod instance;
mod limits;
mod pack;
mod slot;
mod stats;

pub use chain::{Chain, ChainError};
pub use component::{Component, LoadError, LoadReason, Version};
pub use decision::{Edit, Failure, Fate, Outcome, RouteChoice, Stage};
pub use engine::Engine;
pub use instance::Fault;
pub use slot::{GuestStatus, Slot};
pub use stats::{Own, Stats};

use std::pin::Pin;
use std::sync::Arc;

use crate::batch::{Frame, Polled};
use crate::cluster::Partition;

/// Decides over the batches of one source partition, in their order.
pub trait Judge: Send {
    /// One outcome a message; the judge comes back with them. An error is no message's fault: there is nobody to ask
    /// any more.
    fn judge(self: Box<Self>, batch: Arc<Polled>) -> Judging;
}

/// A batch that is being decided over.
pub type Judging =
    Pin<Box<dyn Future<Output = (Box<dyn Judge>, Result<Vec<Outcome>, ChainError>)> + Send>>;

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
