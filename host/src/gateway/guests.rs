//! The guests of a configuration: loaded at the start, and anew when their files change or somebody asks.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use super::Error;
use crate::config::{self, Config};
use crate::guest::{Component, Engine, LoadError, Slot};
use crate::{blocking, lock};

/// The folder of compiled code in `state_dir`.
const CACHE: &str = "compiled";

/// The guests that links use.
#[derive(Debug)]
pub struct Guests {
    /// The folder of compiled code.
    cache: PathBuf,
    /// Made for the first guest.
    engine: Mutex<Option<Engine>>,
    loaded: Mutex<Loaded>,
    /// Held while guests are loaded, so that this happens once at a time.
    loading: Arc<tokio::sync::Mutex<()>>,
}

type Loaded = BTreeMap<String, Arc<Guest>>;

#[derive(Debug)]
struct Guest {
    settings: config::Guest,
    slot: Arc<Slot>,
    /// The file as it was when it was last loaded.
    file: Mutex<Option<File>>,
}

/// The guests of a configuration, ready to take the place of those that run.
#[derive(Debug)]
pub struct Prepared {
    loaded: Loaded,
    /// New versions of guests that run.
    versions: Vec<(Arc<Slot>, Arc<Component>)>,
    /// Names of those that are new or have other settings.
    pub changed: Vec<String>,
    _loading: OwnedMutexGuard<()>,
}

/// What tells that a file was replaced or written to, of the file that a path leads to through any symbolic links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct File {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl File {
    /// `None` while the path leads nowhere.
    fn look(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        })
    }
}

/// What came of loading a guest anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reloaded {
    /// Name in the configuration.
    pub guest: String,
    /// Whether the file holds another version than the one that ran.
    pub changed: bool,
    /// SHA-256 of the version that runs now.
    pub hash: String,
}

/// Why a guest was not loaded anew. The version that ran goes on.
#[derive(Debug, thiserror::Error)]
pub enum GuestReloadError {
    /// There is none of this name.
    #[error("no link uses a guest called `{0}`")]
    Unknown(String),
    /// The new version cannot run.
    #[error("{0}; the version that runs goes on")]
    Refused(String),
}

impl Guests {
    /// Compiles each guest that a link uses, once.
    ///
    /// # Errors
    /// [`Error`] when one of them cannot be used.
    pub async fn load(config: &Config) -> Result<Self, Error> {
        let guests = Self {
            cache: config.gateway.state_dir.join(CACHE),
            engine: Mutex::default(),
            loaded: Mutex::default(),
            loading: Arc::default(),
        };
        let prepared = guests.prepare(config).await?;
        guests.install(prepared);
        Ok(guests)
    }

    /// Loads what another configuration has that this one has not. Nothing changes before [`Guests::install`].
    ///
    /// # Errors
    /// [`Error`] when one of the guests cannot be used.
    pub async fn prepare(&self, config: &Config) -> Result<Prepared, Error> {
        let loading = Arc::clone(&self.loading).lock_owned().await;
        let before = lock(&self.loaded).clone();
        let mut prepared = Prepared {
            loaded: BTreeMap::new(),
            versions: Vec::new(),
            changed: Vec::new(),
            _loading: loading,
        };
        let used: BTreeSet<_> = config.links.iter().flat_map(|link| &link.guests).collect();
        for name in used {
            let settings = &config.guests[name];
            let running = before.get(name);
            if let Some(same) = running.filter(|guest| guest.settings == *settings) {
                prepared.loaded.insert(name.clone(), Arc::clone(same));
                continue;
            }
            // Before it is read: a change that comes while it is read must not be missed.
            let file = File::look(&settings.component);
            let version = self
                .version(name, settings, running.map(|guest| &guest.slot))
                .await?;
            tracing::info!(
                guest = name,
                path = %settings.component.display(),
                hash = version.version().hash,
                "guest loaded"
            );
            let slot = match running {
                Some(guest) => {
                    let slot = Arc::clone(&guest.slot);
                    prepared.versions.push((Arc::clone(&slot), version));
                    slot
                }
                None => Arc::new(Slot::new(version)),
            };
            let guest = Guest {
                settings: settings.clone(),
                slot,
                file: Mutex::new(file),
            };
            prepared.loaded.insert(name.clone(), Arc::new(guest));
            prepared.changed.push(name.clone());
        }
        Ok(prepared)
    }

