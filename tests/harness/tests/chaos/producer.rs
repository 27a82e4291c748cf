//! A task that writes to the source, whatever happens to it, and knows exactly what it holds.

use anyhow::{Context, Result, ensure};
use iggy::prelude::{Identifier, IggyClient, StreamClient};
use sluice_harness::{Access, Message, PATIENCE, read, send};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::bench::{Bench, PARTITIONS, STREAM, TOPICS};
use crate::random::Random;
use crate::schedule::Progress;

/// The producer is at most so many messages ahead of the destination while everything is up.
const LEAD: u64 = 3000;

/// Most messages in a send.
const BATCH: u64 = 60;

/// What the source holds in one partition.
#[derive(Debug)]
pub struct Lane {
    pub topic: &'static str,
    pub partition: u32,
    pub messages: Vec<Message>,
}

/// Writes random batches to random partitions.
pub struct Producer {
    source: Access,
    destination: Access,
    /// Connections, until they break.
    clients: [Option<IggyClient>; 2],
    random: Random,
    lanes: Vec<Lane>,
    counts: watch::Sender<Counts>,
    orders: watch::Receiver<Orders>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    produced: u64,
    delivered: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct Orders {
    end: bool,
    /// Until so many are produced, the destination is not waited for.
    regardless: u64,
}

/// The other end: tells how far things are, and takes orders.
pub struct Traffic {
    counts: watch::Receiver<Counts>,
    orders: watch::Sender<Orders>,
}

impl Traffic {
    /// Waits until things have gone on so far from here.
    pub async fn goes_on(&mut self, so_far: Progress) -> Result<()> {
        let start = *self.counts.borrow();
        self.goes_on_from(start, so_far).await
    }

    async fn goes_on_from(&mut self, start: Counts, so_far: Progress) -> Result<()> {
        let reached = |now: &Counts| match so_far {
            Progress::Produced(count) => now.produced >= start.produced + count,
            Progress::Delivered(count) => now.delivered >= start.delivered + count,
        };
        let reaching = tokio::time::timeout(PATIENCE, self.counts.wait_for(reached)).await;
        let ended = reaching.with_context(|| format!("no {so_far:?} from {start:?} on"))?;
        ended.context("the producer has ended")?;
        Ok(())
    }

    /// Lets so many messages be produced, also while nothing arrives.
    pub async fn goes_on_regardless(&mut self, count: u64) -> Result<()> {
        let start = *self.counts.borrow();
        let end = start.produced + count;
        self.orders.send_modify(|orders| orders.regardless = end);
        self.goes_on_from(start, Progress::Produced(count)).await
    }

    /// Ends the producer.
    pub fn end(&self) {
        self.orders.send_modify(|orders| orders.end = true);
    }
}

impl Producer {
    /// Starts it. The task ends with what the source holds.
    pub fn start(bench: &Bench, random: Random) -> (JoinHandle<Result<Vec<Lane>>>, Traffic) {
        let (counts, counted) = watch::channel(Counts::default());
        let (orders, ordered) = watch::channel(Orders::default());
        let lanes = TOPICS.into_iter().flat_map(|topic| {
            (0..PARTITIONS).map(move |partition| Lane {
                topic,
                partition,
                messages: Vec::new(),
            })
        });
        let producer = Self {
            source: bench.source.access().clone(),
            destination: bench.destination.access().clone(),
            clients: [None, None],
            random,
            lanes: lanes.collect(),
            counts,
            orders: ordered,
        };
        let traffic = Traffic {
            counts: counted,
            orders,
        };
        (tokio::spawn(producer.run()), traffic)
    }

    async fn run(mut self) -> Result<Vec<Lane>> {
        loop {
            let orders = *self.orders.borrow();
            let counts = *self.counts.borrow();
            if orders.end {
                return Ok(self.lanes);
            }
            if counts.produced < orders.regardless.max(counts.delivered + LEAD) {
                self.produce().await?;
            } else if !self.destination.is_up() {
                tokio::select! {
                    ordered = self.orders.changed() => ordered?,
                    up = self.destination.comes_up() => up?,
                }
            }
            self.look().await;
        }
    }

    /// Sends a batch to a partition, and sees to it that it is there once.
    async fn produce(&mut self) -> Result<()> {
        let lane = usize::try_from(self.random.below(self.lanes.len() as u64))?;
        let batch = self.batch(lane);
        let mut rest = &batch[..];
        while !rest.is_empty() {
            let Lane {
                topic, partition, ..
            } = self.lanes[lane];
            let client = match self.clients[0].take() {
                Some(client) => client,
                None => self.source.client().await?,
            };
            if send(&client, STREAM, topic, partition, rest).await.is_ok() {
                self.clients[0] = Some(client);
                self.hold(lane, rest);
                return Ok(());
            }
            // Whether it was executed is not known.
            let found = self.read_back(lane).await?;
            ensure!(
                rest.starts_with(&found),
                "the source holds what was not sent: {found:?}"
            );
            let (there, missing) = rest.split_at(found.len());
            self.hold(lane, there);
            rest = missing;
        }
        Ok(())
    }

    /// What a partition holds behind the messages that it is known to hold.
    async fn read_back(&self, lane: usize) -> Result<Vec<Message>> {
        let Lane {
            topic,
            partition,
            messages,
        } = &self.lanes[lane];
        let end = messages.len() as u64;
        loop {
            // It can be killed again meanwhile.
            let client = self.source.client().await?;
            if let Ok(found) = read(&client, STREAM, topic, *partition, end).await {
                return Ok(found);
            }
        }
    }

    fn hold(&mut self, lane: usize, messages: &[Message]) {
        self.lanes[lane].messages.extend_from_slice(messages);
        self.counts
            .send_modify(|counts| counts.produced += messages.len() as u64);
    }

    fn batch(&mut self, lane: usize) -> Vec<Message> {
        let first = (lane as u128 + 1) * 1_000_000_000 + self.lanes[lane].messages.len() as u128;
        let count = u128::from(1 + self.random.below(BATCH));
        let ids = first..first + count;
        ids.map(|id| self.message(id)).collect()
    }

    fn message(&mut self, id: u128) -> Message {
        let length = usize::try_from(self.random.below(400)).unwrap_or(0);
        let kind = self.random.pick(&["order", "visit"]);
        let payload = format!("payload {id} {}", "x".repeat(length));
        Message::new(id, payload).with(&[("type", kind), ("id", &id.to_string())])
    }

    /// Asks the destination how much it holds; while it is down that stays unknown.
    async fn look(&mut self) {
        let client = match self.clients[1].take() {
            Some(client) => Ok(client),
            None if self.destination.is_up() => self.destination.client().await,
            None => return,
        };
        let Ok(client) = client else { return };
        if let Ok(delivered) = count(&client).await {
            self.clients[1] = Some(client);
            self.counts
                .send_modify(|counts| counts.delivered = delivered);
        }
    }
}

/// How many messages the stream of a cluster holds.
pub async fn count(client: &IggyClient) -> Result<u64> {
    let stream = client.get_stream(&Identifier::named(STREAM)?).await?;
    Ok(stream.map_or(0, |stream| stream.messages_count))
}
