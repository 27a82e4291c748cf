//! Tasks of this workspace: the demo, verification, guest builds.

mod build;
mod demo;
mod guests;
mod progress;
mod verify;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tasks of this workspace. Each does its own set-up.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Replicate shop traffic between two clusters with three guests, and check every message.
    ///
    /// Starts two dev brokers, unless `SLUICE_SOURCE` and `SLUICE_DESTINATION` name clusters to use instead, each as
    /// `iggy://user:password@host:port`. The demo's stream there is deleted at the end.
    Demo,
    /// Build all that the tests need, then run every test.
    Verify {
        /// Passed on to `cargo test`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Build every guest from source into `guests` in the target folder.
    Guests,
    /// Write the bindings of guests in C anew, after a change of the contract.
    Bindings,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Demo => demo::run(),
        Task::Verify { arguments } => verify::run(&arguments),
        Task::Guests => {
            let mut steps = progress::Steps::new(1);
            steps.next("building every guest from source");
            guests::build_all(&steps)
        }
        Task::Bindings => guests::bind(&progress::Steps::new(1)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
