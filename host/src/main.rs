//! The `sluice` binary.

use clap::Parser;
use sluice::cli;

fn main() -> cli::Exit {
    cli::execute(&cli::Arguments::parse())
}
