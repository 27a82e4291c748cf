//! `kill -9` of everything, again and again: two clusters and sluice are processes, a producer writes to the one, and
//! at random points of the traffic one, two or all of the three are killed and started again. In the end the destination
//! must hold exactly what the source holds, in its order.
//!
//! `SLUICE_CHAOS_SEED` gives the seed, which a failure prints: it makes the same schedule again, though not the same
//! timing. `SLUICE_CHAOS_KILLS` gives the number of kills.

mod bench;
mod compare;
mod producer;
mod random;
mod schedule;

use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;

use anyhow::{Context, Result};

use bench::Bench;
use producer::Producer;
use random::Random;

/// The number of kills where none is given.
const KILLS: usize = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_killed_nothing_is_lost_repeated_or_reordered() -> Result<()> {
    let seed = setting("SLUICE_CHAOS_SEED")?.unwrap_or_else(|| RandomState::new().hash_one(0));
    let kills = setting("SLUICE_CHAOS_KILLS")?.unwrap_or(KILLS);
    survive(seed, kills)
        .await
        .with_context(|| format!("once more: SLUICE_CHAOS_SEED={seed} SLUICE_CHAOS_KILLS={kills}"))
}

fn setting<T: FromStr>(name: &str) -> Result<Option<T>>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    match std::env::var(name) {
        Ok(text) => Ok(Some(text.parse().with_context(|| name.to_owned())?)),
        Err(_) => Ok(None),
    }
}

async fn survive(seed: u64, kills: usize) -> Result<()> {
    let mut random = Random::new(seed);
    let mut bench = Bench::start().await?;
    let (producer, mut traffic) = Producer::start(&bench, random.fork());
    for step in schedule::make(kills, &mut random) {
        println!("{step:?}");
        let stepped = bench.survive(&step, &mut traffic).await;
        stepped.with_context(|| format!("{step:?}\n{}", bench.log()))?;
    }
    traffic.end();
    let sent = producer.await??;
    bench.caught_up(&sent).await.with_context(|| bench.log())?;
    let log = bench.log();
    println!("{}", bench.summary(&sent));
    bench.stop_sluice().await?;
    compare::source(&bench, &sent).await?;
    compare::destination(&bench, &sent).await.context(log)
}