    /// Makes the guests of `prepared` those that run. Lanes take up new versions before their next batch.
    pub fn install(&self, prepared: Prepared) {
        for (slot, version) in prepared.versions {
            slot.install(version);
        }
        *lock(&self.loaded) = prepared.loaded;
    }

    /// The version in a guest's file, once it has started for one of the partitions that `slot` serves.
    async fn version(
        &self,
        name: &str,
        settings: &config::Guest,
        slot: Option<&Arc<Slot>>,
    ) -> Result<Arc<Component>, Error> {
        let component = load(&self.engine()?, name, settings).await?;
        if let Some(source) = slot.and_then(|slot| slot.source()) {
            let component = Arc::clone(&component);
            blocking(move || component.try_start(&source)).await?;
        }
        Ok(component)
    }

    fn engine(&self) -> Result<Engine, Error> {
        let mut engine = lock(&self.engine);
        if let Some(engine) = &*engine {
            return Ok(engine.clone());
        }
        let new =
            Engine::new(Some(&self.cache)).map_err(|error| Error::Engine(format!("{error:#}")))?;
        Ok(engine.insert(new).clone())
    }

    /// The guests of a link, in its order.
    pub fn of(&self, link: &config::Link) -> Arc<[Arc<Slot>]> {
        let loaded = lock(&self.loaded);
        let names = link.guests.iter();
        names.map(|name| Arc::clone(&loaded[name].slot)).collect()
    }

    /// Every guest, in the order of their names.
    pub fn slots(&self) -> Vec<Arc<Slot>> {
        let loaded = lock(&self.loaded);
        let slots = loaded.values().map(|guest| Arc::clone(&guest.slot));
        slots.collect()
    }

    /// Loads the file of a guest. Where it holds another version that can run, lanes take that up before their next
    /// batch.
    ///
    /// # Errors
    /// [`GuestReloadError`], which status shows too.
    pub async fn reload(&self, name: &str) -> Result<Reloaded, GuestReloadError> {
        let _loading = self.loading.lock().await;
        let found = lock(&self.loaded).get(name).cloned();
        let guest = found.ok_or_else(|| GuestReloadError::Unknown(name.to_owned()))?;
        self.reload_guest(&guest).await
    }

    /// Loads guests anew when their files change, until `stop`. A file is loaded when two looks at it, an `interval`
    /// apart, find the same: then nobody writes to it any more.
    pub async fn watch(&self, interval: Duration, stop: CancellationToken) {
        let mut before: BTreeMap<PathBuf, Option<File>> = BTreeMap::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(interval) => {}
            }
            let _loading = self.loading.lock().await;
            let loaded = lock(&self.loaded).clone();
            let mut looks = BTreeMap::new();
            for guest in loaded.values() {
                let path = &guest.settings.component;
                let now = File::look(path);
                looks.insert(path.clone(), now);
                let settled = before.get(path) == Some(&now);
                if now.is_some() && settled && *lock(&guest.file) != now {
                    // The error is in the log and in the status.
                    let _ = self.reload_guest(guest).await;
                }
            }
            before = looks;
        }
    }

    async fn reload_guest(&self, guest: &Guest) -> Result<Reloaded, GuestReloadError> {
        *lock(&guest.file) = File::look(&guest.settings.component);
        let (slot, name) = (&guest.slot, guest.slot.name());
        match self.version(name, &guest.settings, Some(slot)).await {
            Ok(newest) => {
                let hash = newest.version().hash.clone();
                let changed = slot.current().version().hash != hash;
                if changed {
                    slot.install(newest);
                    tracing::info!(guest = name, hash, "a new version of the guest takes over");
                } else {
                    slot.confirm();
                }
                Ok(Reloaded {
                    guest: name.to_owned(),
                    changed,
                    hash,
                })
            }
            Err(reason) => {
                let reason = reason.to_string();
                tracing::error!("{reason}; the version that runs goes on");
                slot.refuse(reason.clone());
                Err(GuestReloadError::Refused(reason))
            }
        }
    }
}

async fn load(
    engine: &Engine,
    name: &str,
    settings: &config::Guest,
) -> Result<Arc<Component>, LoadError> {
    let (engine, name, settings) = (engine.clone(), name.to_owned(), settings.clone());
    blocking(move || Component::load(&engine, &name, &settings)).await
}
