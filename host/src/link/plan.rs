//! From outcomes to parcels: which messages go to which destination partition.

use std::collections::HashMap;

use super::Error;
use super::dead_letter::{Fields, Letter, letter};
use super::topology::Topics;
use crate::batch::{Frame, Outgoing, Polled, fits};
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

impl Tally {
    /// Adds another batch's numbers.
    pub const fn add(&mut self, other: &Self) {
        self.forwarded += other.forwarded;
        self.dropped += other.dropped;
        self.dead_lettered += other.dead_lettered;
        self.failed += other.failed;
    }
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

    /// Turns messages that Iggy cannot carry to their destinations, as a guest left them, into failures.
    pub fn check_sizes(&self, batch: &Polled, outcomes: &mut [Outcome]) {
        for (outcome, frame) in outcomes.iter_mut().zip(batch.frames()) {
            if !matches!(outcome.fate, Fate::Deliver) || self.all_fit(batch, frame, outcome) {
                continue;
            }
            outcome.failed = true;
            if self.on_error == OnError::Forward && outcome.edit.take().is_some() {
                tracing::warn!(
                    offset = frame.offset,
                    "too large after a guest; sent as it was"
                );
                if self.all_fit(batch, frame, outcome) {
                    continue;
                }
            }
            let size = message(batch, frame, outcome).size();
            outcome.fate = Fate::Fail(Box::new(Failure {
                guest: String::new(),
                stage: Stage::Send,
                reason: format!("with {size} bytes it is larger than a request of Iggy can be"),
            }));
        }
    }

    fn all_fit(&self, batch: &Polled, frame: &Frame, outcome: &Outcome) -> bool {
        let message = message(batch, frame, outcome);
        let fits = |to: &Partition| fits(&to.stream, &to.topic, &message);
        match outcome.routes.as_deref() {
            None => fits(&self.default),
            Some(routes) => routes.iter().all(|choice| fits(&self.resolve(choice))),
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
                    culprit: match failure.guest.as_str() {
                        "" => String::new(),
                        guest => format!("guest `{guest}`: "),
                    },
                    reason: failure.reason.clone(),
                };
                (index, Some(error))
            }
        }
    }

    /// Each dead letter, by the message's place in the batch. `replayed` has the offset of the earlier letter for each
    /// message of a replay.
    pub fn letters(
        &self,
        batch: &Polled,
        outcomes: &[Outcome],
        replayed: &[u64],
    ) -> HashMap<usize, Letter> {
        // Under `forward` only those fail that cannot even be forwarded as they were.
        if !matches!(self.on_error, OnError::DeadLetter | OnError::Forward) {
            return HashMap::new();
        }
        outcomes
            .iter()
            .zip(batch.frames())
            .enumerate()
            .filter_map(|(index, (outcome, frame))| match &outcome.fate {
                Fate::Fail(failure) => {
                    let original = as_polled(batch, frame);
                    let fields = Fields {
                        lane: &self.lane,
                        offset: frame.offset,
                        failure,
                        replayed: replayed.get(index).copied(),
                    };
                    Some((index, letter(&self.dead_letters, &fields, &original)))
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
        letters: &'a HashMap<usize, Letter>,
    ) -> (Vec<Parcel<'a>>, Tally) {
        let mut parcels = Parcels::default();
        let mut tally = Tally::default();
        for (index, (outcome, frame)) in outcomes.iter().zip(batch.frames()).enumerate() {
            let message = message(batch, frame, outcome);
            tally.failed += usize::from(outcome.failed);
            match &outcome.fate {
                Fate::Deliver => {
                    match outcome.routes.as_deref() {
                        None => parcels.add(&self.default, message),
                        Some(routes) => self.fan_out(&mut parcels, routes, message),
                    }
                    tally.forwarded += 1;
                }
                Fate::Drop => tally.dropped += 1,
                Fate::Fail(_) => {
                    if let Some(letter) = letters.get(&index) {
                        // As it is at the source, whatever the guests before made of it.
                        let mut message = as_polled(batch, frame);
                        message.headers = &letter.headers;
                        if !letter.with_payload {
                            message.payload = &[];
                        }
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

/// A message as it is at the source.
fn as_polled<'a>(batch: &'a Polled, frame: &Frame) -> Outgoing<'a> {
    Outgoing {
        id: frame.id,
        origin_timestamp: frame.origin_timestamp,
        headers: batch.headers(frame),
        payload: batch.payload(frame),
    }
}

/// A message as the guests left it.
fn message<'a>(batch: &'a Polled, frame: &Frame, outcome: &'a Outcome) -> Outgoing<'a> {
    let mut message = as_polled(batch, frame);
    if let Some(edit) = outcome.edit.as_deref() {
        message.headers = edit.headers.as_deref().unwrap_or(message.headers);
        message.payload = edit.payload.as_deref().unwrap_or(message.payload);
    }
    message
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
