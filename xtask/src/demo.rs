//! `cargo demo`: two clusters, real traffic, the real binary, and a check of every message.

mod check;
mod cluster;
mod gateway;
mod outcome;
mod traffic;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::task::JoinSet;

use crate::progress::Steps;
use crate::{build, guests};
use cluster::Cluster;
use gateway::Gateway;
use traffic::{DESTINATIONS, PARTITIONS, PER_PARTITION};

/// How often the destination is asked how far it is.
const LOOK: Duration = Duration::from_millis(50);

/// Without any progress for this long the demo gives up.
const PATIENCE: Duration = Duration::from_mins(1);

/// Runs the demo.
///
/// # Errors
/// When any step fails, or when any message is missing, repeated, out of place or different.
pub fn run() -> Result<()> {
    let mut steps = Steps::new(6);
    steps.next("building the three example guests from source");
    guests::build_demo(&steps)?;
    steps.next("building sluice");
    let binary = build::sluice()?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(show(&mut steps, &binary))
}

async fn show(steps: &mut Steps, binary: &std::path::Path) -> Result<()> {
    steps.next("starting two clusters");
    let source = Cluster::start("SLUICE_SOURCE")?;
    let destination = Cluster::start("SLUICE_DESTINATION")?;
    source.ensure_unused().await?;
    destination.ensure_unused().await?;
    steps.note(&format!(
        "source {}, destination {}",
        source.parts()?.0,
        destination.parts()?.0
    ));

    let all = u64::from(PARTITIONS) * PER_PARTITION;
    steps.next(&format!(
        "producing {all} messages over {PARTITIONS} partitions"
    ));
    produce(steps, &source, all).await?;

    steps.next("replicating with config/demo.toml");
    let folder = tempfile::tempdir().context("cannot make a folder for the checkpoints")?;
    let mut gateway = Gateway::start(binary, folder.path(), &source, &destination)?;
    let began = Instant::now();
    let due = check::due()?;
    wait_for(steps, &mut gateway, &destination, due).await?;
    let took = began.elapsed();
    let report = gateway.stop().await?;

    steps.next("checking every message at the destination");
    let bar = steps.bar(all);
    let findings = check::check(&destination.client().await?, |count| bar.inc(count)).await?;
    bar.finish_and_clear();
    source.clean_up().await?;
    destination.clean_up().await?;
    outcome::print(&findings, all, took, &report);
    Ok(())
}

async fn produce(steps: &Steps, source: &Cluster, all: u64) -> Result<()> {
    cluster::create_source(&source.client().await?).await?;
    let bar = steps.bar(all);
    let mut producers = JoinSet::new();
    for partition in 0..PARTITIONS {
        let (client, bar) = (source.client().await?, bar.clone());
        producers
            .spawn(async move { cluster::fill(client, partition, |count| bar.inc(count)).await });
    }
    while let Some(produced) = producers.join_next().await {
        produced??;
    }
    bar.finish_and_clear();
    Ok(())
}

async fn wait_for(
    steps: &Steps,
    gateway: &mut Gateway,
    destination: &Cluster,
    due: u64,
) -> Result<()> {
    let client = destination.client().await?;
    let bar = steps.bar(due);
    let (mut last, mut last_progress) = (0, Instant::now());
    loop {
        gateway.ensure_running()?;
        let mut arrived = 0;
        for topic in DESTINATIONS {
            arrived += cluster::count(&client, topic).await?;
        }
        bar.set_position(arrived);
        if arrived >= due {
            bar.finish_and_clear();
            return Ok(());
        }
        if arrived > last {
            (last, last_progress) = (arrived, Instant::now());
        } else if last_progress.elapsed() > PATIENCE {
            bail!("no message arrived for {PATIENCE:?}; {arrived} of {due} are there");
        }
        tokio::time::sleep(LOOK).await;
    }
}
