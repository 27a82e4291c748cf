//! Lines in the gateway's log, with the guest's and the source partition's name. Never log payloads or secrets.

#[cfg(target_family = "wasm")]
use crate::bindings::sluice::guest::host::{Level, log};

/// Stands in for the host in tests: lines go to stderr.
#[cfg(not(target_family = "wasm"))]
#[derive(Debug, Clone, Copy)]
enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

#[cfg(not(target_family = "wasm"))]
fn log(level: Level, message: &str) {
    eprintln!("{level:?}: {message}");
}

/// A line for following single messages.
pub fn trace(message: &str) {
    log(Level::Trace, message);
}

/// A line for finding mistakes.
pub fn debug(message: &str) {
    log(Level::Debug, message);
}

/// A line about the ordinary course of things.
pub fn info(message: &str) {
    log(Level::Info, message);
}

/// A line about something that deserves a look.
pub fn warn(message: &str) {
    log(Level::Warn, message);
}

/// A line about something that is wrong.
pub fn error(message: &str) {
    log(Level::Error, message);
}
