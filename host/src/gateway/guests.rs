//! The guests of a configuration: loaded at the start, and anew when their files change or somebody asks.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::Error;
use crate::blocking;
use crate::config::{self, Config};
use crate::guest::{Component, Engine, LoadError, Slot};

/// The folder of compiled code in `state_dir`.
const CACHE: &str = "compiled";

/// The guests that links use.
#[derive(Debug, Default)]
pub struct Guests {
    loaded: BTreeMap<String, Loaded>,
}

#[derive(Debug)]
struct Loaded {
    engine: Engine,
    settings: config::Guest,
    slot: Arc<Slot>,
    /// The file as it was when it was last loaded. Held while it is loaded anew, so that this happens once at a time.
    file: tokio::sync::Mutex<Option<File>>,
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
pub enum ReloadError {
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
        let mut used: Vec<_> = config.links.iter().flat_map(|link| &link.guests).collect();
        used.sort_unstable();
        used.dedup();
        if used.is_empty() {
            return Ok(Self::default());
        }
        let cache = config.gateway.state_dir.join(CACHE);
        let engine =
            Engine::new(Some(&cache)).map_err(|error| Error::Engine(format!("{error:#}")))?;
        let mut loaded = BTreeMap::new();
        for name in used {
            let settings = config.guests[name].clone();
            // Before it is read: a change that comes while it is read must not be missed.
            let file = File::look(&settings.component);
            let component = load(&engine, name, &settings).await?;
            tracing::info!(
                guest = name,
                path = %settings.component.display(),
                hash = component.version().hash,
                "guest loaded"
            );
            let entry = Loaded {
                engine: engine.clone(),
                settings,
                slot: Arc::new(Slot::new(component)),
                file: tokio::sync::Mutex::new(file),
            };
            loaded.insert(name.clone(), entry);
        }
        Ok(Self { loaded })
    }

    /// The guests of a link, in its order.
    pub fn of(&self, link: &config::Link) -> Arc<[Arc<Slot>]> {
        let names = link.guests.iter();
        names
            .map(|name| Arc::clone(&self.loaded[name].slot))
            .collect()
    }

    /// Every guest, in the order of their names.
    pub fn slots(&self) -> impl Iterator<Item = &Arc<Slot>> {
        self.loaded.values().map(|loaded| &loaded.slot)
    }

    /// Loads the file of a guest. Where it holds another version that can run, lanes take that up before their next
    /// batch.
    ///
    /// # Errors
    /// [`ReloadError`], which status shows too.
    pub async fn reload(&self, name: &str) -> Result<Reloaded, ReloadError> {
        let loaded = self
            .loaded
            .get(name)
            .ok_or_else(|| ReloadError::Unknown(name.to_owned()))?;
        let mut file = loaded.file.lock().await;
        *file = File::look(&loaded.settings.component);
        loaded.reload().await
    }

    /// Loads guests anew when their files change, until `stop`. A file is loaded when two looks at it, an `interval`
    /// apart, find the same: then nobody writes to it any more.
    pub async fn watch(&self, interval: Duration, stop: CancellationToken) {
        let mut before: BTreeMap<&str, Option<File>> = BTreeMap::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(interval) => {}
            }
            for (name, loaded) in &self.loaded {
                let now = File::look(&loaded.settings.component);
                let settled = before.insert(name, now) == Some(now);
                let mut file = loaded.file.lock().await;
                if now.is_some() && settled && *file != now {
                    *file = now;
                    // The error is in the log and in the status.
                    let _ = loaded.reload().await;
                }
            }
        }
    }
}

impl Loaded {
    async fn reload(&self) -> Result<Reloaded, ReloadError> {
        let name = self.slot.name();
        match self.newest().await {
            Ok(newest) => {
                let hash = newest.version().hash.clone();
                let changed = self.slot.current().version().hash != hash;
                if changed {
                    self.slot.install(newest);
                    tracing::info!(guest = name, hash, "a new version of the guest takes over");
                } else {
                    self.slot.confirm();
                }
                Ok(Reloaded {
                    guest: name.to_owned(),
                    changed,
                    hash,
                })
            }
            Err(reason) => {
                tracing::error!("{reason}; the version that runs goes on");
                self.slot.refuse(reason.clone());
                Err(ReloadError::Refused(reason))
            }
        }
    }

    /// The version in the file, once it has started for one of the partitions that the guest serves.
    async fn newest(&self) -> Result<Arc<Component>, String> {
        let component = load(&self.engine, self.slot.name(), &self.settings)
            .await
            .map_err(|error| error.to_string())?;
        let Some(source) = self.slot.source() else {
            return Ok(component);
        };
        blocking(move || match component.try_start(&source) {
            Ok(()) => Ok(component),
            Err(error) => Err(error.to_string()),
        })
        .await
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
