//! An Iggy-compatible broker for demos and tests: real framing and handshake over TCP, partitions in memory
//! or, on request, in a folder.
//!
//! It is not a product. It exists to be exact, so that what holds against it holds against the real server, and to
//! be cruel on demand: see [`Faults`]. It listens on loopback addresses only.

mod broker;
mod faults;
mod groups;
mod inspect;
pub mod partition;
mod requests;
mod session;
mod state;
mod storage;
pub mod target;
mod wire;

pub use broker::{Broker, Loss, Options};
pub use faults::{Action, Faults, Gate, Rule};
pub use inspect::Stored;
pub use requests::messages::send_header;
pub use storage::{Data, SAVE_EVERY};
