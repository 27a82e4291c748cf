//! Builds guests from source: in Rust and C, compile to a core module, then encode a component; in other languages, with
//! the language's own tool. Each build runs the guest's own tests first.

mod c;
mod javascript;
mod python;
mod rust;
mod toolchain;
mod tools;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use wit_component::ComponentEncoder;

pub use c::{WIT_BINDGEN, write_bindings};

/// What builds use.
pub struct Builder<'a> {
    /// Where tools are installed that the system has not.
    pub tools: PathBuf,
    /// Whether tools may be installed: there, by rustup, or as root on Debian by apt-get.
    pub install: bool,
    /// Told what takes long.
    pub note: &'a dyn Fn(&str),
}

/// A guest's sources.
#[derive(Debug, Clone, Copy)]
pub struct Project<'a> {
    /// Its folder.
    pub source: &'a Path,
    /// The folder of the contract.
    pub wit: &'a Path,
    /// A folder for what is made on the way; it may be there from an earlier build.
    pub work: &'a Path,
}

/// The language of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// A cargo package with the library of the guest: `Cargo.toml`.
    Rust,
    /// `package.json`, with the guest in `guest.js`.
    JavaScript,
    /// `requirements.txt`, with the guest in `src/app.py`.
    Python,
    /// `guest.c`, with what of it needs no bindings in other files.
    C,
}

impl Language {
    /// Files that tell the language of a project.
    const FILES: [(&str, Self); 4] = [
        ("Cargo.toml", Self::Rust),
        ("package.json", Self::JavaScript),
        ("requirements.txt", Self::Python),
        ("guest.c", Self::C),
    ];

    /// The language of the project in a folder.
    ///
    /// # Errors
    /// When it is none.
    pub fn of(folder: &Path) -> Result<Self> {
        let found = Self::FILES
            .iter()
            .find(|(file, _)| folder.join(file).is_file());
        let Some((_, language)) = found else {
            bail!(
                "{} holds no guest: there is none of {}",
                folder.display(),
                Self::FILES.map(|(file, _)| file).join(", ")
            );
        };
        Ok(*language)
    }
}

impl Builder<'_> {
    /// Tests a guest and builds its component.
    ///
    /// # Errors
    /// When a tool cannot be had, a test of the guest fails, or it does not compile.
    pub fn build(&self, language: Language, project: Project<'_>) -> Result<Vec<u8>> {
        std::fs::create_dir_all(project.work)
            .with_context(|| format!("cannot create {}", project.work.display()))?;
        match language {
            Language::Rust => rust::build(self, project),
            Language::JavaScript => javascript::build(self, project),
            Language::Python => python::build(self, project),
            Language::C => c::build(self, project),
        }
    }

    /// Compiles the library of a cargo package in `folder` to a component, without its tests. `target` is the folder of
    /// what cargo makes.
    ///
    /// # Errors
    /// When there is no compiler, or the package does not compile.
    pub fn build_package(
        &self,
        folder: &Path,
        package: &str,
        profile: &str,
        target: &Path,
    ) -> Result<Vec<u8>> {
        rust::build_package(self, folder, package, profile, target)
    }
}

/// A cargo command, without what another cargo told this program about its own package: that would make build scripts run
/// again.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (variable, _) in std::env::vars_os() {
        let name = variable.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&variable);
        }
    }
    command
}

/// Makes a component of a core module that says which world it is of.
fn encode(module: &[u8]) -> Result<Vec<u8>> {
    ComponentEncoder::default()
        .module(module)
        .and_then(|encoder| encoder.validate(true).encode())
        .context("cannot make a component")
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_known_by_its_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = Language::of(folder.path()).expect_err("nothing there");
        assert!(error.to_string().contains("requirements.txt"), "{error}");
        for (file, language) in Language::FILES.into_iter().rev() {
            std::fs::write(folder.path().join(file), "").expect("written");
            assert_eq!(Language::of(folder.path()).expect("known"), language);
        }
    }
}
