//! Guests in Rust.

use std::path::Path;

use anyhow::{Context, Result};

use super::toolchain::{TARGET, Toolchain};
use super::{Builder, Project, cargo, encode, read, tools};

/// Tests the package of a project and compiles it to a component.
pub fn build(builder: &Builder<'_>, project: Project<'_>) -> Result<Vec<u8>> {
    let manifest = project.source.join("Cargo.toml");
    let text = String::from_utf8(read(&manifest)?).context("Cargo.toml is no text")?;
    let table: toml::Table = text.parse().context("Cargo.toml is not valid")?;
    let name = |section: &str| table.get(section)?.get("name")?.as_str();
    let package =
        name("package").with_context(|| format!("{} names no package", manifest.display()))?;
    let library = name("lib").unwrap_or(package);
    let mut tests = cargo();
    tests
        .args(["test", "--quiet"])
        .current_dir(project.source)
        .env("CARGO_TARGET_DIR", project.work);
    (builder.note)("testing and compiling, which takes a while the first time");
    tools::build(&mut tests)?;
    let toolchain = Toolchain::find(builder)?;
    let names = (package, library);
    compile(&toolchain, project.source, names, "release", project.work)
}

/// Compiles the library of a package to a component.
pub fn build_package(
    builder: &Builder<'_>,
    folder: &Path,
    package: &str,
    profile: &str,
    target: &Path,
) -> Result<Vec<u8>> {
    let toolchain = Toolchain::find(builder)?;
    compile(&toolchain, folder, (package, package), profile, target)
}

fn compile(
    toolchain: &Toolchain,
    folder: &Path,
    (package, library): (&str, &str),
    profile: &str,
    target: &Path,
) -> Result<Vec<u8>> {
    let mut command = toolchain.cargo(folder, target);
    command
        .args(["rustc", "--package", package, "--lib"])
        .args(["--profile", profile, "--target", TARGET])
        .args(toolchain.arguments())
        .args(["--crate-type", "cdylib"]);
    tools::build(&mut command)?;
    let file = format!("{}.wasm", library.replace('-', "_"));
    encode(&read(&target.join(TARGET).join(profile).join(file))?)
}
