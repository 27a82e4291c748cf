//! `sluice guest`.

mod build;
mod inspect;
mod new;
mod test;

use std::path::PathBuf;

use anyhow::Context;

use super::Exit;

/// What `sluice guest` does.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Make a project for a new guest, with a test and samples.
    New(new::Arguments),
    /// Test a guest and build its component.
    ///
    /// Runs the guest's own tests first. The language is told by the files: Cargo.toml, package.json, requirements.txt or
    /// guest.c. Needs for Rust a compiler with the target wasm32-unknown-unknown, for JavaScript Node.js 20 or newer, for
    /// Python 3.9 or newer with venv, for C clang and lld.
    Build(build::Arguments),
    /// Show what a component file is: its world, what it imports, which grants it needs, its size and version.
    Inspect(inspect::Arguments),
    #[expect(clippy::doc_markdown, reason = "this is the text of --help")]
    /// Run a guest over messages in a file and show what it makes of each, without any cluster.
    ///
    /// A line of the input is a message as JSON, every key of which may be left out: {"offset": 7, "id": 1, "timestamp":
    /// 1700000000000000, "origin_timestamp": 1700000000000000, "headers": [{"key": "region", "value": "eu"}, {"key": "n",
    /// "value": {"kind": "uint32", "value": "3"}}], "payload": "text"}. A payload may also be {"json": ...} or {"hex":
    /// "00ff"}.
    ///
    /// A line of the expectation is for the message in the same place, and holds keys of the output that must be so:
    /// {"verdict": "route", "routes": [{"topic": "orders"}]}. What this command writes to a pipe is such a file.
    ///
    /// Ends with 3 when a message does not come out as expected, or, without expectation, when the guest traps, runs out
    /// of its limits or gives a verdict that cannot be carried out.
    Test(test::Arguments),
}

/// The folder in which sluice keeps what can be made again.
fn cache() -> anyhow::Result<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let cache = cache.filter(|folder| folder.is_absolute()).or_else(home);
    Ok(cache.context("there is no HOME")?.join("sluice"))
}

/// Runs the command.
///
/// # Errors
/// The exit code and its reason.
pub fn execute(command: &Command) -> Result<Exit, (Exit, anyhow::Error)> {
    match command {
        Command::New(arguments) => new::execute(arguments),
        Command::Build(arguments) => build::execute(arguments),
        Command::Inspect(arguments) => inspect::execute(arguments),
        Command::Test(arguments) => test::execute(arguments),
    }
}
