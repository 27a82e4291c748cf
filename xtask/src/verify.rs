//! `cargo verify`: every test, and what the tests need.

use anyhow::Result;

use crate::progress::Steps;
use crate::{build, guests};

/// Builds the guests and the binaries, then runs every test of the workspace. `arguments` go to `cargo test`.
///
/// # Errors
/// When a build or a test fails.
pub fn run(arguments: &[String]) -> Result<()> {
    let mut steps = Steps::new(3);
    steps.next("building every guest from source");
    guests::build_all(&steps)?;
    steps.next("building sluice and the dev broker");
    build::sluice()?;
    steps.next("running all tests");
    build::run(
        build::cargo()
            .args(["test", "--workspace", "--no-fail-fast"])
            .args(arguments),
    )
}
