//! From outcomes to parcels: which messages go to which destination partition.

use std::collections::HashMap;

use super::Error;
use super::dead_letter;
use super::topology::Topics;
use crate::batch::{Outgoing, Polled};
use crate::checkpoint::LaneKey;
use crate::cluster::Partition;
use crate::config::link::OnError;
use crate::guest::{Failure, Fate, Outcome, RouteChoice, Stage};

/// The messages of one batch for one destination partition, in source order.
#[derive(Debug)]
pub struct Parcel<'a> {
    /// Where they go.
    pub to: Partition,
    /// What goes there.
    pub messages: Vec<Outgoing<'a>>,
}

/// Where the messages of a lane go.
#[derive(Debug)]
pub struct Router {
    /// The lane.
    pub lane: LaneKey,
    /// The destination of messages that no guest routed.
    pub default: Partition,
    /// The destination of dead letters.
    pub dead_letters: Partition,
    /// What becomes of messages that failed.
    pub on_error: OnError,
}

/// How many messages of a batch met which end.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// To be delivered.
    pub forwarded: usize,
    /// Dropped by a guest or by policy.
    pub dropped: usize,
    /// To be dead-lettered.
    pub dead_lettered: usize,
    /// Failed, whatever becomes of them.
    pub failed: usize,
}

impl Router {
    /// Turns routes that lead nowhere into failures of their messages.
    pub fn check_routes(&self, outcomes: &mut [Outcome], topics: &Topics) {
        for outcome in outcomes {
            let Some(routes) = outcome.routes.as_deref() else {
                continue;
            };
            let wrong =
                routes
                    .iter()
                    .map(|choice| self.resolve(choice))
                    .find_map(|to| match topics.known(&to) {
                        Some(count) if to.id < count => None,
                        count => Some((to, count.unwrap_or_default())),
                    });
            if let Some((to, count)) = wrong {
                outcome.routes = None;
                outcome.failed = true;
                if self.on_error != OnError::Forward {
                    outcome.fate = Fate::Fail(Box::new(Failure {
                        guest: String::new(),
                        stage: Stage::Verdict,
                        reason: format!(
                            "a guest routed it to {to}, but that topic has {count} partitions"
                        ),
                    }));
                }
            }
        }
    }

    /// How many of the messages may be processed before the link has to stop, and why it then stops.
    pub fn stop_before(&self, batch: &Polled, outcomes: &[Outcome]) -> (usize, Option<Error>) {
        if self.on_error != OnError::Stop {
            return (outcomes.len(), None);
        }
        let failed = outcomes.iter().zip(batch.frames()).enumerate().find_map(
            |(index, (outcome, frame))| match &outcome.fate {
                Fate::Fail(failure) => Some((index, frame.offset, failure)),
                _ => None,
            },
        );
        match failed {
            None => (outcomes.len(), None),
            Some((index, offset, failure)) => {
                let error = Error::Stopped {
                    partition: format!(
                        "{}:{}/{}/{}",
                        self.lane.cluster, self.lane.stream, self.lane.topic, self.lane.partition
                    ),
                    offset,
                    guest: failure.guest.clone(),
                    reason: failure.reason.clone(),
                };
                (index, Some(error))
            }
        }
    }

    /// The user headers of each dead letter, by the message's place in the batch.
    pub fn letters(&self, batch: &Polled, outcomes: &[Outcome]) -> HashMap<usize, Vec<u8>> {
        if self.on_error != OnError::DeadLetter {
            return HashMap::new();
        }
        outcomes
            .iter()
            .zip(batch.frames())
            .enumerate()
            .filter_map(|(index, (outcome, frame))| match &outcome.fate {
                Fate::Fail(failure) => {
                    let original = batch.headers(frame);
                    let headers = dead_letter::headers(original, &self.lane, frame.offset, failure);
                    Some((index, headers))
                }
                _ => None,
            })
            .collect()
    }

    /// The parcels of a batch, each in source order, and what becomes of its messages. `outcomes` may end before
    /// the batch does.
    pub fn plan<'a>(
        &self,
        batch: &'a Polled,
        outcomes: &'a [Outcome],
        letters: &'a HashMap<usize, Vec<u8>>,
    ) -> (Vec<Parcel<'a>>, Tally) {
        let mut parcels = Parcels::default();
        let mut tally = Tally::default();
        for (index, (outcome, frame)) in outcomes.iter().zip(batch.frames()).enumerate() {
            let mut message = Outgoing {
                id: frame.id,
                origin_timestamp: frame.origin_timestamp,
                headers: batch.headers(frame),
                payload: batch.payload(frame),
            };
            tally.failed += usize::from(outcome.failed);
            match &outcome.fate {
                Fate::Deliver => {
                    if let Some(edit) = &outcome.edit {
                        message.headers = edit.headers.as_deref().unwrap_or(message.headers);
                        message.payload = edit.payload.as_deref().unwrap_or(message.payload);
                    }
                    match outcome.routes.as_deref() {
                        None => parcels.add(&self.default, message),
                        Some(routes) => self.fan_out(&mut parcels, routes, message),
                    }
                    tally.forwarded += 1;
                }
                Fate::Drop => tally.dropped += 1,
                Fate::Fail(_) => {
                    if let Some(headers) = letters.get(&index) {
                        message.headers = headers;
                        parcels.add(&self.dead_letters, message);
                        tally.dead_lettered += 1;
                    } else {
                        tally.dropped += 1;
                    }
                }
            }
        }
        (parcels.list, tally)
    }

    fn fan_out<'a>(
        &self,
        parcels: &mut Parcels<'a>,
        routes: &[RouteChoice],
        message: Outgoing<'a>,
    ) {
        let targets: Vec<_> = routes.iter().map(|choice| self.resolve(choice)).collect();
        for (index, to) in targets.iter().enumerate() {
            // Choices that name different parts may mean the same partition.
            if !targets[..index].contains(to) {
                parcels.add(to, message);
            }
        }
    }

    fn resolve(&self, choice: &RouteChoice) -> Partition {
        let default = &self.default;
        Partition {
            stream: choice
                .stream
                .clone()
                .unwrap_or_else(|| default.stream.clone()),
            topic: choice
                .topic
                .clone()
                .unwrap_or_else(|| default.topic.clone()),
            id: choice.partition.unwrap_or(default.id),
        }
    }
}

/// Parcels in the order in which their destinations first appear.
#[derive(Default)]
struct Parcels<'a> {
    list: Vec<Parcel<'a>>,
    last: usize,
    places: HashMap<Partition, usize>,
}

impl<'a> Parcels<'a> {
    fn add(&mut self, to: &Partition, message: Outgoing<'a>) {
        // Neighbours mostly go to the same place.
        if let Some(parcel) = self.list.get_mut(self.last)
            && parcel.to == *to
        {
            parcel.messages.push(message);
            return;
        }
        self.last = *self.places.entry(to.clone()).or_insert_with(|| {
            self.list.push(Parcel {
                to: to.clone(),
                messages: Vec::new(),
            });
            self.list.len() - 1
        });
        self.list[self.last].messages.push(message);
    }
}
