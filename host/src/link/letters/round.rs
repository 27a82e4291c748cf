//! Letters that are replayed together, as the batches of their lanes.

use super::Letter;
use crate::batch::{Gathered, Outgoing, Polled};
use crate::checkpoint::{LaneKey, LetterId};
use crate::config;

use super::Origin;

/// Letters in the order of their topic, cut where the lane changes.
#[derive(Debug)]
pub struct Round {
    most_messages: usize,
    /// The parts.
    pub runs: Vec<Run>,
}

/// Letters of one lane in a row.
#[derive(Debug)]
pub struct Run {
    /// The lane that wrote them.
    pub lane: LaneKey,
    /// The letters.
    pub letters: Vec<LetterId>,
    /// Their messages, as they were at the source.
    pub messages: Gathered,
}

impl Round {
    /// An empty round whose parts have at most so many messages.
    pub const fn new(most_messages: usize) -> Self {
        Self {
            most_messages,
            runs: Vec::new(),
        }
    }

    /// Adds the message of a letter.
    pub fn add(&mut self, link: &config::Link, letter: &Letter<'_>, origin: &Origin<'_>) {
        let goes_on = self
            .runs
            .last()
            .is_some_and(|run| run.letters.len() < self.most_messages && is_of(&run.lane, origin));
        if !goes_on {
            self.runs.push(Run {
                lane: lane(link, origin),
                letters: Vec::new(),
                messages: Gathered::default(),
            });
        }
        let original = Outgoing {
            headers: &origin.headers,
            ..letter.message
        };
        if let Some(run) = self.runs.last_mut() {
            run.letters.push(letter.id());
            // When it was appended is not known any more.
            let timestamp = original.origin_timestamp;
            run.messages.add(origin.offset, timestamp, &original);
        }
    }
}

impl Run {
    /// The lane, its letters, and their messages as a batch of the source partition.
    pub fn into_parts(self) -> (LaneKey, Vec<LetterId>, Polled) {
        (self.lane, self.letters, self.messages.into())
    }
}

fn is_of(lane: &LaneKey, origin: &Origin<'_>) -> bool {
    lane.cluster == origin.cluster
        && lane.stream == origin.stream
        && lane.topic == origin.topic
        && lane.partition == origin.partition
}

/// The lane of the link, as it is now, that wrote a letter.
fn lane(link: &config::Link, origin: &Origin<'_>) -> LaneKey {
    LaneKey {
        link: link.name.clone(),
        cluster: origin.cluster.to_owned(),
        stream: origin.stream.to_owned(),
        topic: origin.topic.to_owned(),
        partition: origin.partition,
        destination: link.destination.cluster.clone(),
    }
}
