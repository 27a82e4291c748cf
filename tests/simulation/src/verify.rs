//! What each destination partition must hold at the end.

use std::collections::BTreeMap;

use sluice::cluster::Partition;

use crate::cluster::Cluster;
use crate::scenario::{Decision, LANE_SPAN, Message, Scenario, edited};

/// Messages of other writers have times from here on.
pub const INTRUDERS: u64 = 100 * LANE_SPAN;

/// Stream and topic at both clusters.
pub const STREAM: &str = "stream";
/// See [`STREAM`].
pub const TOPIC: &str = "topic";

/// A partition of the simulated clusters.
pub fn partition(stream: &str, topic: &str, id: u32) -> Partition {
    Partition {
        stream: stream.into(),
        topic: topic.into(),
        id,
    }
}

/// The destination of dead letters.
pub fn dead_letters() -> Partition {
    partition("sluice", "dead-letters", 0)
}

/// Compares the destination with what the scenario asks for: order, content and count, for each lane.
///
/// # Errors
/// The first difference.
pub fn verify(scenario: &Scenario, destination: &Cluster) -> Result<(), String> {
    let mut expected = expected(scenario);
    for at in destination.partitions() {
        let mut found: BTreeMap<u64, Vec<Message>> = BTreeMap::new();
        let contents = destination.contents(&at).ok_or("it is there")?;
        for frame in contents.frames() {
            let message = Message {
                id: frame.id,
                origin_timestamp: frame.origin_timestamp,
                payload: contents.payload(frame).to_vec(),
            };
            if message.origin_timestamp < INTRUDERS {
                let lane = message.origin_timestamp / LANE_SPAN;
                found.entry(lane).or_default().push(message);
            }
        }
        for (lane, found) in found {
            let due = expected.remove(&(at.clone(), lane)).unwrap_or_default();
            compare(&at, lane, &found, &due)?;
        }
    }
    match expected.into_iter().next() {
        None => Ok(()),
        Some(((at, lane), due)) => Err(format!(
            "{at}: nothing of lane {lane}, but {} messages were due",
            due.len()
        )),
    }
}

fn compare(at: &Partition, lane: u64, found: &[Message], due: &[Message]) -> Result<(), String> {
    if found == due {
        return Ok(());
    }
    let place = found.iter().zip(due).take_while(|(l, r)| l == r).count();
    let text = |messages: &[Message]| {
        messages.get(place).map_or("nothing".to_owned(), |message| {
            String::from_utf8_lossy(&message.payload).into_owned()
        })
    };
    Err(format!(
        "{at}: of lane {lane} there are {} messages, {} were due; at {place} there is {}, {} was due",
        found.len(),
        due.len(),
        text(found),
        text(due)
    ))
}

fn expected(scenario: &Scenario) -> BTreeMap<(Partition, u64), Vec<Message>> {
    let mut expected: BTreeMap<_, Vec<Message>> = BTreeMap::new();
    for (id, bursts) in (0..).zip(&scenario.lanes) {
        let usual = partition(STREAM, TOPIC, id);
        let shared = partition(STREAM, "shared", 0);
        for message in bursts.iter().flat_map(|(_, burst)| burst) {
            let decision = if scenario.guests {
                Decision::over(message.id)
            } else {
                Decision::Forward
            };
            let mut to = |at: &Partition, message: Message| {
                let key = (at.clone(), u64::from(id));
                expected.entry(key).or_default().push(message);
            };
            match decision {
                Decision::Forward => to(&usual, message.clone()),
                Decision::Drop => {}
                Decision::Divert => to(&shared, message.clone()),
                Decision::FanOut => {
                    to(&usual, message.clone());
                    to(&shared, message.clone());
                }
                Decision::Edit => to(
                    &usual,
                    Message {
                        payload: edited(&message.payload),
                        ..message.clone()
                    },
                ),
                Decision::Reject | Decision::EditThenReject => {
                    to(&dead_letters(), message.clone());
                }
            }
        }
    }
    expected
}
