//! Building the guests of this workspace, each only when what it is made from has changed.

mod inputs;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use sluice_guest_build::{Builder, Language, Project, WIT_BINDGEN, write_bindings};
use wit_component::DecodedWasm;

use crate::build;
use crate::progress::Steps;
use inputs::Inputs;

/// The only interfaces that a guest imports: of the contract as it is, and of its first version.
const PROVIDED: [&str; 4] = [
    "sluice:guest/types@0.1.1",
    "sluice:guest/host@0.1.1",
    "sluice:guest/types@0.1.0",
    "sluice:guest/host@0.1.0",
];

/// The one guest that imports what a configuration has to grant.
const SYSTEM: &str = "system";

/// What it imports of that, and what these interfaces need in turn.
const GRANTED: &[&str] = &[
    "wasi:cli/environment@0.2.0",
    "wasi:clocks/monotonic-clock@0.2.0",
    "wasi:clocks/wall-clock@0.2.0",
    "wasi:filesystem/preopens@0.2.0",
    "wasi:filesystem/types@0.2.0",
    "wasi:io/poll@0.2.0",
    "wasi:random/random@0.2.0",
];

/// What the contract's names begin with.
const PACKAGE: &str = "sluice:guest/";

const MESSAGE_HANDLER: &str = "sluice:guest/message-handler@0.1.1";
const OLDER_HANDLER: &str = "sluice:guest/message-handler@0.1.0";
const BATCH_HANDLER: &str = "sluice:guest/batch-handler@0.1.1";

/// The guests in Rust: package, name of the component, what it exports.
const RUST: [(&str, &str, &str); 11] = [
    ("guest-filter", "filter", BATCH_HANDLER),
    ("guest-router", "router", BATCH_HANDLER),
    ("guest-rewriter", "rewriter", BATCH_HANDLER),
    ("guest-redact", "redact", BATCH_HANDLER),
    ("guest-sampler", "sampler", BATCH_HANDLER),
    ("guest-schema", "schema", BATCH_HANDLER),
    ("test-guest-faulty", "faulty", MESSAGE_HANDLER),
    ("test-guest-faulty-batch", "faulty-batch", BATCH_HANDLER),
    ("test-guest-older", "older", OLDER_HANDLER),
    ("test-guest-stamp", "stamp", BATCH_HANDLER),
    ("test-guest-system", "system", MESSAGE_HANDLER),
];

/// The guests of `config/demo.toml`.
const DEMO: [&str; 3] = ["filter", "router", "rewriter"];

/// The guests in other languages.
const OTHERS: [(&str, Language); 3] = [
    ("c-mask", Language::C),
    ("js-enrich", Language::JavaScript),
    ("py-router", Language::Python),
];

/// The guest whose bindings are written by wit-bindgen.
const C_GUEST: &str = "c-mask";

/// Builds every guest into `<target>/guests/<name>.wasm`.
///
/// # Errors
/// When there is no compiler, a guest does not compile, or its component is not what the host accepts.
pub fn build_all(steps: &Steps) -> Result<()> {
    build_rust(steps, |_| true)?;
    for (name, language) in OTHERS {
        build_other(steps, name, language).with_context(|| format!("guest {name}"))?;
    }
    check_bindings(steps)
}

/// Builds the guests that `cargo demo` runs.
///
/// # Errors
/// As [`build_all`].
pub fn build_demo(steps: &Steps) -> Result<()> {
    build_rust(steps, |name| DEMO.contains(&name))
}

fn build_rust(steps: &Steps, wanted: impl Fn(&str) -> bool) -> Result<()> {
    let folder = folder()?;
    let note = |text: &str| steps.note(text);
    for (package, name, handler) in RUST {
        if !wanted(name) {
            continue;
        }
        let workspace = build::workspace();
        let bytes = builder(&note)
            .build_package(workspace, package, "guest", &work())
            .with_context(|| format!("guest {name}"))?;
        let granted = if name == SYSTEM { GRANTED } else { &[] };
        check(&bytes, handler, granted).with_context(|| format!("guest {name}"))?;
        let component = folder.join(format!("{name}.wasm"));
        let unchanged = std::fs::read(&component).is_ok_and(|before| before == bytes);
        if !unchanged {
            std::fs::write(&component, &bytes)
                .with_context(|| format!("cannot write {}", component.display()))?;
        }
        tell_size(steps, name, &component)?;
    }
    Ok(())
}

fn build_other(steps: &Steps, name: &str, language: Language) -> Result<()> {
    let workspace = build::workspace();
    let (source, wit) = (workspace.join("guests").join(name), workspace.join("wit"));
    let component = folder()?.join(format!("{name}.wasm"));
    let inputs = Inputs::new(())
        .folder(&source)?
        .folder(&wit)?
        .folder(&workspace.join("guests/build/src"))?;
    inputs.unless_built(&component, || {
        let note = |text: &str| steps.note(&format!("{name}: {text}"));
        let project = Project {
            source: &source,
            wit: &wit,
            work: &work().join(name),
        };
        let bytes = builder(&note).build(language, project)?;
        check(&bytes, MESSAGE_HANDLER, &[])?;
        Ok(bytes)
    })?;
    tell_size(steps, name, &component)
}

