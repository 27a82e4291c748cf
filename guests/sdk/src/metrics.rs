//! Counters and gauges of the guest's own, which the gateway shows among its metrics. A name is 1 to 64 letters, digits
//! and `_`; a guest has at most 64 names.

#[cfg(target_family = "wasm")]
use crate::bindings::sluice::guest::host;

/// Stands in for the host in tests: nothing is kept.
#[cfg(not(target_family = "wasm"))]
mod host {
    pub const fn count(_: &str, _: u64) {}

    pub const fn gauge(_: &str, _: f64) {}
}

/// Adds to a counter, which is the sum over all source partitions.
pub fn count(name: &str, amount: u64) {
    host::count(name, amount);
}

/// Sets a gauge of this source partition.
pub fn gauge(name: &str, value: f64) {
    host::gauge(name, value);
}
