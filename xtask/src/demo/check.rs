//! Holds what arrived against what must have.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use iggy::prelude::IggyClient;

use super::cluster::read;
use super::traffic::{DESTINATIONS, PARTITIONS, PER_PARTITION, Sample, expected, sample};

/// What was found at the destination.
#[derive(Debug, Default)]
pub struct Findings {
    /// Messages and payload bytes by topic.
    pub arrived: BTreeMap<&'static str, (u64, u64)>,
    /// Messages that had to be dropped, and are nowhere.
    pub dropped: u64,
    /// A message before and after, with its topic.
    pub example: Option<(Sample, &'static str, Sample)>,
}

/// Compares every message of every destination partition: count, order, id, time, headers and payload.
///
/// # Errors
/// At the first message that is missing, repeated, out of place or different.
pub async fn check(client: &IggyClient, progress: impl Fn(u64)) -> Result<Findings> {
    let mut findings = Findings::default();
    for partition in 0..PARTITIONS {
        let mut arrived = BTreeMap::new();
        for topic in DESTINATIONS {
            let samples = read(client, topic, partition).await?;
            arrived.insert(topic, samples.into_iter());
        }
        for index in 0..PER_PARTITION {
            let before = sample(partition, index)?;
            let Some((topic, after)) = expected(&before)? else {
                findings.dropped += 1;
                continue;
            };
            let place = || format!("message {index} of partition {partition}, due in {topic}");
            let found = arrived
                .get_mut(topic)
                .and_then(Iterator::next)
                .with_context(|| format!("{} is missing", place()))?;
            ensure!(
                found == after,
                "{} differs:\nexpected {after:?}\nfound    {found:?}",
                place()
            );
            let totals = findings.arrived.entry(topic).or_default();
            totals.0 += 1;
            totals.1 += found.payload.len() as u64;
            if topic == "orders" && findings.example.is_none() {
                findings.example = Some((before, topic, found));
            }
        }
        for (topic, mut rest) in arrived {
            ensure!(
                rest.next().is_none(),
                "partition {partition} of {topic} holds more messages than were due"
            );
        }
        progress(PER_PARTITION);
    }
    Ok(findings)
}

/// How many messages must arrive in all.
///
/// # Errors
/// When the traffic cannot be made.
pub fn due() -> Result<u64> {
    let mut due = 0;
    for partition in 0..PARTITIONS {
        for index in 0..PER_PARTITION {
            due += u64::from(expected(&sample(partition, index)?)?.is_some());
        }
    }
    Ok(due)
}
