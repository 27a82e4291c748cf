//! `sluice guest new`.

mod files;

use std::path::PathBuf;

use anyhow::{Context, anyhow, ensure};

use crate::cli::Exit;

/// Arguments of `sluice guest new`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Name of the guest and of its folder: small letters, digits and dashes.
    #[arg(value_parser = name)]
    name: String,
    /// The language.
    #[arg(long)]
    lang: Language,
    /// The folder in which that of the guest is made.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    within: PathBuf,
}

/// A language that there is a project for.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Language {
    Rust,
    Js,
    Python,
    C,
}

fn name(text: &str) -> Result<String, String> {
    let known = |character: char| {
        character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-'
    };
    if text == "sluice-guest" {
        return Err("the SDK has this name".to_owned());
    }
    let begins = text.starts_with(|character: char| character.is_ascii_lowercase());
    if begins && text.chars().all(known) && !text.ends_with('-') && text.len() <= 64 {
        Ok(text.to_owned())
    } else {
        Err(
            "a name has up to 64 small letters, digits and dashes, begins with a letter and does not end with a dash"
                .to_owned(),
        )
    }
}

/// Writes the project.
///
/// # Errors
/// The exit code and its reason.
pub fn execute(arguments: &Arguments) -> Result<Exit, (Exit, anyhow::Error)> {
    write(arguments).map_err(|error| (Exit::Usage, error))?;
    let folder = arguments.within.join(&arguments.name);
    eprintln!(
        "{} is a guest that filters by a header: see its README.md, and build it with `sluice guest build {}`",
        folder.display(),
        folder.display()
    );
    Ok(Exit::Success)
}

fn write(arguments: &Arguments) -> anyhow::Result<()> {
    let folder = arguments.within.join(&arguments.name);
    ensure!(
        !folder.exists(),
        "{} is there already: choose another name, or another folder with `--within`",
        folder.display()
    );
    for (path, text) in files::of(arguments.lang) {
        let file = folder.join(path);
        let parent = file
            .parent()
            .ok_or_else(|| anyhow!("a file lies in a folder"))?;
        std::fs::create_dir_all(parent)
            .with_context(|| format!("cannot create {}", parent.display()))?;
        std::fs::write(&file, text.replace("{{name}}", &arguments.name))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}
