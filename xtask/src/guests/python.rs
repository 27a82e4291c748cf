//! The guest in Python, by componentize-py.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Inputs, MESSAGE_HANDLER, check, tools};
use crate::build;
use crate::progress::Steps;

/// Without the system interfaces, which guests do not get.
const ARGUMENTS: [&str; 3] = ["componentize", "--stub-wasi", "app"];

/// Builds the guest `name` of `guests/<name>` into `component`.
///
/// # Errors
/// When a tool cannot be had, a test of the guest fails, or its component is not what the host accepts.
pub fn build(steps: &Steps, name: &str, component: &Path) -> Result<()> {
    let source = build::workspace().join("guests").join(name);
    let wit = build::workspace().join("wit");
    let inputs = Inputs::new(ARGUMENTS).folder(&source)?.folder(&wit)?;
    inputs.unless_built(component, || {
        let pins = std::fs::read_to_string(source.join("requirements.txt"))
            .context("cannot read requirements.txt")?;
        let pins: Vec<&str> = pins.lines().collect();
        let bin = tools::python(steps, "python", &pins)?;
        let modules = source.join("src");
        let mut tests = Command::new(bin.join("python"));
        // Compiled files would lie among the sources.
        tests
            .args(["-B", "-m", "unittest", "discover", "tests"])
            .env("PYTHONPATH", &modules)
            .current_dir(&source);
        tools::build(&mut tests)?;
        steps.note(&format!("{name}: building, which takes a while"));
        let output = tools::output(name)?;
        let mut command = Command::new(bin.join("componentize-py"));
        command
            .args(["--quiet", "--world", "transform", "--wit-path"])
            .arg(&wit)
            .args(ARGUMENTS)
            .args(["--python-path".as_ref(), modules.as_os_str()])
            .args(["--output".as_ref(), output.as_os_str()]);
        tools::build(&mut command)?;
        let bytes = std::fs::read(&output)
            .with_context(|| format!("the compiler did not write {}", output.display()))?;
        check(&bytes, MESSAGE_HANDLER, &[])?;
        Ok(bytes)
    })
}
