//! Loading a component file and checking it against the contract.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;
use sha2::{Digest, Sha256};
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{HasSelf, Linker};

use super::bindings::transform::{Transform, TransformPre};
use super::bindings::transform_batch::TransformBatchPre;
use super::grants::{self, Need, System};
use super::instance::{Instance, State};
use super::{ChainError, Engine, Source, samples};
use crate::config;

pub(super) const MESSAGE_HANDLER: &str = "sluice:guest/message-handler@0.1";
pub(super) const BATCH_HANDLER: &str = "sluice:guest/batch-handler@0.1";

/// The version of the contract in `wit/`.
pub(super) const CONTRACT: &str = "0.1.1";

/// A component that cannot serve as a guest. All of these are for its author or the operator to mend.
#[derive(Debug, thiserror::Error)]
#[error("guest `{guest}` ({path}): {reason}", path = path.display())]
pub struct LoadError {
    /// Name of the guest in the configuration.
    pub guest: String,
    /// The component file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: Box<LoadReason>,
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
        "the component exports {exports}, but a guest exports sluice:guest/message-handler@0.1.1 or \
         sluice:guest/batch-handler@0.1.1: build it against a world of package sluice:guest"
    )]
    World {
        /// What it exports.
        exports: String,
    },
    /// It wants what no guest gets.
    #[error(
        "the component imports {0}, which is not granted to guests and cannot be: build it without that import"
    )]
    Import(String),
    /// It wants what its configuration does not grant.
    #[error(
        "the component imports {import}, which is not granted: build it without that import, or grant it in \
         [guests.{guest}] with `grants.{key} = {value}`"
    )]
    Grant {
        /// The import.
        import: String,
        /// Name of the guest.
        guest: String,
        /// The key of `grants`.
        key: &'static str,
        /// A value of that key.
        value: &'static str,
    },
    /// What is granted is not there.
    #[error("{0}")]
    System(String),
    /// It does not make of its samples what it should.
    #[error("samples: {0}")]
    Sample(String),
    /// It was built for a newer contract and needs something of it.
    #[error(
        "the component is built for sluice:guest@{0} and needs what {CONTRACT} does not have: use a newer sluice, or \
         build it against the `wit` folder of this one"
    )]
    Newer(String),
    /// The names are right, the types are not.
    #[error("the component does not match the contract sluice:guest@{CONTRACT}: {0}")]
    Mismatch(String),
}

/// A compiled guest, ready to be instantiated.
pub struct Component {
    name: String,
    pub(super) engine: Engine,
    pub(super) world: World,
    /// Holds the code for guests that are loaded from the same file later.
    _compiled: Arc<wasmtime::component::Component>,
    pub(super) config: String,
    /// As it was configured.
    pub(super) settings: config::Guest,
    version: Version,
}

/// Which bytes a component was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Version {
    /// SHA-256 of the file, in hexadecimal.
    pub hash: String,
    /// The file.
    pub path: PathBuf,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// When it was loaded, in seconds since the Unix epoch.
    pub loaded: u64,
}

