//! What a seed stands for: messages, decisions, faults and when they strike.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sluice::batch::{Outgoing, Polled, headers};
use sluice::guest::{
    Edit, Failure, Fate, Judge, Judged, Judging, Outcome, Pause, RouteChoice, Stage,
};

/// Origin timestamps of a lane begin at this times its partition, so that they tell the lane.
pub const LANE_SPAN: u64 = 1_000_000_000_000;

/// How long a guest is left alone.
const PAUSE: Duration = Duration::from_millis(50);

/// What happens while messages flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The gateway is killed and started again.
    Kill,
    /// The gateway drains and is started again.
    Drain,
    /// Connections of the source break.
    SourceRestarts,
    /// The source is down for a while.
    SourceDown(Duration),
    /// Connections of the destination break.
    DestinationRestarts,
    /// The destination is down for a while.
    DestinationDown(Duration),
    /// Another writer sends to every destination partition.
    Intruder,
    /// The source forgets what was settled.
    SourceExpires,
}

/// A message at the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub id: u128,
    pub origin_timestamp: u64,
    pub payload: Vec<u8>,
}

impl Message {
    /// As it is sent.
    pub fn outgoing(&self) -> Outgoing<'_> {
        Outgoing {
            id: self.id,
            origin_timestamp: self.origin_timestamp,
            headers: &[],
            payload: &self.payload,
        }
    }
}

/// A schedule.
#[derive(Debug)]
pub struct Scenario {
    /// The messages of each lane, in bursts, each after a pause.
    pub lanes: Vec<Vec<(Duration, Vec<Message>)>>,
    /// What strikes, after a pause each.
    pub events: Vec<(Duration, Event)>,
    /// Of a hundred requests, how many meet a fault.
    pub fault_rate: u8,
    /// Most messages in a poll and in a send.
    pub batch_messages: u32,
    /// Most bytes in a send.
    pub batch_bytes: u64,
    /// Longest time between two writes of the checkpoints.
    pub checkpoint_interval: Duration,
    /// Whether checkpoints are consumer offsets at the clusters.
    pub server_store: bool,
    /// Whether guests decide, or every message is forwarded.
    pub guests: bool,
}

impl Scenario {
    /// The schedule of a seed.
    pub fn draw(rng: &mut fastrand::Rng) -> Self {
        let lanes = rng.u64(1..=3);
        let server_store = rng.bool();
        // A kill between the offsets of one checkpoint at the clusters leaves older marks, and behind these a message
        // that repeats another's id and time cannot be told from it.
        let repeats = !server_store && rng.u8(0..3) == 0;
        let spread = rng.u8(0..4) == 0;
        Self {
            lanes: (0..lanes)
                .map(|lane| bursts(rng, lane, repeats, spread))
                .collect(),
            events: (0..rng.usize(0..12)).map(|_| event(rng)).collect(),
            fault_rate: [0, 2, 5, 15, 30][rng.usize(..5)],
            batch_messages: rng.u32(1..40),
            batch_bytes: rng.u64(300..4000),
            checkpoint_interval: Duration::from_millis([1, 50, 500, 20_000][rng.usize(..4)]),
            server_store,
            guests: rng.u8(0..4) != 0,
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages = self.lanes.iter().map(|bursts| {
            let bursts = bursts.iter().map(|(_, burst)| burst.len());
            bursts.sum::<usize>()
        });
        write!(
            formatter,
            "lanes of {:?} messages, {:?}, {} of 100 requests fail, batches of {} messages or {} bytes, checkpoints \
             every {:?} {}, guests: {}",
            messages.collect::<Vec<_>>(),
            self.events,
            self.fault_rate,
            self.batch_messages,
            self.batch_bytes,
            self.checkpoint_interval,
            if self.server_store {
                "at the clusters"
            } else {
                "in a local store"
            },
            self.guests
        )
    }
}

fn bursts(
    rng: &mut fastrand::Rng,
    lane: u64,
    repeats: bool,
    spread: bool,
) -> Vec<(Duration, Vec<Message>)> {
    let mut number = 0;
    let mut last: Option<Message> = None;
    let count = rng.usize(1..12);
    (0..count)
        .map(|_| {
            let messages: Vec<_> = (0..rng.usize(1..25))
                .map(|_| {
                    number += 1;
                    let message = message(rng, lane, number, spread);
                    let message = match &last {
                        // Another message under the same name.
                        Some(last) if repeats && rng.u8(0..5) == 0 => Message {
                            id: last.id,
                            origin_timestamp: last.origin_timestamp,
                            ..message
                        },
                        _ => message,
                    };
                    last = Some(message.clone());
                    message
                })
                .collect();
            (Duration::from_millis(rng.u64(0..400)), messages)
        })
        .collect()
}

fn message(rng: &mut fastrand::Rng, lane: u64, number: u64, spread: bool) -> Message {
    // Iggy carries 71 minutes in a batch.
    let jitter = if spread {
        rng.u64(0..18_000_000_000)
    } else {
        0
    };
    let mut payload = format!("{lane}/{number}/").into_bytes();
    payload.resize(payload.len() + rng.usize(0..120), b'.');
    Message {
        id: if rng.u8(0..10) == 0 { 0 } else { rng.u128(..) },
        origin_timestamp: lane * LANE_SPAN + number + jitter,
        payload,
    }
}

fn event(rng: &mut fastrand::Rng) -> (Duration, Event) {
    let outage = Duration::from_millis(rng.u64(10..5_000));
    let event = match rng.u8(0..12) {
        0..=4 => Event::Kill,
        5 => Event::Drain,
        6 => Event::SourceRestarts,
        7 => Event::SourceDown(outage),
        8 => Event::DestinationRestarts,
        9 => Event::DestinationDown(outage),
        10 => Event::Intruder,
        _ => Event::SourceExpires,
    };
    (Duration::from_millis(rng.u64(0..600)), event)
}

/// What is decided over a message, by its id alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Forward,
    Drop,
    /// To one topic of the guest's own, which lanes share.
    Divert,
    /// To both.
    FanOut,
    Edit,
    Reject,
    /// By the second guest, after the first one edited it.
    EditThenReject,
}

