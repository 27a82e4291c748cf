//! Building guests from source: in Rust and C, compile to a core module, then encode a component; in other languages,
//! with the language's own tool.

mod c;
mod inputs;
mod javascript;
mod python;
mod toolchain;
mod tools;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use wit_component::{ComponentEncoder, DecodedWasm};

use crate::build;
use crate::progress::Steps;
use inputs::Inputs;
use toolchain::{TARGET, Toolchain};

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

/// Builds a guest into a component file.
type Build = fn(&Steps, &str, &Path) -> Result<()>;

/// The guests in other languages.
const OTHERS: [(&str, Build); 3] = [
    ("c-mask", c::build),
    ("js-enrich", javascript::build),
    ("py-router", python::build),
];

/// Builds every guest into `<target>/guests/<name>.wasm`.
///
/// # Errors
/// When there is no compiler, a guest does not compile, or its component is not what the host accepts.
pub fn build_all(steps: &Steps) -> Result<()> {
    build_rust(steps, |_| true)?;
    let folder = folder()?;
    for (name, build) in OTHERS {
        let component = folder.join(format!("{name}.wasm"));
        build(steps, name, &component).with_context(|| format!("guest {name}"))?;
        tell_size(steps, name, &component)?;
    }
    Ok(())
}

/// Builds the guests that `cargo demo` runs.
///
/// # Errors
/// As [`build_all`].
pub fn build_demo(steps: &Steps) -> Result<()> {
    build_rust(steps, |name| DEMO.contains(&name))
}

fn build_rust(steps: &Steps, wanted: impl Fn(&str) -> bool) -> Result<()> {
    let toolchain = Toolchain::find(steps)?;
    steps.note(&format!("using {}", toolchain.name()));
    let folder = folder()?;
    for (package, name, handler) in RUST {
        if !wanted(name) {
            continue;
        }
        let module = compile(&toolchain, package)?;
        let component = folder.join(format!("{name}.wasm"));
        let granted = if name == SYSTEM { GRANTED } else { &[] };
        let bytes = encode(&module, handler, granted).with_context(|| format!("guest {name}"))?;
        let unchanged = std::fs::read(&component).is_ok_and(|before| before == bytes);
        if !unchanged {
            std::fs::write(&component, &bytes)
                .with_context(|| format!("cannot write {}", component.display()))?;
        }
        tell_size(steps, name, &component)?;
    }
    Ok(())
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

fn compile(toolchain: &Toolchain, package: &str) -> Result<PathBuf> {
    let target_folder = build::target().join("guest-build");
    let mut command = toolchain.cargo(&target_folder);
    command
        .args(["rustc", "--package", package, "--lib"])
        .args(["--profile", "guest", "--target", TARGET])
        .args(toolchain.arguments())
        .args(["--crate-type", "cdylib"]);
    tools::build(&mut command)?;
    let file = format!("{}.wasm", package.replace('-', "_"));
    Ok(target_folder.join(TARGET).join("guest").join(file))
}

fn encode(module: &Path, handler: &str, granted: &[&str]) -> Result<Vec<u8>> {
    let module = std::fs::read(module)
        .with_context(|| format!("the compiler did not write {}", module.display()))?;
    let component = ComponentEncoder::default()
        .module(&module)
        .and_then(|encoder| encoder.validate(true).encode())
        .context("cannot make a component")?;
    check(&component, handler, granted)?;
    Ok(component)
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