impl Version {
    fn of(path: &Path, bytes: &[u8]) -> Self {
        let loaded = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            hash: format!("{:x}", Sha256::digest(bytes)),
            path: path.to_owned(),
            bytes: bytes.len() as u64,
            loaded: loaded.map_or(0, |time| time.as_secs()),
        }
    }
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
    /// Reads, compiles and checks the component of the guest `name`, and has it pass its samples.
    ///
    /// # Errors
    /// [`LoadError`], which names the guest, the file and what to change.
    pub fn load(
        engine: &Engine,
        name: &str,
        guest: &config::Guest,
    ) -> Result<Arc<Self>, LoadError> {
        let fail = |reason| LoadError {
            guest: name.to_owned(),
            path: guest.component.clone(),
            reason: Box::new(reason),
        };
        let bytes =
            std::fs::read(&guest.component).map_err(|error| fail(LoadReason::Read(error)))?;
        let version = Version::of(&guest.component, &bytes);
        let (compiled, world) = prepare(engine, name, guest, &bytes, &version).map_err(fail)?;
        // What is granted must be there before a lane depends on it.
        System::new(&guest.grants)
            .and_then(|_| grants::check_folders(&guest.grants))
            .map_err(|reason| fail(LoadReason::System(reason)))?;
        let config = serde_json::to_string(&guest.config)
            .map_err(|error| fail(LoadReason::Mismatch(error.to_string())))?;
        let component = Arc::new(Self {
            name: name.to_owned(),
            engine: engine.clone(),
            world,
            _compiled: compiled,
            config,
            settings: guest.clone(),
            version,
        });
        if let Some(samples) = &guest.samples {
            samples::pass(&component, samples)
                .map_err(|reason| fail(LoadReason::Sample(reason)))?;
        }
        Ok(component)
    }

    /// Which bytes it was made from.
    pub const fn version(&self) -> &Version {
        &self.version
    }

    /// Starts an instance for `source` and gives it up again.
    ///
    /// # Errors
    /// [`ChainError`] when it traps on start or refuses its configuration.
    pub fn try_start(&self, source: &Source) -> Result<(), ChainError> {
        match Instance::start(self, source, &Arc::default()) {
            Ok(_) => Ok(()),
            Err(fault) => Err(ChainError::new(self, source, fault)),
        }
    }

    /// Name of the guest in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }
}

fn prepare(
    engine: &Engine,
    name: &str,
    guest: &config::Guest,
    bytes: &[u8],
    version: &Version,
) -> Result<(Arc<wasmtime::component::Component>, World), LoadReason> {
    if is_core_module(bytes) {
        return Err(LoadReason::CoreModule);
    }
    let component = engine
        .compile(&guest.component, bytes, &version.hash)
        .map_err(|error| LoadReason::Invalid(format!("{error:#}")))?;
    let engine = engine.wasmtime();
    let kind = component.component_type();
    let exports: Vec<_> = kind
        .exports(engine)
        .map(|(name, _)| name.to_owned())
        .collect();
    let mut newest = None;
    for (import, item) in kind.imports(engine) {
        if matches!(item.ty, ComponentItem::Type(_)) {
            continue;
        }
        check_import(name, &guest.grants, import)?;
        newest = newest.or(newer(import));
    }
    let mut linker = Linker::<State>::new(engine);
    Transform::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)
        .and_then(|()| grants::link(&mut linker, &guest.grants))
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
    let mismatch = |error: wasmtime::Error| match &newest {
        Some(version) => LoadReason::Newer(version.clone()),
        None => LoadReason::Mismatch(format!("{error:#}")),
    };
    let pre = linker.instantiate_pre(&component).map_err(&mismatch)?;
    let world = if batch {
        TransformBatchPre::new(pre).map(World::TransformBatch)
    } else {
        TransformPre::new(pre).map(World::Transform)
    };
    Ok((component, world.map_err(mismatch)?))
}

fn check_import(guest: &str, granted: &config::Grants, import: &str) -> Result<(), LoadReason> {
    let need = grants::needed(import);
    match need {
        _ if grants::gives(granted, need) => Ok(()),
        Need::Grant(key, value) => Err(LoadReason::Grant {
            import: import.to_owned(),
            guest: guest.to_owned(),
            key,
            value,
        }),
        Need::Nothing | Need::Never => Err(LoadReason::Import(import.to_owned())),
    }
}

/// The version of the contract that an import or export is of, where that is newer than this one.
pub(super) fn newer(import: &str) -> Option<String> {
    let (_, version) = import.strip_prefix("sluice:guest/")?.split_once('@')?;
    let last = |version: &str| version.rsplit('.').next()?.parse::<u32>().ok();
    (last(version)? > last(CONTRACT)?).then(|| version.to_owned())
}

pub(super) fn is_core_module(bytes: &[u8]) -> bool {
    // Bytes 4 to 7 of a binary are its version and its layer; layer 0 is the core module.
    bytes.starts_with(b"\0asm") && bytes.get(6..8) == Some(&[0, 0])
}

pub(super) fn describe(exports: &[String]) -> String {
    if exports.is_empty() {
        "nothing".to_owned()
    } else {
        exports.join(", ")
    }
}