impl Decision {
    /// Over the message with this id.
    pub fn over(id: u128) -> Self {
        match id % 11 {
            0 => Self::Drop,
            1 => Self::Divert,
            2 => Self::FanOut,
            3 => Self::Edit,
            4 => Self::Reject,
            5 => Self::EditThenReject,
            _ => Self::Forward,
        }
    }
}

/// The payload after an edit.
pub fn edited(payload: &[u8]) -> Vec<u8> {
    [b"edited ", payload].concat()
}

/// Carries the decisions out, in parts, with a pause between some of them.
#[derive(Debug)]
pub struct Guests {
    /// Whether it decides anything.
    pub decides: bool,
    /// The offset that the last part ended before.
    pub paused_before: Option<u64>,
}

impl Judge for Guests {
    fn judge(mut self: Box<Self>, batch: Arc<Polled>) -> Judging {
        let frames = batch.frames();
        let paused_before = self.paused_before;
        let paused = frames.iter().position(|frame| {
            self.decides && frame.id % 7 == 0 && paused_before != Some(frame.offset)
        });
        self.paused_before = paused.map(|place| frames[place].offset);
        // Half of the parts end without a pause, as where guests take long.
        let waits = paused.filter(|&place| place == 0 || frames[place].id % 2 == 1);
        let pause = waits.map(|_| Pause {
            guest: "guest".to_owned(),
            reason: "it traps".to_owned(),
            time: PAUSE,
            over: Box::pin(tokio::time::sleep(PAUSE)),
        });
        let outcomes = frames[..paused.unwrap_or(frames.len())]
            .iter()
            .map(|frame| {
                if self.decides {
                    outcome(Decision::over(frame.id), batch.payload(frame))
                } else {
                    Outcome::default()
                }
            })
            .collect();
        let judged = Judged { outcomes, pause };
        Box::pin(std::future::ready((self as Box<dyn Judge>, judged)))
    }
}

fn outcome(decision: Decision, payload: &[u8]) -> Outcome {
    let shared = RouteChoice {
        stream: None,
        topic: Some("shared".into()),
        partition: Some(0),
    };
    let usual = RouteChoice {
        stream: None,
        topic: None,
        partition: None,
    };
    let edit = || {
        let header = (headers::Field::text("k"), headers::Field::text("v"));
        Some(Box::new(Edit {
            payload: Some(Bytes::from(edited(payload))),
            headers: Some(headers::encode(&[header])),
        }))
    };
    let failure = || {
        Fate::Fail(Box::new(Failure {
            guest: "judge".to_owned(),
            stage: Stage::Reject,
            reason: "by its id".to_owned(),
        }))
    };
    let mut outcome = Outcome::default();
    match decision {
        Decision::Forward => {}
        Decision::Drop => outcome.fate = Fate::Drop,
        Decision::Divert => outcome.routes = Some([shared].into()),
        Decision::FanOut => outcome.routes = Some([usual, shared].into()),
        Decision::Edit => outcome.edit = edit(),
        Decision::Reject => outcome.fate = failure(),
        Decision::EditThenReject => {
            outcome.edit = edit();
            outcome.fate = failure();
        }
    }
    outcome.failed = matches!(outcome.fate, Fate::Fail(_));
    outcome
}
