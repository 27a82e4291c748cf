//! `sluice guest inspect`.

use std::io::{IsTerminal, Write as _};
use std::path::PathBuf;

use anyhow::Context;
use bytesize::ByteSize;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::cli::{Exit, printable};
use crate::guest::{Inspection, inspect};

/// Arguments of `sluice guest inspect`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The component file.
    file: PathBuf,
    /// JSON, also on a terminal.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    inspection: Inspection,
    bytes: usize,
    hash: String,
}

/// Shows what the file is.
///
/// # Errors
/// The exit code and its reason.
pub fn execute(arguments: &Arguments) -> Result<Exit, (Exit, anyhow::Error)> {
    let path = arguments.file.display();
    let bytes = std::fs::read(&arguments.file)
        .with_context(|| format!("cannot read {path}"))
        .map_err(|error| (Exit::Usage, error))?;
    let inspection = inspect(&bytes)
        .map_err(|error| (Exit::Guest, anyhow::anyhow!("{path} is no guest: {error}")))?;
    let shown = Shown {
        inspection,
        bytes: bytes.len(),
        hash: format!("{:x}", Sha256::digest(&bytes)),
    };
    print(&shown, arguments.json).map_err(|error| (Exit::Unexpected, error.into()))?;
    Ok(Exit::Success)
}

fn print(shown: &Shown, json: bool) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    if json || !stdout.is_terminal() {
        serde_json::to_writer(&mut stdout, shown)?;
        return writeln!(stdout);
    }
    let Inspection {
        world,
        contract,
        newer,
        grants,
        imports,
        exports,
    } = &shown.inspection;
    writeln!(stdout, "world     {world}")?;
    let note = if *newer {
        "   newer than this sluice has: it loads if it needs nothing new"
    } else {
        ""
    };
    writeln!(
        stdout,
        "contract  sluice:guest@{}{note}",
        printable(contract)
    )?;
    let size = ByteSize::b(shown.bytes as u64).display().iec();
    writeln!(stdout, "size      {size}")?;
    writeln!(stdout, "version   {}", shown.hash)?;
    if !grants.is_empty() {
        writeln!(stdout, "grants    {{ {} }}", grants.join(", "))?;
    }
    for export in exports {
        writeln!(stdout, "exports   {}", printable(export))?;
    }
    for import in imports {
        let note = match (&import.grant, import.possible) {
            (Some(grant), _) => format!("   needs the grant {grant}"),
            (None, true) => String::new(),
            (None, false) => "   no guest gets this".to_owned(),
        };
        writeln!(stdout, "imports   {}{note}", printable(&import.name))?;
    }
    Ok(())
}
