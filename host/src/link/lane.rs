//! The lane: the ordered work of one source partition. Poll, ask the guests, route, send, settle.

use std::pin::Pin;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Error;
use super::continuity::{Place, first_place};
use super::deliver::{Deliverer, Limits};
use super::ledger::Ledger;
use super::plan::Router;
use super::poll::{Event, Poller};
use super::report::{Alert, Counts, State, Status};
use super::retry::Retrier;
use super::size::PollSize;
use super::topology::{Topics, Wanted};
use crate::batch::{FRAME_LIMIT, Polled};
use crate::checkpoint::{Checkpoint, LaneKey, LastSettled, Writer};
use crate::cluster::{Client, Partition, TopicInfo};
use crate::config;
use crate::guest::{ChainError, Judge, Judged, Outcome, Pause};

/// What a lane is made of.
pub struct Parts<C> {
    /// Names the lane in the checkpoint store; its source is what the lane reads.
    pub key: LaneKey,
    /// The destination of messages that no guest routes.
    pub default: Partition,
    /// The destination of dead letters.
    pub dead_letters: Partition,
    /// The source topic, after which missing destination topics are created.
    pub topic: Arc<TopicInfo>,
    /// The link's configuration.
    pub link: Arc<config::Link>,
    /// The link's guests, started for the source partition.
    pub guests: StartGuests,
    /// For polling alone.
    pub source: C,
    /// For sending alone.
    pub destination: C,
    /// Where checkpoints are kept.
    pub checkpoints: Arc<Writer>,
    /// Where the lane tells what it does.
    pub status: Arc<Status>,
}

/// Guests that are being started.
pub type StartGuests = Pin<Box<dyn Future<Output = Result<Box<dyn Judge>, ChainError>> + Send>>;

/// The ordered work of one source partition.
struct Lane<C> {
    ledger: Ledger,
    like: Arc<TopicInfo>,
    router: Router,
    topics: Topics,
    deliverer: Deliverer<C>,
    status: Arc<Status>,
    checkpoint: Checkpoint,
    /// Absent while a batch is with the guests.
    guests: Option<Box<dyn Judge>>,
}

/// Runs a lane until `stop` or an error.
///
/// # Errors
/// [`Error`] when it cannot go on. What it settled before is in its checkpoint.
pub async fn run<C: Client>(parts: Parts<C>, stop: CancellationToken) -> Result<(), Error> {
    let status = Arc::clone(&parts.status);
    let outcome = match start(parts, &stop).await {
        Ok((mut lane, poller)) => lane.copy(poller, stop).await,
        Err(error) => Err(error),
    };
    let outcome = match outcome {
        Err(Error::Interrupted) => Ok(()),
        outcome => outcome,
    };
    status.enter(match &outcome {
        Ok(()) => State::Stopped,
        Err(error) => State::Failed {
            error: error.to_string(),
        },
    });
    outcome
}

async fn start<C: Client>(
    mut parts: Parts<C>,
    stop: &CancellationToken,
) -> Result<(Lane<C>, Poller<C>), Error> {
    let (link, status) = (Arc::clone(&parts.link), Arc::clone(&parts.status));
    let retrier = Retrier::new(link.retry.clone(), Arc::clone(&status), stop.clone());
    let source = parts.key.source();
    let ledger = Ledger {
        key: parts.key.clone(),
        writer: parts.checkpoints,
        retrier: retrier.clone(),
    };
    let checkpoint = if let Some(checkpoint) = ledger.load(&parts.default).await? {
        checkpoint
    } else {
        let place = first_place(&mut parts.source, &retrier, &source, link.start).await?;
        let checkpoint = Checkpoint {
            next_offset: place.next_offset,
            last: place.last,
            destinations: Vec::new(),
        };
        // Without this a lane that stops before its first message would choose anew, and skip what came meanwhile.
        ledger.record(checkpoint.clone());
        ledger.flush().await?;
        checkpoint
    };
    tracing::info!(lane = %ledger.key, next_offset = checkpoint.next_offset, "lane starts");
    status.settled(checkpoint.next_offset);
    let guests = parts.guests.await?;
    let bytes = usize::try_from(link.batch.bytes.as_u64()).unwrap_or(FRAME_LIMIT);
    let poller = Poller {
        client: parts.source,
        partition: source,
        place: Place {
            next_offset: checkpoint.next_offset,
            last: checkpoint.last,
        },
        size: PollSize::new(link.batch.messages, bytes),
        linger: link.batch.linger,
        on_reset: link.on_source_reset,
        on_gap: link.on_gap,
        retrier: retrier.clone(),
        status: Arc::clone(&status),
    };
    let limits = Limits {
        messages: link.batch.messages as usize,
        bytes,
    };
    let marks = &checkpoint.destinations;
    let lane = Lane {
        router: Router {
            lane: parts.key,
            default: parts.default,
            dead_letters: parts.dead_letters,
            on_error: link.on_error,
        },
        topics: Topics::new(retrier.clone(), link.create),
        deliverer: Deliverer::new(
            parts.destination,
            retrier,
            limits,
            Arc::clone(&status),
            marks,
        ),
        ledger,
        like: parts.topic,
        status,
        checkpoint,
        guests: Some(guests),
    };
    Ok((lane, poller))
}

