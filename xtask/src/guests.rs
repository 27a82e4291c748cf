//! Building guests from source: compile to a core module, then encode a component.

mod toolchain;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use wit_component::{ComponentEncoder, DecodedWasm};

use crate::build;
use crate::progress::Steps;
use toolchain::{TARGET, Toolchain};

/// The only interfaces that a guest imports.
const PROVIDED: [&str; 2] = ["sluice:guest/types@0.1.0", "sluice:guest/host@0.1.0"];

const MESSAGE_HANDLER: &str = "sluice:guest/message-handler@0.1.0";
const BATCH_HANDLER: &str = "sluice:guest/batch-handler@0.1.0";

/// The guests: package, name of the component, what it exports.
const GUESTS: [(&str, &str, &str); 5] = [
    ("guest-filter", "filter", BATCH_HANDLER),
    ("guest-router", "router", BATCH_HANDLER),
    ("guest-rewriter", "rewriter", BATCH_HANDLER),
    ("test-guest-faulty", "faulty", MESSAGE_HANDLER),
    ("test-guest-faulty-batch", "faulty-batch", BATCH_HANDLER),
];

/// Builds every guest; returns the component files, `<target>/guests/<name>.wasm`.
///
/// # Errors
/// When there is no compiler, a guest does not compile, or its component is not what the host accepts.
pub fn build_all(steps: &Steps) -> Result<Vec<PathBuf>> {
    let toolchain = Toolchain::find(steps)?;
    steps.note(&format!("using {}", toolchain.name()));
    let folder = build::target().join("guests");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let mut components = Vec::new();
    for (package, name, handler) in GUESTS {
        let module = compile(&toolchain, package)?;
        let component = folder.join(format!("{name}.wasm"));
        let bytes = encode(&module, handler).with_context(|| format!("guest {name}"))?;
        let unchanged = std::fs::read(&component).is_ok_and(|before| before == bytes);
        if !unchanged {
            std::fs::write(&component, &bytes)
                .with_context(|| format!("cannot write {}", component.display()))?;
        }
        steps.note(&format!("{name}: {} KiB", bytes.len().div_ceil(1024)));
        components.push(component);
    }
    Ok(components)
}

fn compile(toolchain: &Toolchain, package: &str) -> Result<PathBuf> {
    let target_folder = build::target().join("guest-build");
    let mut command = toolchain.cargo(&target_folder);
    command
        .args(["rustc", "--package", package, "--lib"])
        .args(["--profile", "guest", "--target", TARGET])
        .args(toolchain.arguments())
        .args(["--crate-type", "cdylib"]);
    toolchain::build(&mut command)?;
    let file = format!("{}.wasm", package.replace('-', "_"));
    Ok(target_folder.join(TARGET).join("guest").join(file))
}

fn encode(module: &Path, handler: &str) -> Result<Vec<u8>> {
    let module = std::fs::read(module)
        .with_context(|| format!("the compiler did not write {}", module.display()))?;
    let component = ComponentEncoder::default()
        .module(&module)
        .and_then(|encoder| encoder.validate(true).encode())
        .context("cannot make a component")?;
    check(&component, handler)?;
    Ok(component)
}

/// Refuses a component that imports more than the host gives, or exports anything but its handler.
fn check(component: &[u8], handler: &str) -> Result<()> {
    let decoded = wit_component::decode(component).context("cannot read the component")?;
    let DecodedWasm::Component(resolve, world) = decoded else {
        anyhow::bail!("the encoder did not write a component");
    };
    let world = &resolve.worlds[world];
    for key in world.imports.keys() {
        let name = resolve.name_world_key(key);
        ensure!(
            PROVIDED.contains(&name.as_str()),
            "it imports {name}, which guests do not get"
        );
    }
    let exports: Vec<_> = world
        .exports
        .keys()
        .map(|key| resolve.name_world_key(key))
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
        check(&component(&PROVIDED, &[BATCH_HANDLER]), BATCH_HANDLER).expect("accepted");
        check(&component(&[], &[MESSAGE_HANDLER]), MESSAGE_HANDLER).expect("accepted");
    }

    #[test]
    fn another_export_or_a_foreign_import_is_refused() {
        let refused = |component: &[u8]| {
            check(component, BATCH_HANDLER)
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
