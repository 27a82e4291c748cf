//! Lanes under simulated faults: two clusters in memory, a clock that jumps, and a schedule drawn from a seed.
//!
//! A schedule produces messages, lets requests and replies get lost, restarts clusters, kills the gateway at any await
//! and starts it again from its durable checkpoint. At the end each destination partition must hold exactly what it
//! should, in order. The same seed gives the same schedule.

mod cluster;
mod scenario;
mod store;
mod verify;
mod world;

pub use scenario::Scenario;
pub use world::{Summary, run};
