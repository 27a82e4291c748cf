//! Guests in Python, by componentize-py.

use std::process::Command;

use anyhow::{Context, Result};

use super::{Builder, Project, read, tools};

/// Without the system interfaces, which guests do not get.
const ARGUMENTS: [&str; 3] = ["componentize", "--stub-wasi", "app"];

/// Tests the guest in `src/app.py` and compiles it to a component.
pub fn build(builder: &Builder<'_>, project: Project<'_>) -> Result<Vec<u8>> {
    let pins = String::from_utf8(read(&project.source.join("requirements.txt"))?)
        .context("requirements.txt is no text")?;
    let pins: Vec<&str> = pins.lines().collect();
    let bin = tools::python(builder, "python", &pins)?;
    let modules = project.source.join("src");
    let mut tests = Command::new(bin.join("python"));
    // Compiled files would lie among the sources.
    tests
        .args(["-B", "-m", "unittest", "discover", "tests"])
        .env("PYTHONPATH", &modules)
        .current_dir(project.source);
    tools::build(&mut tests)?;
    (builder.note)("compiling, which takes a while");
    let output = project.work.join("guest.wasm");
    let mut command = Command::new(bin.join("componentize-py"));
    command
        .args(["--quiet", "--world", "transform", "--wit-path"])
        .arg(project.wit)
        .args(ARGUMENTS)
        .args(["--python-path".as_ref(), modules.as_os_str()])
        .args(["--output".as_ref(), output.as_os_str()]);
    tools::build(&mut command)?;
    read(&output)
}
