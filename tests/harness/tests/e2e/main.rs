//! The real `sluice` binary between two clusters.

mod bad_input;
mod checkpoints;
mod copy;
mod crash;
mod dead_letters;
mod endurance;
mod examples;
mod faults;
mod guests;
mod reload;
mod sources;
