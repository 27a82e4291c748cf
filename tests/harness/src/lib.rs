//! What the end-to-end tests share: two clusters, messages, and the real `sluice` binary as a process.
//!
//! The clusters are dev brokers, or real servers: see `sluice_devbroker::target`. The binary and the guests must be
//! built, as `cargo verify` does.

mod message;
mod process;
mod setup;

pub use message::{Message, header, headers};
pub use process::{Report, Sluice};
pub use setup::{Setup, guest};
