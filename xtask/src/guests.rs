//! Building guests from source: compile to a core module, then encode a component.

mod toolchain;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use wit_component::{ComponentEncoder, DecodedWasm};

use crate::build;
use crate::progress::Steps;
use toolchain::{TARGET, Toolchain};

/// The only interfaces that a guest imports.
const PROVIDED: [&str; 2] = ["sluice:guest/types@", "sluice:guest/host@"];

/// A guest: its package and the name of its component.
const GUESTS: [(&str, &str); 5] = [
    ("guest-filter", "filter"),
    ("guest-router", "router"),
    ("guest-rewriter", "rewriter"),
    ("test-guest-faulty", "faulty"),
    ("test-guest-faulty-batch", "faulty-batch"),
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
    for (package, name) in GUESTS {
        let module = compile(&toolchain, package)?;
        let component = folder.join(format!("{name}.wasm"));
        let bytes = encode(&module).with_context(|| format!("guest {name}"))?;
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

fn encode(module: &Path) -> Result<Vec<u8>> {
    let module = std::fs::read(module)
        .with_context(|| format!("the compiler did not write {}", module.display()))?;
    let component = ComponentEncoder::default()
        .module(&module)
        .and_then(|encoder| encoder.validate(true).encode())
        .context("cannot make a component")?;
    check(&component)?;
    Ok(component)
}

/// Refuses a component that imports more than the host gives or exports no handler.
fn check(component: &[u8]) -> Result<()> {
    let decoded = wit_component::decode(component).context("cannot read the component")?;
    let DecodedWasm::Component(resolve, world) = decoded else {
        anyhow::bail!("the encoder did not write a component");
    };
    let world = &resolve.worlds[world];
    for key in world.imports.keys() {
        let name = resolve.name_world_key(key);
        ensure!(
            PROVIDED.iter().any(|provided| name.starts_with(provided)),
            "it imports {name}, which guests do not get"
        );
    }
    let exports: Vec<_> = world
        .exports
        .keys()
        .map(|key| resolve.name_world_key(key))
        .collect();
    ensure!(
        exports.iter().any(|name| name.contains("-handler@")),
        "it exports {exports:?}, but no handler"
    );
    Ok(())
}
