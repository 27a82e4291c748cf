//! Where things are, and building the host.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The root of the workspace.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace")
}

/// The target directory.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || workspace().join("target"),
        |folder| workspace().join(folder),
    )
}

/// A cargo command in the workspace.
pub fn cargo() -> Command {
    let mut command = sluice_guest_build::cargo();
    command.current_dir(workspace());
    command
}

/// Runs a command to its end.
///
/// # Errors
/// When it does not start or fails.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start {command:?}"))?;
    ensure!(status.success(), "{command:?} failed: {status}");
    Ok(())
}

/// Builds the binaries of the workspace; returns the path of `sluice`.
///
/// # Errors
/// When the build fails.
pub fn sluice() -> Result<PathBuf> {
    // The whole workspace with its tests, so that features are the same in the demo and in the tests, and nothing
    // is built twice.
    run(cargo().args(["build", "--workspace", "--all-targets"]))?;
    Ok(target().join("debug/sluice"))
}
