//! The lane: the ordered work of one source partition. Poll, ask the guests, route, send, settle.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Error;
use super::deliver::Deliverer;
use super::plan::Router;
use super::poll::{PollSize, Poller, source_continues};
use super::report::{Counts, LaneReport};
use super::retry::{Retrier, repeat};
use super::topology::{Topics, Wanted};
use crate::batch::{FRAME_LIMIT, Polled};
use crate::blocking;
use crate::checkpoint::{Checkpoint, LaneKey, LastSettled, Writer};
use crate::cluster::{Connection, Partition, PollFrom, TopicInfo};
use crate::config;
use crate::config::link::Start;
use crate::guest::{Chain, Component, Outcome, Source};

/// What a lane is made of.
#[derive(Debug)]
pub struct Parts {
    /// Names the lane in the checkpoint store.
    pub key: LaneKey,
    /// The source partition.
    pub source: Partition,
    /// The destination of messages that no guest routes.
    pub default: Partition,
    /// The destination of dead letters.
    pub dead_letters: Partition,
    /// The source topic, after which missing destination topics are created.
    pub topic: Arc<TopicInfo>,
    /// The link's configuration.
    pub link: Arc<config::Link>,
    /// The link's guests.
    pub components: Arc<[Arc<Component>]>,
    /// For polling alone.
    pub source_connection: Connection,
    /// For sending alone.
    pub destination_connection: Connection,
    /// Where checkpoints are kept.
    pub checkpoints: Arc<Writer>,
}

/// The ordered work of one source partition.
struct Lane {
    parts: LaneState,
    router: Router,
    topics: Topics,
    deliverer: Deliverer,
    counts: Arc<Counts>,
    checkpoint: Checkpoint,
    /// Absent while a batch is with the guests.
    chain: Option<Chain>,
}

/// What a lane keeps of its parts.
struct LaneState {
    key: LaneKey,
    topic: Arc<TopicInfo>,
    checkpoints: Arc<Writer>,
}

/// Runs a lane until `stop` or an error. The report tells what it did in either case.
pub async fn run(parts: Parts, stop: CancellationToken) -> (LaneReport, Result<(), Error>) {
    let counts = Arc::new(Counts::default());
    let source = parts.source.to_string();
    let mut next_offset = 0;
    let outcome = match start(parts, &counts, &stop).await {
        Ok((mut lane, poller)) => {
            let outcome = lane.copy(poller, stop).await;
            next_offset = lane.checkpoint.next_offset;
            outcome
        }
        Err(error) => Err(error),
    };
    let outcome = match outcome {
        Err(Error::Interrupted) => Ok(()),
        outcome => outcome,
    };
    (LaneReport::new(source, &counts, next_offset), outcome)
}

async fn start(
    mut parts: Parts,
    counts: &Arc<Counts>,
    stop: &CancellationToken,
) -> Result<(Lane, Poller), Error> {
    let link = Arc::clone(&parts.link);
    let retrier = Retrier::new(link.retry.clone(), stop.clone());
    let checkpoint = if let Some(checkpoint) = parts.checkpoints.load(&parts.key)? {
        if let Some(last) = &checkpoint.last {
            let connection = &mut parts.source_connection;
            source_continues(connection, &retrier, &parts.source, last).await?;
        }
        checkpoint
    } else {
        let checkpoint = first_checkpoint(&mut parts, &retrier, link.start).await?;
        // Without this a lane that stops before its first message would choose anew, and skip what came meanwhile.
        parts.checkpoints.record(&parts.key, checkpoint.clone());
        parts.checkpoints.flush().await?;
        checkpoint
    };
    tracing::info!(lane = %parts.key, next_offset = checkpoint.next_offset, "lane starts");
    let source = Source {
        cluster: parts.key.cluster.clone(),
        partition: parts.source.clone(),
    };
    let (components, on_error) = (Arc::clone(&parts.components), link.on_error);
    let chain = blocking(move || Chain::start(&components, source, on_error)).await?;
    let bytes = usize::try_from(link.batch.bytes.as_u64()).unwrap_or(FRAME_LIMIT);
    let poller = Poller {
        connection: parts.source_connection,
        partition: parts.source,
        next_offset: checkpoint.next_offset,
        last: checkpoint.last,
        read_fault: false,
        size: PollSize::new(link.batch.messages, bytes),
        linger: link.batch.linger,
        retrier: retrier.clone(),
        counts: Arc::clone(counts),
    };
    let lane = Lane {
        router: Router {
            lane: parts.key.clone(),
            default: parts.default,
            dead_letters: parts.dead_letters,
            on_error,
        },
        topics: Topics::new(retrier.clone(), link.create),
        deliverer: Deliverer::new(
            parts.destination_connection,
            retrier,
            (link.batch.messages as usize, bytes),
            Arc::clone(counts),
            &checkpoint.destinations,
        ),
        parts: LaneState {
            key: parts.key,
            topic: parts.topic,
            checkpoints: parts.checkpoints,
        },
        counts: Arc::clone(counts),
        checkpoint,
        chain: Some(chain),
    };
    Ok((lane, poller))
}