/// What wit-bindgen writes of the contract has to be what lies in the guest's folder.
fn check_bindings(steps: &Steps) -> Result<()> {
    let committed = bindings();
    let fresh = work().join("bindings");
    let inputs = Inputs::new(WIT_BINDGEN)
        .folder(&build::workspace().join("wit"))?
        .folder(&committed)?;
    inputs.unless_built(&work().join("bindings.checked"), || {
        write_bindings(
            &wit_bindgen(steps)?,
            &build::workspace().join("wit"),
            &fresh,
        )?;
        for file in ["transform.c", "transform.h"] {
            let same =
                std::fs::read(fresh.join(file)).ok() == std::fs::read(committed.join(file)).ok();
            ensure!(
                same,
                "{} is not what wit-bindgen writes of the contract: run `cargo xtask bindings`",
                committed.join(file).display()
            );
        }
        Ok(Vec::new())
    })
}

/// Writes the bindings of guests in C anew.
///
/// # Errors
/// When wit-bindgen cannot be had or fails.
pub fn bind(steps: &Steps) -> Result<()> {
    write_bindings(
        &wit_bindgen(steps)?,
        &build::workspace().join("wit"),
        &bindings(),
    )
}

fn bindings() -> PathBuf {
    build::workspace()
        .join("guests")
        .join(C_GUEST)
        .join("bindings")
}

/// wit-bindgen as a program of its own: as a dependency it would change features of wasmtime's dependencies, and compiling
/// these again takes far longer.
fn wit_bindgen(steps: &Steps) -> Result<PathBuf> {
    let program = tools().join("bin/wit-bindgen");
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
            .args([Path::new("--root"), &tools()])
            // It runs for milliseconds: what counts is that it compiles fast.
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env_remove("CARGO_TARGET_DIR");
        // With what cargo prints, for it takes long.
        build::run(&mut install)?;
    }
    Ok(program)
}

fn builder(note: &dyn Fn(&str)) -> Builder<'_> {
    Builder {
        tools: tools(),
        install: true,
        note,
    }
}

/// Where tools of this workspace are installed.
fn tools() -> PathBuf {
    build::target().join("tools")
}

/// Where guests are compiled.
fn work() -> PathBuf {
    build::target().join("guest-build")
}

/// Where components are written.
fn folder() -> Result<PathBuf> {
    let folder = build::target().join("guests");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

fn tell_size(steps: &Steps, name: &str, component: &Path) -> Result<()> {
    let size = std::fs::metadata(component)
        .with_context(|| format!("cannot read {}", component.display()))?
        .len();
    steps.note(&format!("{name}: {} KiB", size.div_ceil(1024)));
    Ok(())
}

/// Refuses a component that imports more than the host gives to any guest and what is `granted`, or exports another handler than its own.
fn check(component: &[u8], handler: &str, granted: &[&str]) -> Result<()> {
    let decoded = wit_component::decode(component).context("cannot read the component")?;
    let DecodedWasm::Component(resolve, world) = decoded else {
        anyhow::bail!("the encoder did not write a component");
    };
    let world = &resolve.worlds[world];
    for key in world.imports.keys() {
        let name = resolve.name_world_key(key);
        ensure!(
            PROVIDED.iter().chain(granted).any(|known| *known == name),
            "it imports {name}, which guests do not get"
        );
    }
    let exports: Vec<_> = world
        .exports
        .keys()
        .map(|key| resolve.name_world_key(key))
        // Interpreters bring exports of their own, which the host does not call.
        .filter(|name| name.starts_with(PACKAGE))
        .collect();
    ensure!(
        exports == [handler],
        "it exports {exports:?} instead of {handler}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A component with these imports and exports, all of them empty interfaces.
    fn component(imports: &[&str], exports: &[&str]) -> Vec<u8> {
        let imports = imports.iter();
        let imports = imports.map(|name| format!("(import \"{name}\" (instance))"));
        let exports = exports.iter();
        let exports = exports.map(|name| format!("(export \"{name}\" (instance $empty))"));
        let parts: String = imports.chain(exports).collect();
        wat::parse_str(format!("(component (instance $empty) {parts})")).expect("valid text")
    }

    #[test]
    fn a_component_of_its_world_is_accepted() {
        check(
            &component(&PROVIDED[..2], &[BATCH_HANDLER]),
            BATCH_HANDLER,
            &[],
        )
        .expect("accepted");
        check(&component(&[], &[MESSAGE_HANDLER]), MESSAGE_HANDLER, &[]).expect("accepted");
    }

    #[test]
    fn another_export_or_a_foreign_import_is_refused() {
        let refused = |component: &[u8]| {
            check(component, BATCH_HANDLER, &[])
                .expect_err("refused")
                .to_string()
        };
        let other = refused(&component(&[], &[MESSAGE_HANDLER]));
        assert!(other.contains(MESSAGE_HANDLER), "{other}");
        let newer = "sluice:guest/batch-handler@0.2.0";
        assert!(refused(&component(&[], &[newer])).contains(newer));
        let clocks = "wasi:clocks/wall-clock@0.2.0";
        let foreign = refused(&component(&[clocks], &[BATCH_HANDLER]));
        assert!(foreign.contains(clocks), "{foreign}");
    }
}
