//! The real `sluice` binary between two clusters.

mod bad_input;
mod copy;
mod crash;
mod examples;
mod faults;
mod guests;
