//! The real `sluice` binary between two clusters.

mod bad_input;
mod breaker;
mod checkpoints;
mod config_reload;
mod copy;
mod crash;
mod dead_letters;
mod endurance;
mod examples;
mod faults;
mod grants;
mod guests;
mod projects;
mod reload;
mod samples;
mod sources;
