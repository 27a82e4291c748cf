//! Where checkpoints are written.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Error, Unsaved, server_store};
use crate::checkpoint::{LocalStore, StoreError, Writer};
use crate::config::{self, CheckpointStore, Config};

/// After lanes have ended, how long their last checkpoints may take.
const LAST_WRITE: Duration = Duration::from_secs(5);

/// The writers of checkpoints, each with a task.
pub struct Writers {
    interval: Duration,
    kind: Kind,
}

enum Kind {
    /// One file; all links share its durable writes.
    Local(Task),
    /// At the clusters of each link: one that is down must not hold up the others.
    Server(BTreeMap<String, Task>),
}

struct Task {
    writer: Arc<Writer>,
    stop: CancellationToken,
    handle: JoinHandle<Result<(), StoreError>>,
}

impl Task {
    fn start(writer: Writer, interval: Duration) -> Self {
        let (writer, stop) = (Arc::new(writer), CancellationToken::new());
        let handle = {
            let (writer, stop) = (Arc::clone(&writer), stop.clone());
            tokio::spawn(async move { writer.run(interval, stop).await })
        };
        Self {
            writer,
            stop,
            handle,
        }
    }

    async fn flush(&self) -> Result<(), Unsaved> {
        let flushed = tokio::time::timeout(LAST_WRITE, self.writer.flush()).await;
        flushed.map_err(|_| too_slow())?.map_err(Unsaved::from)
    }

    /// Writes what is left.
    async fn finish(mut self) -> Result<(), Unsaved> {
        self.stop.cancel();
        match tokio::time::timeout(LAST_WRITE, &mut self.handle).await {
            Ok(Ok(written)) => Ok(written?),
            Ok(Err(failed)) => std::panic::resume_unwind(failed.into_panic()),
            Err(_) => {
                self.handle.abort();
                Err(too_slow())
            }
        }
    }
}

fn too_slow() -> Unsaved {
    Unsaved::TooSlow(humantime::format_duration(LAST_WRITE))
}

impl Writers {
    /// Opens the store that the configuration names.
    ///
    /// # Errors
    /// [`Error`] when it cannot be opened.
    pub fn open(config: &Config) -> Result<Self, Error> {
        let interval = config.gateway.checkpoint_interval;
        let kind = match config.gateway.checkpoint_store {
            CheckpointStore::Local => {
                let store = LocalStore::open(&config.gateway.state_dir)?;
                Kind::Local(Task::start(Writer::new(Arc::new(store)), interval))
            }
            CheckpointStore::Server => Kind::Server(BTreeMap::new()),
        };
        Ok(Self { interval, kind })
    }

    /// The writer of a link.
    pub fn of(&mut self, config: &Config, link: &config::Link) -> Arc<Writer> {
        match &mut self.kind {
            Kind::Local(task) => Arc::clone(&task.writer),
            Kind::Server(tasks) => {
                let task = tasks.entry(link.name.clone()).or_insert_with(|| {
                    let store = server_store(config, link);
                    Task::start(Writer::new(Arc::new(store)), self.interval)
                });
                Arc::clone(&task.writer)
            }
        }
    }

    /// Writes what a link that ended left, so that it goes on from there when it starts anew.
    ///
    /// # Errors
    /// [`Unsaved`] when that could not be written. It is kept, to be written later.
    pub async fn close(&mut self, link: &str) -> Result<(), Unsaved> {
        match &mut self.kind {
            Kind::Local(task) => task.flush().await,
            Kind::Server(tasks) => {
                let Some(task) = tasks.get(link) else {
                    return Ok(());
                };
                task.flush().await?;
                match tasks.remove(link) {
                    Some(task) => task.finish().await,
                    None => Ok(()),
                }
            }
        }
    }

    /// Writes what is left; returns why that is not durable.
    pub async fn finish(self) -> Option<Unsaved> {
        let tasks = match self.kind {
            Kind::Local(task) => vec![task],
            Kind::Server(tasks) => tasks.into_values().collect(),
        };
        // All at once: one store that does not answer must not take the time of the others.
        let tasks: Vec<_> = tasks
            .into_iter()
            .map(|task| tokio::spawn(task.finish()))
            .collect();
        let mut unsaved = None;
        for task in tasks {
            match task.await {
                Ok(written) => unsaved = unsaved.or(written.err()),
                Err(failed) => std::panic::resume_unwind(failed.into_panic()),
            }
        }
        unsaved
    }
}
