//! A checkpoint store in memory that outlives the gateway, and fails now and then.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use sluice::checkpoint::{Checkpoint, LaneKey, Mark, Store, StoreError};
use sluice::cluster::Partition;

/// What is durable.
#[derive(Debug, Clone)]
pub struct MemoryStore(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    durable: BTreeMap<LaneKey, Checkpoint>,
    fault_rate: u8,
    rng: fastrand::Rng,
}

impl MemoryStore {
    /// An empty store of which so many of a hundred writes fail.
    pub fn new(fault_rate: u8, rng: fastrand::Rng) -> Self {
        Self(Arc::new(Mutex::new(State {
            durable: BTreeMap::new(),
            fault_rate,
            rng,
        })))
    }

    /// No more faults.
    pub fn calm(&self) {
        self.with(|state| state.fault_rate = 0);
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn load(
        &self,
        key: &LaneKey,
        _usual: &Partition,
    ) -> Result<Option<Checkpoint>, StoreError> {
        Ok(self.with(|state| state.durable.get(key).cloned()))
    }

    async fn mark(&self, _key: &LaneKey, _to: &Partition) -> Result<Option<Mark>, StoreError> {
        Ok(None)
    }

    async fn save(&self, checkpoints: &[(LaneKey, Checkpoint)]) -> Result<(), StoreError> {
        let (wait, fails) = self.with(|state| {
            let wait = state.rng.u64(0..20);
            (wait, state.rng.u8(0..100) < state.fault_rate)
        });
        tokio::time::sleep(Duration::from_millis(wait)).await;
        if fails {
            return Err(StoreError::Local {
                path: "memory".into(),
                reason: "full".to_owned(),
                passing: true,
            });
        }
        self.with(|state| state.durable.extend(checkpoints.iter().cloned()));
        // Durable, but the gateway may die before it learns that.
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(())
    }
}
