//! The command line.

mod checkpoint;
mod dead_letters;
mod exit;
mod guest;
mod logging;
mod run;

use std::io::IsTerminal;
use std::path::Path;

use clap::{Parser, Subcommand, ValueEnum};

pub use exit::Exit;

use crate::config::{self, Config};

/// Replicates Apache Iggy streams from one cluster to another and runs WebAssembly guests over every message.
///
/// Exit codes: 0 ended as asked; 1 unexpected failure; 2 wrong arguments or configuration; 3 a guest cannot be
/// used; 4 a cluster, topic or source cannot be used; 5 the checkpoint store cannot be used; 6 not
/// drained within the drain timeout; 130 ended by a second signal without draining.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true)]
pub struct Arguments {
    /// How log lines look; `auto` is coloured text on a terminal and plain text elsewhere.
    #[arg(long, global = true, default_value = "auto", env = "SLUICE_LOG_FORMAT")]
    pub log_format: LogFormat,
    /// Which log lines are written, for example `info` or `sluice=debug,guest=warn`.
    #[arg(long, global = true, default_value = "info", env = "SLUICE_LOG")]
    pub log: String,
    #[command(subcommand)]
    command: Command,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Coloured text on a terminal, plain text elsewhere.
    Auto,
    /// Text.
    Text,
    /// One JSON object a line.
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Replicate until stopped.
    ///
    /// SIGINT or SIGTERM drains: what was polled is delivered and settled, then the process ends with 0 and prints
    /// what each lane did, as a table on a terminal and as JSON elsewhere. A second signal ends it at once. Either
    /// way the next start goes on after the last settled message. SIGHUP takes up the configuration file anew.
    Run(run::Arguments),
    /// Show, set, export and import how far lanes are, while the gateway is stopped.
    Checkpoint(checkpoint::Arguments),
    /// List, show and replay the messages that a link could not process.
    ///
    /// Output is a table on a terminal and JSON elsewhere.
    #[command(subcommand)]
    DeadLetters(dead_letters::Command),
    /// Make, build, inspect and test guests, without any cluster.
    #[command(subcommand)]
    Guest(guest::Command),
}

/// An error with its causes, each said once: many tell theirs themselves.
fn text(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Text of other people on a terminal: control characters but line ends and tabs are escaped.
fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() && !matches!(character, '\n' | '\t') {
            safe.extend(character.escape_default());
        } else {
            safe.push(character);
        }
    }
    safe
}

/// The configuration in `path`, with the environment's overrides.
fn load(path: &Path) -> Result<Config, config::Error> {
    let environment = std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)));
    config::load(path, environment)
}

/// Runs the command; returns how the process ends. Errors go to stderr.
pub fn execute(arguments: &Arguments) -> Exit {
    if let Err(error) = logging::start(arguments) {
        eprintln!("sluice: {error}");
        return Exit::Usage;
    }
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("sluice: cannot start the runtime: {error}");
            return Exit::Unexpected;
        }
    };
    let outcome = match &arguments.command {
        Command::Run(arguments) => runtime.block_on(run::execute(arguments)),
        Command::Checkpoint(arguments) => runtime.block_on(checkpoint::execute(arguments)),
        Command::DeadLetters(command) => runtime.block_on(dead_letters::execute(command)),
        // What guests are granted starts work on the runtime and waits for it, which must not happen on the runtime.
        Command::Guest(command) => {
            let _runtime = runtime.enter();
            guest::execute(command)
        }
    };
    // What still blocks, such as a guest in an endless loop, must not hold up the end.
    runtime.shutdown_background();
    outcome.unwrap_or_else(|(exit, error)| {
        let colour = std::io::stderr().is_terminal();
        let (red, plain) = if colour {
            ("\x1b[31m", "\x1b[0m")
        } else {
            ("", "")
        };
        eprintln!("{red}error:{plain} {}", text(&error));
        exit
    })
}
