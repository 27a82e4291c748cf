//! Guests in C, by clang and the bindings of wit-bindgen, which lie in the guest's folder `bindings`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use wit_component::{StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use super::{Builder, Project, encode, read, tools};

/// The version of wit-bindgen that writes the bindings, and that the Rust guests use too.
pub const WIT_BINDGEN: &str = "0.61.1";

/// Debian's compiler and linker.
const PACKAGES: [&str; 2] = ["clang-22", "lld-22"];

/// Files that exist for the component alone: the others are tested on this machine.
const COMPONENT_ONLY: [&str; 2] = ["guest.c", "runtime.c"];

/// How the names of files with tests end.
const TEST: &str = "_test.c";

/// The bindings want to be linked with a file that carries the contract; that is added to the module instead.
const LINKED: &str = "void __component_type_object_force_link_transform(void) {}\n";

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

/// Tests the guest in `guest.c` and compiles it to a component.
pub fn build(builder: &Builder<'_>, project: Project<'_>) -> Result<Vec<u8>> {
    let clang = Clang::find(builder)?;
    let sources = sources(project.source)?;
    test(&sources, project.work)?;
    let bindings = project.source.join("bindings");
    let module = project.work.join("module.wasm");
    let linked = project.work.join("linked.c");
    std::fs::write(&linked, LINKED)
        .with_context(|| format!("cannot write {}", linked.display()))?;
    let mut command = clang.command();
    command
        .args(ARGUMENTS)
        .args([Path::new("-I"), &project.source.join("include")])
        .args([Path::new("-I"), &bindings])
        .args(sources.iter().filter(|file| !is(file, TEST)))
        .args([&bindings.join("transform.c"), &linked])
        .args([Path::new("-o"), &module]);
    tools::build(&mut command)?;
    let mut module = read(&module)?;
    let mut contract = Resolve::default();
    let (package, _) = contract.push_dir(project.wit)?;
    let world = contract.select_world(&[package], Some("transform"))?;
    embed_component_metadata(&mut module, &contract, world, StringEncoding::UTF8)?;
    encode(&module)
}

/// The C files of a folder.
fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let list = || -> std::io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if is(&path, ".c") {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    };
    list().with_context(|| format!("cannot read the folder {}", folder.display()))
}

fn is(file: &Path, ending: &str) -> bool {
    file.to_string_lossy().ends_with(ending)
}

/// Runs the guest's own tests on this machine. The compiler is the one that cargo links with.
fn test(sources: &[PathBuf], work: &Path) -> Result<()> {
    let program = work.join("test");
    let tested = sources.iter().filter(|file| {
        let name = file.file_name().unwrap_or_default();
        COMPONENT_ONLY.iter().all(|only| name != *only)
    });
    let mut command = Command::new("cc");
    command
        .args(["-std=c17", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .args(tested);
    tools::build(&mut command)?;
    tools::build(&mut Command::new(program))
}

/// Writes the bindings to the contract into `folder`, with the program at `wit_bindgen`.
///
/// # Errors
/// When it cannot be run or fails.
pub fn write_bindings(wit_bindgen: &Path, wit: &Path, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let mut command = Command::new(wit_bindgen);
    command
        .args(["c", "--world", "transform", "--no-object-file", "--out-dir"])
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
    fn find(builder: &Builder<'_>) -> Result<Self> {
        if let Some(found) = installed() {
            return Ok(found);
        }
        (builder.note)("no clang that compiles for WebAssembly is installed");
        if tools::apt_install(builder, &PACKAGES)
            && let Some(found) = installed()
        {
            return Ok(found);
        }
        bail!(
            "no C compiler for WebAssembly: install clang and lld; on Debian, as root, `apt-get install {}`; `--install` does it",
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
