//! Loading a component file and checking it against the contract.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::types::ComponentItem;
use wasmtime::component::{HasSelf, Linker};

use super::Engine;
use super::bindings::transform::{Transform, TransformPre};
use super::bindings::transform_batch::TransformBatchPre;
use super::instance::State;
use crate::config;

const MESSAGE_HANDLER: &str = "sluice:guest/message-handler@0.1";
const BATCH_HANDLER: &str = "sluice:guest/batch-handler@0.1";
const PROVIDED: [&str; 2] = ["sluice:guest/types@0.1", "sluice:guest/host@0.1"];

/// A component that cannot serve as a guest. All of these are for its author or the operator to mend.
#[derive(Debug, thiserror::Error)]
#[error("guest `{guest}` ({path}): {reason}", path = path.display())]
pub struct LoadError {
    /// Name of the guest in the configuration.
    pub guest: String,
    /// The component file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: LoadReason,
}

/// What is wrong with a component file.
#[derive(Debug, thiserror::Error)]
pub enum LoadReason {
    /// The file could not be read.
    #[error("cannot read the component: {0}")]
    Read(std::io::Error),
    /// A core module, which lacks the component's outer layer.
    #[error("this is a core WebAssembly module, not a component: encode it as a component first")]
    CoreModule,
    /// Not WebAssembly at all, or invalid.
    #[error("this is not a valid WebAssembly component: {0}")]
    Invalid(String),
    /// A component of another world.
    #[error(
        "the component exports {exports}, but a guest exports sluice:guest/message-handler@0.1.0 or \
         sluice:guest/batch-handler@0.1.0: build it against a world of package sluice:guest"
    )]
    World {
        /// What it exports.
        exports: String,
    },
    /// It wants what no guest gets.
    #[error(
        "the component imports {0}, which is not granted to guests: build it without that import"
    )]
    Import(String),
    /// The names are right, the types are not.
    #[error("the component does not match the contract sluice:guest@0.1.0: {0}")]
    Mismatch(String),
}

/// A compiled guest, ready to be instantiated.
pub struct Component {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) engine: Engine,
    pub(super) world: World,
    /// Holds the code for guests that are loaded from the same file later.
    _compiled: Arc<wasmtime::component::Component>,
    pub(super) config: String,
    pub(super) memory: usize,
    pub(super) time: Duration,
}

impl std::fmt::Debug for Component {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Component({})", self.name)
    }
}

/// Which of the two handlers a guest exports.
pub(super) enum World {
    Transform(TransformPre<State>),
    TransformBatch(TransformBatchPre<State>),
}

impl Component {
    /// Reads, compiles and checks the component of the guest `name`.
    ///
    /// # Errors
    /// [`LoadError`], which names the guest, the file and what to change.
    pub fn load(engine: &Engine, name: &str, guest: &config::Guest) -> Result<Self, LoadError> {
        let fail = |reason| LoadError {
            guest: name.to_owned(),
            path: guest.component.clone(),
            reason,
        };
        let (compiled, world) = prepare(engine, &guest.component).map_err(fail)?;
        let config = serde_json::to_string(&guest.config)
            .map_err(|error| fail(LoadReason::Mismatch(error.to_string())))?;
        Ok(Self {
            name: name.to_owned(),
            path: guest.component.clone(),
            engine: engine.clone(),
            world,
            _compiled: compiled,
            config,
            memory: usize::try_from(guest.limits.memory.as_u64()).unwrap_or(usize::MAX),
            time: guest.limits.time,
        })
    }

    /// Name of the guest in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }
}

fn prepare(
    engine: &Engine,
    path: &Path,
) -> Result<(Arc<wasmtime::component::Component>, World), LoadReason> {
    let bytes = std::fs::read(path).map_err(LoadReason::Read)?;
    // Bytes 4 to 7 of a binary are its version and its layer; layer 0 is the core module.
    if bytes.starts_with(b"\0asm") && bytes.get(6..8) == Some(&[0, 0]) {
        return Err(LoadReason::CoreModule);
    }
    let component = engine
        .compile(path, &bytes)
        .map_err(|error| LoadReason::Invalid(format!("{error:#}")))?;
    let engine = engine.wasmtime();
    let kind = component.component_type();
    let exports: Vec<_> = kind
        .exports(engine)
        .map(|(name, _)| name.to_owned())
        .collect();
    for (name, item) in kind.imports(engine) {
        let is_type = matches!(item.ty, ComponentItem::Type(_));
        if !is_type && !PROVIDED.iter().any(|provided| name.starts_with(provided)) {
            return Err(LoadReason::Import(name.to_owned()));
        }
    }
    let mut linker = Linker::<State>::new(engine);
    Transform::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)
        .map_err(|error| LoadReason::Mismatch(format!("{error:#}")))?;
    let exports_handler = |handler| exports.iter().any(|name| name.starts_with(handler));
    let (message, batch) = (
        exports_handler(MESSAGE_HANDLER),
        exports_handler(BATCH_HANDLER),
    );
    if !message && !batch {
        return Err(LoadReason::World {
            exports: describe(&exports),
        });
    }
    let mismatch = |error: wasmtime::Error| LoadReason::Mismatch(format!("{error:#}"));
    let pre = linker.instantiate_pre(&component).map_err(mismatch)?;
    let world = if batch {
        TransformBatchPre::new(pre).map(World::TransformBatch)
    } else {
        TransformPre::new(pre).map(World::Transform)
    };
    Ok((component, world.map_err(mismatch)?))
}

fn describe(exports: &[String]) -> String {
    if exports.is_empty() {
        "nothing".to_owned()
    } else {
        exports.join(", ")
    }
}
