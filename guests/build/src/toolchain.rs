//! A compiler for WebAssembly: the installed one, or Debian's.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use super::{Builder, tools};

/// The target that guests are compiled for: no system interface at all.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// Debian's compiler with its standard library's source, and the linker.
const PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "lld-22"];

/// How guests are compiled.
#[derive(Debug)]
pub enum Toolchain {
    /// The compiler in use has the target.
    Native,
    /// Debian's compiler builds the standard library too.
    Debian,
}

impl Toolchain {
    /// Finds a compiler, installing one where that is possible.
    ///
    /// # Errors
    /// When there is none and none can be installed; the text says what to install.
    pub fn find(builder: &Builder<'_>) -> Result<Self> {
        if native_has_target() {
            return Ok(Self::Native);
        }
        if debian_is_complete() {
            return Ok(Self::Debian);
        }
        if builder.install {
            (builder.note)(&format!(
                "target {TARGET} is not installed; asking rustup for it"
            ));
        }
        if builder.install
            && tools::quietly(Command::new("rustup").args(["target", "add", TARGET]))
            && native_has_target()
        {
            return Ok(Self::Native);
        }
        if tools::apt_install(builder, &PACKAGES) && debian_is_complete() {
            return Ok(Self::Debian);
        }
        bail!(
            "no compiler for WebAssembly: run `rustup target add {TARGET}`, or on Debian, as root, `apt-get install {}`; `--install` does it",
            PACKAGES.join(" ")
        )
    }

    /// A cargo command that compiles for [`TARGET`].
    pub fn cargo(&self, folder: &Path, target_folder: &Path) -> Command {
        let mut command = match self {
            Self::Native => super::cargo(),
            Self::Debian => debian_cargo(),
        };
        command
            .current_dir(folder)
            .env("CARGO_TARGET_DIR", target_folder)
            // Flags for this machine's programs do not suit guests.
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS");
        command
    }

    /// Arguments of cargo that this toolchain needs beside the target.
    pub const fn arguments(&self) -> &'static [&'static str] {
        match self {
            Self::Native => &[],
            Self::Debian => &["-Zbuild-std=std,panic_abort"],
        }
    }
}

fn debian_cargo() -> Command {
    let mut command = Command::new("/usr/bin/cargo");
    // What rustup set for the outer cargo would lead back to its own compiler.
    for variable in [
        "CARGO",
        "RUSTUP_TOOLCHAIN",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
    ] {
        command.env_remove(variable);
    }
    command
        .env("RUSTC", "/usr/bin/rustc")
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker());
    command
}

fn linker() -> PathBuf {
    PathBuf::from("/usr/bin/wasm-ld-22")
}

fn native_has_target() -> bool {
    let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--print", "target-libdir", "--target", TARGET])
        .stderr(Stdio::null())
        .output();
    let Ok(output) = output else { return false };
    let folder = String::from_utf8_lossy(&output.stdout);
    output.status.success() && Path::new(folder.trim()).is_dir()
}

fn debian_is_complete() -> bool {
    let sysroot = Command::new("/usr/bin/rustc")
        .args(["--print", "sysroot"])
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok());
    let Some(sysroot) = sysroot else { return false };
    let source = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library");
    Path::new("/usr/bin/cargo").exists() && linker().exists() && source.exists()
}
