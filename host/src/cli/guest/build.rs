//! `sluice guest build`.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use sluice_guest_build::{Builder, Language, Project};

use crate::cli::Exit;
use crate::guest::inspect;

const CONTRACT: &str = include_str!("../../../../wit/sluice-guest.wit");

/// Arguments of `sluice guest build`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The folder of the guest, as `sluice guest new` makes it.
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// Where the component is written; NAME.wasm in the folder NAME when left out.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The contract; the guest's own folder `wit` when left out, or else that of this sluice.
    #[arg(long, value_name = "FOLDER")]
    wit: Option<PathBuf>,
    #[expect(clippy::doc_markdown, reason = "this is the text of --help")]
    /// Install the tools that are missing: from PyPI and npm into `--tools`, by rustup, and as root on Debian by apt-get.
    #[arg(long)]
    install: bool,
    /// Where tools are installed; sluice/tools in the user's cache folder when left out.
    #[arg(long, value_name = "FOLDER", env = "SLUICE_TOOLS")]
    tools: Option<PathBuf>,
}

/// Tests the guest and builds its component.
///
/// # Errors
/// The exit code and its reason.
pub fn execute(arguments: &Arguments) -> Result<Exit, (Exit, anyhow::Error)> {
    let usage = |error| (Exit::Usage, error);
    let folder = std::fs::canonicalize(&arguments.folder)
        .with_context(|| format!("cannot open the folder {}", arguments.folder.display()))
        .map_err(usage)?;
    let language = Language::of(&folder).map_err(usage)?;
    let out = out(arguments, &folder).map_err(usage)?;
    let tools = tools(arguments).map_err(usage)?;
    let size =
        build(arguments, &folder, language, &tools, &out).map_err(|error| (Exit::Guest, error))?;
    eprintln!("{} has {} KiB", out.display(), size.div_ceil(1024));
    Ok(Exit::Success)
}

fn out(arguments: &Arguments, folder: &Path) -> anyhow::Result<PathBuf> {
    if let Some(out) = &arguments.out {
        let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
            bail!("--out: there is no folder {}", parent.display());
        }
        return Ok(out.clone());
    }
    let name = folder.file_name().ok_or_else(|| {
        anyhow!("the folder has no name: say with `--out` where the component goes")
    })?;
    let mut file = name.to_owned();
    file.push(".wasm");
    Ok(folder.join(file))
}

fn tools(arguments: &Arguments) -> anyhow::Result<PathBuf> {
    if let Some(tools) = &arguments.tools {
        return std::path::absolute(tools).context("cannot find the folder of --tools");
    }
    let cache = super::cache().context("say with `--tools` where tools are installed")?;
    Ok(cache.join("tools"))
}

fn build(
    arguments: &Arguments,
    folder: &Path,
    language: Language,
    tools: &Path,
    out: &Path,
) -> anyhow::Result<usize> {
    let work = folder.join("target");
    let wit = match &arguments.wit {
        Some(wit) => std::fs::canonicalize(wit)
            .with_context(|| format!("cannot open the contract {}", wit.display()))?,
        None => contract(folder, &work)?,
    };
    let builder = Builder {
        tools: tools.to_owned(),
        install: arguments.install,
        note: &|text| eprintln!("{text}"),
    };
    let project = Project {
        source: folder,
        wit: &wit,
        work: &work,
    };
    let bytes = builder.build(language, project)?;
    let inspection = inspect(&bytes).map_err(|reason| anyhow!("it built, but {reason}"))?;
    if let Some(import) = inspection.imports.iter().find(|import| !import.possible) {
        bail!("it built, but imports {}, which no guest gets", import.name);
    }
    if !inspection.grants.is_empty() {
        eprintln!("it needs grants = {{ {} }}", inspection.grants.join(", "));
    }
    // At once, for a gateway may watch the file.
    let new = out.with_extension("wasm.new");
    std::fs::write(&new, &bytes)
        .and_then(|()| std::fs::rename(&new, out))
        .with_context(|| format!("cannot write {}", out.display()))?;
    Ok(bytes.len())
}

/// The guest's own copy of the contract, or else the one that this sluice has.
fn contract(folder: &Path, work: &Path) -> anyhow::Result<PathBuf> {
    let own = folder.join("wit");
    if own.is_dir() {
        return Ok(own);
    }
    let copy = work.join("wit");
    std::fs::create_dir_all(&copy)
        .and_then(|()| std::fs::write(copy.join("sluice-guest.wit"), CONTRACT))
        .with_context(|| format!("cannot write {}", copy.display()))?;
    Ok(copy)
}
