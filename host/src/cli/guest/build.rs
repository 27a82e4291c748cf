//! `sluice guest build`.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use sluice_guest_build::{Builder, Language, Project};

use crate::cli::Exit;
use crate::guest::inspect;

/// Arguments of `sluice guest build`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The folder of the guest, as `sluice guest new` makes it.
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// Where the component is written; NAME.wasm in the folder NAME when left out.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The contract; the guest's own folder `wit` when left out.
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
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let cache = cache.filter(|folder| folder.is_absolute()).or_else(home);
    let cache = cache.context("there is no HOME: say with `--tools` where tools are installed")?;
    Ok(cache.join("sluice/tools"))
}

fn build(
    arguments: &Arguments,
    folder: &Path,
    language: Language,
    tools: &Path,
    out: &Path,
) -> anyhow::Result<usize> {
    let wit = arguments.wit.clone().unwrap_or_else(|| folder.join("wit"));
    let wit = std::fs::canonicalize(&wit)
        .with_context(|| format!("cannot open the contract {}", wit.display()))?;
    let builder = Builder {
        tools: tools.to_owned(),
        install: arguments.install,
        note: &|text| eprintln!("{text}"),
    };
    let project = Project {
        source: folder,
        wit: &wit,
        work: &folder.join("target"),
    };
    let bytes = builder.build(language, project)?;
    let inspection = inspect(&bytes).map_err(|reason| anyhow!("it built, but {reason}"))?;
    if let Some(import) = inspection.imports.iter().find(|import| !import.possible) {
        bail!("it built, but imports {}, which no guest gets", import.name);
    }
    for import in &inspection.imports {
        if let Some(grant) = &import.grant {
            eprintln!("{} needs the grant {grant}", import.name);
        }
    }
    std::fs::write(out, &bytes).with_context(|| format!("cannot write {}", out.display()))?;
    Ok(bytes.len())
}
