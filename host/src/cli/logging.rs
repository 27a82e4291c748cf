//! Log lines go to stderr.

use std::io::IsTerminal;

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use super::{Arguments, LogFormat};

/// The SDK logs every failed call as an error; sluice reports each itself, with what it does about it.
const QUIET: &str = "iggy=off,iggy_common=off";

/// Starts logging as the arguments say.
///
/// # Errors
/// When the filter does not parse.
pub fn start(arguments: &Arguments) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(format!("{QUIET},{}", arguments.log))
        .with_context(|| format!("--log {}: not a log filter", arguments.log))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false);
    match arguments.log_format {
        LogFormat::Json => builder.json().init(),
        LogFormat::Text => builder.with_ansi(false).init(),
        LogFormat::Auto => builder.with_ansi(std::io::stderr().is_terminal()).init(),
    }
    Ok(())
}
