//! What was sent against what is there.

use std::collections::HashMap;

use anyhow::{Result, ensure};
use sluice_harness::{BrokerProcess, Message, header, read};

use crate::bench::{Bench, ORDERS, ROUTED, STREAM};
use crate::producer::Lane;

/// The source holds exactly what the producer knows.
pub async fn source(bench: &Bench, sent: &[Lane]) -> Result<()> {
    for lane in sent {
        let expected = lane.messages.iter().collect();
        compare(&bench.source, lane.topic, lane.partition, expected).await?;
    }
    Ok(())
}

/// The destination holds exactly what was sent, in its order.
pub async fn destination(bench: &Bench, sent: &[Lane]) -> Result<()> {
    for Lane {
        topic,
        partition,
        messages,
    } in sent
    {
        let is_order = |message: &Message| header(message, "type").as_deref() == Some("order");
        let (orders, others) = messages
            .iter()
            .partition(|message| *topic == ROUTED && is_order(message));
        compare(&bench.destination, topic, *partition, others).await?;
        if *topic == ROUTED {
            compare(&bench.destination, ORDERS, *partition, orders).await?;
        }
    }
    Ok(())
}

async fn compare(
    broker: &BrokerProcess,
    topic: &str,
    partition: u32,
    expected: Vec<&Message>,
) -> Result<()> {
    let client = broker.access().client().await?;
    let found = read(&client, STREAM, topic, partition, 0).await?;
    ensure!(
        found.iter().eq(expected.iter().copied()),
        "{topic}/{partition} at {}: {}",
        broker.access().address(),
        difference(&found, &expected)
    );
    Ok(())
}

/// In which way they differ.
fn difference(found: &[Message], expected: &[&Message]) -> String {
    let mut places: HashMap<u128, Vec<usize>> = HashMap::new();
    for (place, message) in found.iter().enumerate() {
        places.entry(message.id).or_default().push(place);
    }
    let lost: Vec<_> = expected
        .iter()
        .map(|message| message.id)
        .filter(|id| !places.contains_key(id))
        .collect();
    let mut repeated: Vec<_> = places.iter().filter(|(_, at)| at.len() > 1).collect();
    repeated.sort();
    let same = found
        .iter()
        .zip(expected)
        .take_while(|(found, expected)| found == *expected)
        .count();
    format!(
        "{} messages instead of {}; lost: {lost:?}; repeated, and where: {repeated:?}; the first that differs, at {same}: \
         {:?} instead of {:?}",
        found.len(),
        expected.len(),
        found.get(same),
        expected.get(same)
    )
}
