//! A guest of the configuration and the version of it that runs.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use serde::Serialize;
use tokio::sync::watch;

use super::Source;
use super::component::{Component, Version};
use super::stats::Stats;
use crate::lock;

/// A guest of the configuration. Lanes take up a new version of it before their next batch.
#[derive(Debug)]
pub struct Slot {
    name: String,
    current: Mutex<Arc<Component>>,
    /// How often somebody asked for the newest version. Lanes that could not start it then try once more.
    requests: watch::Sender<u64>,
    /// Why the last new version was refused, until one is taken up.
    refused: Mutex<Option<String>>,
    /// A source partition that it serves.
    source: Mutex<Option<Source>>,
    /// What it did, over all versions.
    pub stats: Arc<Stats>,
}

/// A guest as status shows it.
#[derive(Debug, Serialize)]
pub struct GuestStatus {
    /// Name in the configuration.
    pub guest: String,
    /// The version that runs.
    #[serde(flatten)]
    pub version: Version,
    /// Why the last new version does not run, if it was refused.
    pub refused: Option<String>,
    /// Lanes that wait because the guest keeps failing.
    pub open_breakers: u64,
}

impl Slot {
    /// A guest whose first version is `component`.
    pub fn new(component: Arc<Component>) -> Self {
        Self {
            name: component.name().to_owned(),
            current: Mutex::new(component),
            requests: watch::Sender::new(0),
            refused: Mutex::new(None),
            source: Mutex::new(None),
            stats: Arc::default(),
        }
    }

    /// Name of the guest in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version that lanes take up.
    pub fn current(&self) -> Arc<Component> {
        Arc::clone(&lock(&self.current))
    }

    /// Makes `component` the version that lanes take up.
    pub fn install(&self, component: Arc<Component>) {
        *lock(&self.current) = component;
        self.confirm();
        self.stats.reloads.fetch_add(1, Ordering::Relaxed);
    }

    /// Tells that the version that lanes take up is the newest. Those where it did not start try it again.
    pub fn confirm(&self) {
        *lock(&self.refused) = None;
        self.requests.send_modify(|requests| *requests += 1);
    }

    /// Changes whenever the newest version is asked for.
    pub(super) fn requests(&self) -> watch::Receiver<u64> {
        self.requests.subscribe()
    }

    /// Tells why a new version is not taken up.
    pub fn refuse(&self, reason: String) {
        *lock(&self.refused) = Some(reason);
        self.stats.refused_reloads.fetch_add(1, Ordering::Relaxed);
    }

    /// A source partition that it serves, if it serves any.
    pub fn source(&self) -> Option<Source> {
        lock(&self.source).clone()
    }

    pub(super) fn serves(&self, source: &Source) {
        *lock(&self.source) = Some(source.clone());
    }

    /// What status shows.
    pub fn status(&self) -> GuestStatus {
        GuestStatus {
            guest: self.name.clone(),
            version: self.current().version().clone(),
            refused: lock(&self.refused).clone(),
            open_breakers: self.stats.open.load(Ordering::Relaxed),
        }
    }
}
