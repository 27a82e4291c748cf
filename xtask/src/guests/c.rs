//! The guest in C, by clang and the bindings of wit-bindgen.
//!
//! wit-bindgen is installed as a program of its own: as a dependency it would change features of wasmtime's
//! dependencies, and compiling these again takes far longer.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Inputs, MESSAGE_HANDLER, encode, tools};
use crate::build;
use crate::progress::Steps;

/// The version that the Rust guests use too.
const WIT_BINDGEN: &str = "0.61.1";

/// Debian's compiler and linker.
const PACKAGES: [&str; 2] = ["clang-22", "lld-22"];

/// Sources that do not need the bindings, and what tests them.
const TESTED: [&str; 3] = ["mask.c", "config.c", "mask_test.c"];

/// Sources of the component.
const SOURCES: [&str; 4] = ["guest.c", "mask.c", "config.c", "runtime.c"];

/// Sources of the component that wit-bindgen writes.
const GENERATED: [&str; 2] = ["transform.c", "transform_component_type.o"];

/// No C library, no system interface.
const ARGUMENTS: [&str; 7] = [
    "--target=wasm32",
    "-O2",
    "-std=c17",
    "-ffreestanding",
    "-nostdlib",
    "-Wl,--no-entry",
    "-Wl,--strip-debug",
];

/// Builds the guest `name` of `guests/<name>` into `component`.
///
/// # Errors
/// When a tool cannot be had, a test of the guest fails, or its component is not what the host accepts.
pub fn build(steps: &Steps, name: &str, component: &Path) -> Result<()> {
    let source = build::workspace().join("guests").join(name);
    let wit = build::workspace().join("wit");
    let inputs = Inputs::new((WIT_BINDGEN, ARGUMENTS, SOURCES))
        .folder(&source)?
        .folder(&wit)?;
    inputs.unless_built(component, || {
        let clang = Clang::find(steps)?;
        let folder = build::target().join("guest-build").join(name);
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        test(&source, &folder)?;
        bind(steps, &wit, &folder)?;
        let module = folder.join("module.wasm");
        let mut command = clang.command();
        command
            .args(ARGUMENTS)
            .args([Path::new("-I"), &source.join("include")])
            .args([Path::new("-I"), &folder])
            .args(SOURCES.map(|file| source.join(file)))
            .args(GENERATED.map(|file| folder.join(file)))
            .args([Path::new("-o"), &module]);
        tools::build(&mut command)?;
        encode(&module, MESSAGE_HANDLER, &[])
    })
}

/// Runs the guest's own tests on this machine. The compiler is the one that cargo links with.
fn test(source: &Path, folder: &Path) -> Result<()> {
    let program = folder.join("test");
    let mut command = Command::new("cc");
    command
        .args(["-std=c17", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .args(TESTED.map(|file| source.join(file)));
    tools::build(&mut command)?;
    tools::build(&mut Command::new(program))
}

/// Writes the bindings to the contract into `folder`.
fn bind(steps: &Steps, wit: &Path, folder: &Path) -> Result<()> {
    let program = tools::folder().join("bin/wit-bindgen");
    let mut version = Command::new(&program);
    let current = version
        .arg("--version")
        .output()
        .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(WIT_BINDGEN));
    if !current {
        steps.note("installing wit-bindgen-cli from crates.io");
        let mut install = build::cargo();
        install
            .args([
                "install",
                "wit-bindgen-cli",
                "--locked",
                "--force",
                "--debug",
            ])
            .args(["--version", WIT_BINDGEN])
            .args(["--no-default-features", "--features", "c"])
            .args([Path::new("--root"), &tools::folder()])
            // It runs for milliseconds: what counts is that it compiles fast.
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env_remove("CARGO_TARGET_DIR");
        // With what cargo prints, for it takes long.
        build::run(&mut install)?;
    }
    let mut command = Command::new(&program);
    command
        .args(["c", "--world", "transform", "--out-dir"])
        .args([folder, wit]);
    tools::build(&mut command)
}

/// A clang that compiles for WebAssembly, and its linker.
struct Clang {
    clang: &'static str,
    linker: PathBuf,
}

/// Names under which both may be installed.
const NAMES: [(&str, &str); 2] = [("clang", "wasm-ld"), ("clang-22", "wasm-ld-22")];

impl Clang {
    fn find(steps: &Steps) -> Result<Self> {
        if let Some(found) = installed() {
            return Ok(found);
        }
        steps.note("no clang that compiles for WebAssembly is installed");
        if tools::apt_install(steps, &PACKAGES)
            && let Some(found) = installed()
        {
            return Ok(found);
        }
        bail!(
            "no C compiler for WebAssembly: install clang and lld; on Debian, as root, `apt-get install {}`",
            PACKAGES.join(" ")
        )
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.clang);
        command.arg(format!("-fuse-ld={}", self.linker.display()));
        command
    }
}

fn installed() -> Option<Clang> {
    NAMES.into_iter().find_map(|(clang, linker)| {
        let output = Command::new(clang).arg("--print-targets").output().ok()?;
        let targets = String::from_utf8_lossy(&output.stdout).into_owned();
        let linker = search(linker)?;
        targets
            .contains("wasm32")
            .then_some(Clang { clang, linker })
    })
}

/// The path of a program on `PATH`.
fn search(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}
