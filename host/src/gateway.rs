//! The gateway: every link of a configuration, run together.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::blocking;
use crate::checkpoint::{LocalStore, StoreError, Writer};
use crate::cluster::Cluster;
use crate::config::Config;
use crate::guest::{Component, Engine, LoadError};
use crate::link::{self, LinkReport};

/// The gateway cannot start, or could not save its last checkpoints.
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
}

/// Runs every link until `stop`, or until all of them have ended. When this returns, what was settled is on disk.
///
/// # Errors
/// [`Error`] when the gateway cannot start or cannot save its last checkpoints. Links that fail are in the report.
pub async fn run(config: Config, stop: CancellationToken) -> Result<Vec<LinkReport>, Error> {
    let components = load_guests(&config).await?;
    let checkpoints = Arc::new(Writer::new(LocalStore::open(&config.gateway.state_dir)?));
    let writer_stop = CancellationToken::new();
    let writer = {
        let (checkpoints, stop) = (Arc::clone(&checkpoints), writer_stop.clone());
        let interval = config.gateway.checkpoint_interval;
        tokio::spawn(async move { checkpoints.run(interval, stop).await })
    };

    let clusters = clusters(&config);
    let mut links = JoinSet::new();
    for link in config.links {
        let parts = link::Parts {
            source: Arc::clone(&clusters[&link.source.cluster]),
            destination: Arc::clone(&clusters[&link.destination.cluster]),
            components: link
                .guests
                .iter()
                .map(|name| Arc::clone(&components[name]))
                .collect(),
            checkpoints: Arc::clone(&checkpoints),
            link: Arc::new(link),
        };
        links.spawn(link::run(parts, stop.clone()));
    }
    let mut reports = links.join_all().await;
    reports.sort_by(|left, right| left.link.cmp(&right.link));

    writer_stop.cancel();
    match writer.await {
        Ok(written) => written?,
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    }
    Ok(reports)
}

fn clusters(config: &Config) -> BTreeMap<String, Arc<Cluster>> {
    config
        .clusters
        .iter()
        .map(|(name, cluster)| {
            let cluster = Cluster {
                name: name.clone(),
                config: cluster.clone(),
                consumer: format!("sluice-{}", config.gateway.name),
            };
            (name.clone(), Arc::new(cluster))
        })
        .collect()
}

/// Compiles each guest that a link uses, once.
async fn load_guests(config: &Config) -> Result<BTreeMap<String, Arc<Component>>, Error> {
    let mut used: Vec<_> = config.links.iter().flat_map(|link| &link.guests).collect();
    used.sort_unstable();
    used.dedup();
    if used.is_empty() {
        return Ok(BTreeMap::new());
    }
    let engine = Engine::new().map_err(|error| Error::Engine(format!("{error:#}")))?;
    let mut components = BTreeMap::new();
    for name in used {
        let (engine, guest, owned) = (engine.clone(), config.guests[name].clone(), name.clone());
        let component = blocking(move || Component::load(&engine, &owned, &guest)).await?;
        tracing::info!(guest = name, path = %config.guests[name].component.display(), "guest loaded");
        components.insert(name.clone(), Arc::new(component));
    }
    Ok(components)
}
