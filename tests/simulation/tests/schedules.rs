//! Thousands of schedules. `SLUICE_SIMULATION_SEED=N` replays one; `SLUICE_SIMULATION_FIRST` and
//! `SLUICE_SIMULATION_COUNT` choose others than usual.

use std::str::FromStr;

use sluice_simulation::{Summary, run};

/// Schedules of a run that is told nothing else.
const COUNT: u64 = 5_000;

fn variable<T: FromStr>(name: &str) -> Option<T>
where
    T::Err: std::fmt::Debug,
{
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

fn checked(seed: u64) -> Summary {
    match std::panic::catch_unwind(|| run(seed)) {
        Ok(Ok(summary)) => summary,
        Ok(Err(reason)) => panic!("SLUICE_SIMULATION_SEED={seed} shows it again: {reason}"),
        // The panic itself is printed already.
        Err(panic) => {
            println!("SLUICE_SIMULATION_SEED={seed} shows it again");
            std::panic::resume_unwind(panic)
        }
    }
}

#[test]
fn every_message_arrives_once_and_in_order_under_every_schedule() {
    if let Some(seed) = variable("SLUICE_SIMULATION_SEED") {
        println!("{:?}", checked(seed));
        return;
    }
    let first: u64 = variable("SLUICE_SIMULATION_FIRST").unwrap_or(0);
    let count: u64 = variable("SLUICE_SIMULATION_COUNT").unwrap_or(COUNT);
    let mut total = Summary::default();
    for seed in first..first + count {
        let summary = checked(seed);
        total.messages += summary.messages;
        total.kills += summary.kills;
        total.retries += summary.retries;
        total.found += summary.found;
    }
    println!("{count} schedules: {total:?}");
    // Schedules that meet nothing would show nothing.
    assert!(total.kills > count, "{total:?}");
    assert!(total.retries > count, "{total:?}");
    assert!(total.found > count, "{total:?}");
}

#[test]
fn the_same_seed_is_the_same_schedule() {
    for seed in 0..50 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}
