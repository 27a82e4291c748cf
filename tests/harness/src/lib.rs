//! What the end-to-end tests share: two clusters, messages, and the real `sluice` binary as a process.
//!
//! The clusters are dev brokers, or real servers: see `sluice_devbroker::target`. The binary and the guests must be
//! built, as `cargo verify` does.

mod broker_process;
mod client;
mod message;
mod process;
mod setup;

pub use broker_process::{Access, BrokerProcess};
pub use client::{connect, read, send};
pub use message::{Message, header, headers};
pub use process::{PATIENCE, Report, Sluice, target_folder};
pub use setup::{Setup, guest};
