//! The engine that all guests share, and the clock of their time limits.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use wasmtime::component::Component;

use crate::lock;

/// How often running guests are checked against their time limit.
const TICK: Duration = Duration::from_millis(5);

/// Compiles and runs guests. Cheap to clone; the clock stops with the last clone.
#[derive(Clone)]
pub struct Engine {
    wasmtime: wasmtime::Engine,
    compiled: Arc<Mutex<Vec<Compiled>>>,
    _clock: Arc<()>,
}

/// A component that some guest may still use: its file, a hash of that file's bytes, and the code.
type Compiled = (PathBuf, String, Weak<Component>);

impl std::fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Engine")
    }
}

impl Engine {
    /// An engine with its clock running. `cache` is a folder for compiled code, which must be the gateway's own: what
    /// lies there is run.
    ///
    /// # Errors
    /// When wasmtime does not support this machine, or when no thread can be started.
    pub fn new(cache: Option<&Path>) -> Result<Self, wasmtime::Error> {
        let mut config = wasmtime::Config::new();
        config.wasm_component_model(true);
        config.epoch_interruption(true);
        if let Some(folder) = cache {
            match open_cache(folder) {
                Ok(cache) => {
                    config.cache(Some(cache));
                }
                Err(error) => tracing::warn!(
                    folder = %folder.display(),
                    "compiled guests cannot be kept, so each start compiles them: {error:#}"
                ),
            }
        }
        let engine = wasmtime::Engine::new(&config)?;
        let clock = Arc::new(());
        let alive = Arc::downgrade(&clock);
        let ticking = engine.weak();
        std::thread::Builder::new()
            .name("guest-clock".to_owned())
            .spawn(move || tick(&ticking, &alive))?;
        Ok(Self {
            wasmtime: engine,
            compiled: Arc::default(),
            _clock: clock,
        })
    }

    pub(super) const fn wasmtime(&self) -> &wasmtime::Engine {
        &self.wasmtime
    }

    /// Compiles a component, unless a guest in use was compiled from the same file and bytes: interpreters take many
    /// seconds, and guests that differ in their configuration alone can share one.
    pub(super) fn compile(
        &self,
        path: &Path,
        bytes: &[u8],
        hash: &str,
    ) -> Result<Arc<Component>, wasmtime::Error> {
        let known = lock(&self.compiled)
            .iter()
            .find(|(file, of, _)| file == path && of == hash)
            .and_then(|(_, _, component)| component.upgrade());
        if let Some(component) = known {
            return Ok(component);
        }
        let component = Arc::new(Component::from_binary(&self.wasmtime, bytes)?);
        let mut compiled = lock(&self.compiled);
        compiled.retain(|(_, _, component)| component.strong_count() > 0);
        compiled.push((path.to_owned(), hash.to_owned(), Arc::downgrade(&component)));
        Ok(component)
    }

    /// Ticks after which a call of at most `limit` has surely had its time.
    pub(super) fn ticks(limit: Duration) -> u64 {
        let ticks = limit.as_nanos().div_ceil(TICK.as_nanos());
        u64::try_from(ticks)
            .unwrap_or(u64::MAX / 2)
            .saturating_add(1)
    }
}

fn open_cache(folder: &Path) -> Result<wasmtime::Cache, wasmtime::Error> {
    std::fs::create_dir_all(folder)?;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    let mut config = wasmtime::CacheConfig::new();
    config.with_directory(std::path::absolute(folder)?);
    wasmtime::Cache::new(config)
}

fn tick(engine: &wasmtime::EngineWeak, alive: &Weak<()>) {
    while alive.strong_count() > 0 {
        std::thread::sleep(TICK);
        match engine.upgrade() {
            Some(engine) => engine.increment_epoch(),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_is_compiled_once_while_a_guest_uses_it() {
        let engine = Engine::new(None).expect("an engine");
        let compile = |path: &str, text: &str| {
            let bytes = wat::parse_str(text).expect("valid text");
            engine
                .compile(Path::new(path), &bytes, text)
                .expect("compiled")
        };
        let first = compile("a", "(component)");
        assert!(Arc::ptr_eq(&first, &compile("a", "(component)")));
        let changed = compile("a", "(component (core module))");
        assert!(!Arc::ptr_eq(&first, &changed));
        drop((first, changed));
        compile("b", "(component)");
        let kept = engine.compiled.lock().expect("no panic").len();
        assert_eq!(kept, 1, "what no guest uses is forgotten");
    }
}
