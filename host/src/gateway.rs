//! The gateway: every link of a configuration, run together.

mod guests;
mod links;
mod reload;
mod writers;

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::admin::{self, ListenError};
use crate::checkpoint::{LaneKey, ServerStore, StoreError, consumer_name};
use crate::cluster::{Cluster, Connection, Partition};
use crate::config::{self, Config};
use crate::guest::{ChainError, LoadError};
use crate::link::{self, Board, LinkReport};

pub use guests::{GuestReloadError, Guests, Reloaded};
pub use reload::{Changes, ReloadError, Reloader, Reloads};

use links::Links;
use writers::Writers;

/// The gateway cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A guest's component cannot be used.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A guest does not start.
    #[error(transparent)]
    Start(#[from] ChainError),
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
#[derive(Debug, Default)]
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

/// Runs every link until `stop`, or until all of them have ended. Takes up the configuration anew when `reloads` says so.
///
/// # Errors
/// [`Error`] when the gateway cannot start. Links that fail are in the report.
pub async fn run(
    config: Config,
    mut reloads: Reloads,
    stop: CancellationToken,
) -> Result<Ended, Error> {
    let guests = tokio::select! {
        guests = Guests::load(&config) => Arc::new(guests?),
        () = stop.cancelled() => return Ok(Ended::default()),
    };
    let writers = Writers::open(&config)?;
    let board = Arc::new(Board::default());
    // It answers until everything else has ended.
    let admin_stop = CancellationToken::new();
    let _admin = match &config.admin {
        Some(admin) => {
            let shown = admin::Shown {
                board: Arc::clone(&board),
                guests: Arc::clone(&guests),
                reloader: reloads.reloader(),
            };
            Some(admin::start(admin.address, shown, admin_stop.clone()).await?)
        }
        None => None,
    };
    let watching = {
        let (guests, stop) = (Arc::clone(&guests), stop.clone());
        let interval = config.gateway.watch_interval;
        AbortOnDropHandle::new(tokio::spawn(
            async move { guests.watch(interval, stop).await },
        ))
    };
    let drain_timeout = config.gateway.drain_timeout;
    let mut links = Links::new(Arc::clone(&board), drain_timeout, stop.clone());
    let mut running = Running {
        config,
        guests,
        writers,
        board,
    };
    for link in running.config.links.clone() {
        links.start(running.parts(link));
    }
    let deadline = async {
        stop.cancelled().await;
        tokio::time::sleep(drain_timeout).await;
    };
    tokio::pin!(deadline);
    loop {
        tokio::select! {
            some_ran = links.ended() => if !some_ran {
                break;
            },
            Some(request) = reloads.next(), if !stop.is_cancelled() => {
                let outcome = running.reload(reloads.read(), &mut links, &stop).await;
                request.answer(outcome);
            }
            () = &mut deadline => break,
        }
    }
    drop(watching);
    Ok(Ended {
        reports: links.finish().await,
        unsaved: running.writers.finish().await,
    })
}

impl From<Unsaved> for link::Error {
    fn from(unsaved: Unsaved) -> Self {
        match unsaved {
            Unsaved::Store(error) => Self::Checkpoint(error),
            Unsaved::TooSlow(limit) => Self::Undrained(limit),
        }
    }
}

/// What the links are made of.
struct Running {
    config: Config,
    guests: Arc<Guests>,
    writers: Writers,
    board: Arc<Board>,
}

impl Running {
    fn parts(&mut self, link: config::Link) -> link::Parts {
        let config = &self.config;
        link::Parts {
            source: cluster(config, &link.source.cluster),
            destination: cluster(config, &link.destination.cluster),
            guests: self.guests.of(&link),
            checkpoints: self.writers.of(config, &link),
            board: Arc::clone(&self.board),
            consumer: consumer_name(&config.gateway.name, &link.name),
            mirror_interval: config.gateway.mirror_interval,
            link: Arc::new(link),
        }
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
