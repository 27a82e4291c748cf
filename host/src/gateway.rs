//! The gateway: every link of a configuration, run together.

mod guests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::admin::{self, ListenError};
use crate::checkpoint::{LaneKey, LocalStore, ServerStore, StoreError, Writer, consumer_name};
use crate::cluster::{Cluster, Connection, Partition};
use crate::config::{self, CheckpointStore, Config};
use crate::guest::LoadError;
use crate::link::{self, Board, LinkReport};

pub use guests::{Guests, ReloadError, Reloaded};

/// The gateway cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A guest's component cannot be used.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The engine for guests does not start on this machine.
    #[error("guests cannot run on this machine: {0}")]
    Engine(String),
    /// The checkpoint store failed.
    #[error(transparent)]
    Checkpoint(#[from] StoreError),
    /// The admin address cannot be used.
    #[error(transparent)]
    Admin(#[from] ListenError),
}

/// How a gateway ended.
#[derive(Debug)]
pub struct Ended {
    /// What each link did, in the order of their names.
    pub reports: Vec<LinkReport>,
    /// Why the last checkpoints are not durable, if they are not. The next start goes on from older ones, and finds
    /// at the destinations what was delivered since.
    pub unsaved: Option<Unsaved>,
}

/// Why the last checkpoints are not durable.
#[derive(Debug, thiserror::Error)]
pub enum Unsaved {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store takes too long.
    #[error(
        "the last checkpoints were not written within {0}; nothing is lost, the next start finds what was delivered"
    )]
    TooSlow(humantime::FormattedDuration),
}

/// After the lanes have ended, how long the last checkpoints may take.
const LAST_WRITE: Duration = Duration::from_secs(5);

/// Runs every link until `stop`, or until all of them have ended.
///
/// # Errors
/// [`Error`] when the gateway cannot start. Links that fail are in the report.
pub async fn run(config: Config, stop: CancellationToken) -> Result<Ended, Error> {
    let guests = Arc::new(Guests::load(&config).await?);
    let clusters = clusters(&config);
    let store = Checkpoints::open(&config)?;
    let board = Arc::new(Board::default());
    // It answers until everything else has ended.
    let admin_stop = CancellationToken::new();
    let _admin = match &config.admin {
        Some(admin) => {
            let shown = admin::Shown {
                board: Arc::clone(&board),
                guests: Arc::clone(&guests),
            };
            Some(admin::start(admin.address, shown, admin_stop.clone()).await?)
        }
        None => None,
    };
    let drain_timeout = config.gateway.drain_timeout;
    let mut names: Vec<_> = config.links.iter().map(|link| link.name.clone()).collect();
    let (mut writers, mut links) = (Vec::new(), JoinSet::new());
    for link in &config.links {
        let (source, destination) = (
            Arc::clone(&clusters[&link.source.cluster]),
            Arc::clone(&clusters[&link.destination.cluster]),
        );
        let writer = store.writer(&config, link);
        writers.push(Arc::clone(&writer));
        let parts = link::Parts {
            source,
            destination,
            guests: guests.of(link),
            checkpoints: writer,
            board: Arc::clone(&board),
            consumer: consumer_name(&config.gateway.name, &link.name),
            mirror_interval: config.gateway.mirror_interval,
            link: Arc::new(link.clone()),
        };
        links.spawn(link::run(parts, stop.clone()));
    }
    let writers = WriterTasks::start(writers, config.gateway.checkpoint_interval);

    let watching = {
        let (guests, stop) = (Arc::clone(&guests), stop.clone());
        let interval = config.gateway.watch_interval;
        AbortOnDropHandle::new(tokio::spawn(
            async move { guests.watch(interval, stop).await },
        ))
    };
    let mut reports = until_drained(&mut links, drain_timeout, &stop).await;
    drop(watching);
    names.retain(|name| reports.iter().all(|report| report.link != *name));
    reports.extend(names.into_iter().map(|name| LinkReport {
        lanes: link::reports(&board, &name),
        link: name,
        error: Some(link::Error::Undrained(humantime::format_duration(
            drain_timeout,
        ))),
    }));
    reports.sort_by(|left, right| left.link.cmp(&right.link));
    Ok(Ended {
        reports,
        unsaved: writers.finish(LAST_WRITE).await,
    })
}

