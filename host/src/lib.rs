//! Sluice: a replication gateway for Apache Iggy that runs WebAssembly guests over every message.
//!
//! The path of a message: [`link`]'s lane polls it from a [`cluster`] as part of a [`batch`], asks the
//! [`guest`]s, routes and sends it, and settles it in the [`checkpoint`]. [`gateway`] puts the parts together
//! from a [`config`].

pub mod admin;
pub mod batch;
pub mod checkpoint;
pub mod cli;
pub mod cluster;
pub mod config;
pub mod gateway;
pub mod guest;
pub mod link;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks what stays whole also where a thread panics while it holds the lock: a value that is replaced or added to in
/// one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs work that blocks, such as a guest or a durable write, away from the threads that serve connections.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    }
}
