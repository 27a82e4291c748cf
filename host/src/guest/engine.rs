//! The engine that all guests share, and the clock of their time limits.

use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often running guests are checked against their time limit.
const TICK: Duration = Duration::from_millis(5);

/// Compiles and runs guests. Cheap to clone; the clock stops with the last clone.
#[derive(Clone)]
pub struct Engine {
    engine: wasmtime::Engine,
    _clock: Arc<()>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Engine")
    }
}

impl Engine {
    /// An engine with its clock running.
    ///
    /// # Errors
    /// When wasmtime does not support this machine, or when no thread can be started.
    pub fn new() -> Result<Self, wasmtime::Error> {
        let mut config = wasmtime::Config::new();
        config.wasm_component_model(true);
        config.epoch_interruption(true);
        let engine = wasmtime::Engine::new(&config)?;
        let clock = Arc::new(());
        let alive = Arc::downgrade(&clock);
        let ticking = engine.weak();
        std::thread::Builder::new()
            .name("guest-clock".to_owned())
            .spawn(move || tick(&ticking, &alive))?;
        Ok(Self {
            engine,
            _clock: clock,
        })
    }

    pub(super) const fn wasmtime(&self) -> &wasmtime::Engine {
        &self.engine
    }

    /// Ticks after which a call of at most `limit` has surely had its time.
    pub(super) fn ticks(limit: Duration) -> u64 {
        let ticks = limit.as_nanos().div_ceil(TICK.as_nanos());
        u64::try_from(ticks)
            .unwrap_or(u64::MAX / 2)
            .saturating_add(1)
    }
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