/// The reports of the links that ended by themselves, or in time after `stop`. The others are cut off.
async fn until_drained(
    links: &mut JoinSet<LinkReport>,
    limit: Duration,
    stop: &CancellationToken,
) -> Vec<LinkReport> {
    let deadline = async {
        stop.cancelled().await;
        tokio::time::sleep(limit).await;
    };
    tokio::pin!(deadline);
    let mut reports = Vec::new();
    loop {
        let ended = tokio::select! {
            ended = links.join_next() => ended,
            () = &mut deadline => None,
        };
        match ended {
            Some(Ok(report)) => reports.push(report),
            Some(Err(failed)) => std::panic::resume_unwind(failed.into_panic()),
            None => break,
        }
    }
    links.shutdown().await;
    reports
}

/// Where checkpoints are kept.
enum Checkpoints {
    /// One file; all links share its durable writes.
    Local(Arc<Writer>),
    /// At the clusters of each link: one that is down must not hold up the others.
    Server,
}

impl Checkpoints {
    fn open(config: &Config) -> Result<Self, Error> {
        Ok(match config.gateway.checkpoint_store {
            CheckpointStore::Local => {
                let store = LocalStore::open(&config.gateway.state_dir)?;
                Self::Local(Arc::new(Writer::new(Arc::new(store))))
            }
            CheckpointStore::Server => Self::Server,
        })
    }

    /// The writer of a link.
    fn writer(&self, config: &Config, link: &config::Link) -> Arc<Writer> {
        match self {
            Self::Local(writer) => Arc::clone(writer),
            Self::Server => Arc::new(Writer::new(Arc::new(server_store(config, link)))),
        }
    }
}

/// The tasks that write checkpoints.
struct WriterTasks {
    tasks: JoinSet<Result<(), StoreError>>,
    stop: CancellationToken,
}

impl WriterTasks {
    fn start(mut writers: Vec<Arc<Writer>>, interval: Duration) -> Self {
        writers.sort_by_key(|writer| Arc::as_ptr(writer).cast::<()>());
        writers.dedup_by(|left, right| Arc::ptr_eq(left, right));
        let (mut tasks, stop) = (JoinSet::new(), CancellationToken::new());
        for writer in writers {
            let stop = stop.clone();
            tasks.spawn(async move { writer.run(interval, stop).await });
        }
        Self { tasks, stop }
    }

    /// Writes what is left, for `limit` at most; returns why that is not durable.
    async fn finish(mut self, limit: Duration) -> Option<Unsaved> {
        self.stop.cancel();
        let written = async {
            let mut failure = None;
            while let Some(ended) = self.tasks.join_next().await {
                match ended {
                    Ok(written) => failure = failure.or(written.err()),
                    Err(failed) => std::panic::resume_unwind(failed.into_panic()),
                }
            }
            failure.map(Unsaved::Store)
        };
        let outcome = tokio::time::timeout(limit, written).await;
        outcome.unwrap_or(Some(Unsaved::TooSlow(humantime::format_duration(limit))))
    }
}

pub(crate) fn clusters(config: &Config) -> BTreeMap<String, Arc<Cluster>> {
    let names = config.clusters.keys();
    names
        .map(|name| (name.clone(), cluster(config, name)))
        .collect()
}

fn cluster(config: &Config, name: &str) -> Arc<Cluster> {
    Arc::new(Cluster {
        name: name.to_owned(),
        config: config.clusters[name].clone(),
        consumer: format!("sluice-{}", config.gateway.name),
    })
}

/// The store of a link's checkpoints at its clusters.
pub fn server_store(config: &Config, link: &config::Link) -> ServerStore<Connection> {
    let connection = |name: &str| Connection::new(cluster(config, name));
    ServerStore::new(
        consumer_name(&config.gateway.name, &link.name),
        connection(&link.source.cluster),
        connection(&link.destination.cluster),
    )
}

/// The lanes that a link has at its source now, and where each delivers unless a guest routes elsewhere.
///
/// # Errors
/// [`link::Error`] when the source cannot be read, or has nothing for the link.
pub async fn lanes(
    config: &Config,
    link: &config::Link,
) -> Result<Vec<(LaneKey, Partition)>, link::Error> {
    link::lanes(link, cluster(config, &link.source.cluster)).await
}