impl Lane {
    async fn copy(&mut self, poller: Poller, stop: CancellationToken) -> Result<(), Error> {
        let mut batches = poller.start(stop);
        while let Some(batch) = batches.recv().await {
            self.process(Arc::new(batch?)).await?;
        }
        Ok(())
    }

    /// Takes one batch from the source to a settled checkpoint.
    async fn process(&mut self, batch: Arc<Polled>) -> Result<(), Error> {
        let mut outcomes = self.ask_guests(&batch).await?;
        let default = &self.router.default;
        let (connection, like) = (&mut self.deliverer.connection, &self.parts.topic);
        self.topics
            .learn_chosen(connection, &outcomes, default, like)
            .await?;
        self.router.check_routes(&mut outcomes, &self.topics);
        let (count, stopping) = self.router.stop_before(&batch, &outcomes);
        outcomes.truncate(count);

        let letters = self.router.letters(&batch, &outcomes);
        if !letters.is_empty() {
            let to = &self.router.dead_letters;
            let wanted = Wanted {
                stream: &to.stream,
                topic: &to.topic,
                partitions: 1,
                like: None,
            };
            self.topics.partitions(connection, wanted).await?;
        }
        let (parcels, tally) = self.router.plan(&batch, &outcomes, &letters);
        if self.deliverer.open(&parcels).await? {
            self.record();
            self.parts.checkpoints.flush().await?;
        }
        for parcel in &parcels {
            self.deliverer.deliver(parcel).await?;
        }

        if let Some(last) = batch.frames()[..count].last() {
            self.checkpoint.next_offset = last.offset + 1;
            self.checkpoint.last = Some(LastSettled::from(last));
            self.record();
        }
        Counts::add(&self.counts.forwarded, tally.forwarded);
        Counts::add(&self.counts.dropped, tally.dropped);
        Counts::add(&self.counts.dead_lettered, tally.dead_lettered);
        Counts::add(&self.counts.failed, tally.failed);
        stopping.map_or(Ok(()), Err)
    }

    async fn ask_guests(&mut self, batch: &Arc<Polled>) -> Result<Vec<Outcome>, Error> {
        let mut chain = self.chain.take().expect("put back after every batch");
        if chain.is_empty() {
            self.chain = Some(chain);
            return Ok(vec![Outcome::default(); batch.frames().len()]);
        }
        let batch = Arc::clone(batch);
        let (chain, outcomes) = blocking(move || {
            let outcomes = chain.apply(&batch);
            (chain, outcomes)
        })
        .await;
        self.chain = Some(chain);
        Ok(outcomes?)
    }

    fn record(&mut self) {
        self.checkpoint.destinations = self.deliverer.marks();
        self.parts
            .checkpoints
            .record(&self.parts.key, self.checkpoint.clone());
    }
}

/// Where a lane without a checkpoint begins.
async fn first_checkpoint(
    parts: &mut Parts,
    retrier: &Retrier,
    start: Start,
) -> Result<Checkpoint, Error> {
    let (connection, source) = (&mut parts.source_connection, &parts.source);
    let mut checkpoint = Checkpoint::default();
    match start {
        Start::Offset(offset) => checkpoint.next_offset = offset,
        Start::Earliest => {
            // A poll below the oldest message starts there, so that a lane that begins late has no gap.
            let from = PollFrom::Offset(0);
            let polled = repeat!(retrier, connection.poll(source, from, 1).await)?;
            checkpoint.next_offset = polled.frames().first().map_or(0, |first| first.offset);
        }
        Start::Latest => {
            let polled = repeat!(retrier, connection.poll(source, PollFrom::Last, 1).await)?;
            checkpoint.last = polled.frames().last().map(LastSettled::from);
            checkpoint.next_offset = match checkpoint.last {
                Some(last) => last.offset + 1,
                // Nothing there: never a message, or all of them expired.
                None if polled.current_offset == 0 => 0,
                None => polled.current_offset + 1,
            };
        }
    }
    Ok(checkpoint)
}