impl<C: Client> Lane<C> {
    async fn copy(&mut self, poller: Poller<C>, stop: CancellationToken) -> Result<(), Error> {
        let mut events = poller.start(stop);
        self.status.enter(State::Running);
        while let Some(event) = events.recv().await {
            match event? {
                Event::Batch(batch) => self.work_off(batch).await?,
                Event::Moved(place) => {
                    self.settle(place.next_offset, place.last);
                    self.ledger.flush().await?;
                }
            }
        }
        Ok(())
    }

    /// Takes a batch from the source to a settled checkpoint: in parts where guests take long or make much of it, and where one
    /// has to be left alone in between.
    async fn work_off(&mut self, batch: Polled) -> Result<(), Error> {
        let mut batch = Arc::new(batch);
        loop {
            let judged = self.ask_guests(&batch).await;
            let (part, rest) = batch.split_at(judged.outcomes.len());
            self.process(part, judged.outcomes).await?;
            batch = Arc::new(rest);
            match judged.pause {
                Some(pause) => self.wait(pause).await?,
                None if batch.is_empty() => return Ok(()),
                None => {
                    let now = std::future::ready(());
                    self.ledger.retrier.unless_stopped(now).await?;
                }
            }
        }
    }

    async fn wait(&mut self, pause: Pause) -> Result<(), Error> {
        let Pause { guest, reason, .. } = pause;
        // Who reads the log finds the status to be so.
        self.status.guest_paused(Some(Alert::GuestPaused {
            guest: guest.clone(),
            error: reason.clone(),
        }));
        tracing::error!(
            lane = %self.ledger.key,
            guest,
            pause = %humantime::format_duration(pause.time),
            "the guest fails on message after message, the lane waits before it asks it again: {reason}"
        );
        let waited = self.ledger.retrier.unless_stopped(pause.over).await;
        self.status.guest_paused(None);
        waited
    }

    /// Takes a batch to a settled checkpoint, as the guests decided over it.
    async fn process(&mut self, batch: Polled, mut outcomes: Vec<Outcome>) -> Result<(), Error> {
        let default = &self.router.default;
        self.topics
            .learn_chosen(&mut self.deliverer.client, &outcomes, default, &self.like)
            .await?;
        self.router.check_routes(&mut outcomes, &self.topics);
        self.router.check_sizes(&batch, &mut outcomes);
        let (count, stopping) = self.router.stop_before(&batch, &outcomes);
        outcomes.truncate(count);

        let letters = self.router.letters(&batch, &outcomes, &[]);
        if !letters.is_empty() {
            let to = &self.router.dead_letters;
            let wanted = Wanted {
                stream: &to.stream,
                topic: &to.topic,
                partitions: 1,
                like: None,
            };
            let client = &mut self.deliverer.client;
            self.topics.partitions(client, wanted).await?;
        }
        let (parcels, tally) = self.router.plan(&batch, &outcomes, &letters);
        if self.deliverer.open(&parcels, Some(&self.ledger)).await? {
            self.record();
            self.ledger.flush().await?;
        }
        for parcel in &parcels {
            self.deliverer.deliver(parcel).await?;
        }

        if let Some(last) = batch.frames()[..count].last() {
            self.settle(last.offset + 1, Some(LastSettled::from(last)));
        }
        let counts = &self.status.counts;
        Counts::add(&counts.forwarded, tally.forwarded);
        Counts::add(&counts.dropped, tally.dropped);
        Counts::add(&counts.dead_lettered, tally.dead_lettered);
        Counts::add(&counts.failed, tally.failed);
        stopping.map_or(Ok(()), Err)
    }

    async fn ask_guests(&mut self, batch: &Arc<Polled>) -> Judged {
        let guests = self.guests.take().expect("put back after every batch");
        let (guests, judged) = guests.judge(Arc::clone(batch)).await;
        self.guests = Some(guests);
        judged
    }

    /// Everything below `next_offset` is settled.
    fn settle(&mut self, next_offset: u64, last: Option<LastSettled>) {
        self.checkpoint.next_offset = next_offset;
        self.checkpoint.last = last;
        self.deliverer.settled(next_offset);
        self.record();
        self.status.settled(next_offset);
    }

    fn record(&mut self) {
        self.checkpoint.destinations = self.deliverer.marks();
        self.ledger.record(self.checkpoint.clone());
    }
}
