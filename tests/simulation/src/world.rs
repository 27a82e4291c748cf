//! Runs a schedule.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sluice::batch::Outgoing;
use sluice::checkpoint::{LaneKey, ServerStore, Store, Writer, consumer_name};
use sluice::cluster::{PartitionInfo, TopicInfo};
use sluice::config::Link;
use sluice::guest::Judge;
use sluice::link::{LaneReport, Status, lane};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::cluster::{Cluster, SimulatedClient};
use crate::scenario::{Event, Guests, Scenario};
use crate::store::MemoryStore;
use crate::verify::{INTRUDERS, STREAM, TOPIC, dead_letters, partition, verify};

/// Simulated time in which a schedule must come to its end once faults are over.
const PATIENCE: Duration = Duration::from_hours(1);

/// What a schedule met.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Messages at the source.
    pub messages: u64,
    /// Times that the gateway was killed.
    pub kills: u64,
    /// Failed calls that were repeated.
    pub retries: u64,
    /// Messages that were found instead of sent again.
    pub found: u64,
}

/// Runs the schedule of a seed.
///
/// # Errors
/// What is wrong at the end.
pub fn run(seed: u64) -> Result<Summary, String> {
    // Also the jitter of retries comes from the seed.
    fastrand::seed(seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| error.to_string())?;
    let world = World::new(seed);
    let about = world.scenario.to_string();
    let outcome = runtime.block_on(world.run());
    outcome.map_err(|reason| format!("{reason}; {about}"))
}

struct World {
    scenario: Scenario,
    link: Arc<Link>,
    source: Cluster,
    destination: Cluster,
    memory: MemoryStore,
    rng: fastrand::Rng,
    summary: Summary,
}

struct Gateway {
    lanes: JoinSet<Result<(), sluice::link::Error>>,
    statuses: Vec<Arc<Status>>,
    stop: CancellationToken,
    writer: tokio::task::JoinHandle<()>,
    writer_stop: CancellationToken,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let scenario = Scenario::draw(&mut rng);
        let text = format!(
            r#"name = "link"
            source = {{ cluster = "eu", streams = ["{STREAM}"] }}
            destination = {{ cluster = "us" }}
            batch = {{ messages = {}, bytes = "{} B", linger = "5 ms" }}
            retry = {{ initial = "10 ms", max = "1 s" }}"#,
            scenario.batch_messages, scenario.batch_bytes
        );
        Self {
            link: Arc::new(toml::from_str(&text).expect("a valid link")),
            source: Cluster::new("eu", scenario.fault_rate, rng.fork()),
            destination: Cluster::new("us", scenario.fault_rate, rng.fork()),
            memory: MemoryStore::new(scenario.fault_rate, rng.fork()),
            scenario,
            rng,
            summary: Summary::default(),
        }
    }

    async fn run(mut self) -> Result<Summary, String> {
        let lanes = u32::try_from(self.scenario.lanes.len()).expect("few");
        self.source.create(STREAM, TOPIC, lanes);
        self.destination.create(STREAM, TOPIC, lanes);
        // A partition that holds messages of others already, and marks that begin above 0.
        if self.rng.bool() {
            self.intrude();
        }
        let mut producers = JoinSet::new();
        for (id, bursts) in (0..).zip(&self.scenario.lanes) {
            let (source, bursts) = (self.source.clone(), bursts.clone());
            producers.spawn(async move {
                for (pause, burst) in bursts {
                    tokio::time::sleep(pause).await;
                    let messages: Vec<_> = burst.iter().map(|message| message.outgoing()).collect();
                    source.append(&partition(STREAM, TOPIC, id), &messages);
                }
            });
        }
        let mut gateway = self.start();
        for (pause, event) in self.scenario.events.clone() {
            tokio::time::sleep(pause).await;
            gateway = self.strike(event, gateway).await?;
        }
        producers.join_all().await;
        self.settle(gateway).await?;
        verify(&self.scenario, &self.destination)?;
        Ok(self.summary)
    }

    async fn strike(&mut self, event: Event, gateway: Gateway) -> Result<Gateway, String> {
        match event {
            Event::Kill => {
                self.summary.kills += 1;
                self.count(&gateway);
                gateway.kill().await;
                return Ok(self.start());
            }
            Event::Drain => {
                self.count(&gateway);
                gateway.drain().await?;
                return Ok(self.start());
            }
            Event::SourceRestarts => self.source.set_up(true),
            Event::SourceDown(outage) => down(&self.source, outage),
            Event::DestinationRestarts => self.destination.set_up(true),
            Event::DestinationDown(outage) => down(&self.destination, outage),
            Event::Intruder => self.intrude(),
            Event::SourceExpires => {
                for (id, status) in (0..).zip(&gateway.statuses) {
                    let settled = status.next_offset.load(Ordering::Relaxed);
                    // The message that was settled last stays, as it does when others follow.
                    let below = settled.saturating_sub(1);
                    self.source.expire(&partition(STREAM, TOPIC, id), below);
                }
            }
        }
        Ok(gateway)
    }

    /// Lets everything arrive, without faults.
    async fn settle(&mut self, mut gateway: Gateway) -> Result<(), String> {
        for cluster in [&self.source, &self.destination] {
            cluster.calm();
            cluster.set_up(true);
        }
        self.memory.calm();
        let began = Instant::now();
        let due: Vec<u64> = self.totals();
        loop {
            if let Some(ended) = gateway.lanes.try_join_next() {
                return Err(format!("a lane ended: {ended:?}"));
            }
            let mut settled = gateway.statuses.iter().zip(&due);
            if settled.all(|(status, due)| status.next_offset.load(Ordering::Relaxed) == *due) {
                break;
            }
            if began.elapsed() > PATIENCE {
                return Err(format!(
                    "stuck: {due:?} due, {:?}",
                    gateway
                        .statuses
                        .iter()
                        .map(|status| LaneReport::from(&**status))
                        .collect::<Vec<_>>()
                ));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.count(&gateway);
        self.summary.messages = due.iter().sum();
        gateway.drain().await
    }

    fn totals(&self) -> Vec<u64> {
        let lanes = self.scenario.lanes.iter();
        lanes
            .map(|bursts| bursts.iter().map(|(_, burst)| burst.len() as u64).sum())
            .collect()
    }

    fn count(&mut self, gateway: &Gateway) {
        for status in &gateway.statuses {
            let report = LaneReport::from(&**status);
            self.summary.retries += report.retries;
            self.summary.found += report.found;
        }
    }

    /// Another writer sends to every destination partition.
    fn intrude(&mut self) {
        for at in self.destination.partitions() {
            let message = Outgoing {
                id: self.rng.u128(..),
                origin_timestamp: INTRUDERS + self.rng.u64(0..1000),
                headers: &[],
                payload: b"intruder",
            };
            self.destination.append(&at, &[message]);
        }
    }

    fn start(&self) -> Gateway {
        let store: Arc<dyn Store> = if self.scenario.server_store {
            Arc::new(ServerStore::new(
                consumer_name("gateway", "link"),
                SimulatedClient::new(&self.source),
                SimulatedClient::new(&self.destination),
            ))
        } else {
            Arc::new(self.memory.clone())
        };
        let checkpoints = Arc::new(Writer::new(store));
        let (stop, writer_stop) = (CancellationToken::new(), CancellationToken::new());
        let writer = {
            let (checkpoints, stop) = (Arc::clone(&checkpoints), writer_stop.clone());
            let interval = self.scenario.checkpoint_interval;
            tokio::spawn(async move {
                // What could not be written is found at the destination.
                let _ = checkpoints.run(interval, stop).await;
            })
        };
        let (mut lanes, mut statuses) = (JoinSet::new(), Vec::new());
        for id in (0..).take(self.scenario.lanes.len()) {
            let parts = self.lane(id, &checkpoints);
            statuses.push(Arc::clone(&parts.status));
            lanes.spawn(lane::run(parts, stop.clone()));
        }
        Gateway {
            lanes,
            statuses,
            stop,
            writer,
            writer_stop,
        }
    }

    fn lane(&self, id: u32, checkpoints: &Arc<Writer>) -> lane::Parts<SimulatedClient> {
        let decides = self.scenario.guests;
        let infos = (0..).take(self.scenario.lanes.len());
        let infos = infos.map(|id| PartitionInfo {
            id,
            current_offset: 0,
            messages: 0,
        });
        lane::Parts {
            key: LaneKey {
                link: "link".to_owned(),
                cluster: "eu".to_owned(),
                stream: STREAM.to_owned(),
                topic: TOPIC.to_owned(),
                partition: id,
                destination: "us".to_owned(),
            },
            default: partition(STREAM, TOPIC, id),
            dead_letters: dead_letters(),
            topic: Arc::new(TopicInfo::plain(infos.collect())),
            link: Arc::clone(&self.link),
            guests: Box::pin(std::future::ready(Ok(Box::new(Guests {
                decides,
                paused_before: None,
            }) as Box<dyn Judge>))),
            source: SimulatedClient::new(&self.source),
            destination: SimulatedClient::new(&self.destination),
            checkpoints: Arc::clone(checkpoints),
            status: Arc::new(Status::new("link", &format!("{id}"))),
        }
    }
}

impl Gateway {
    /// Every task ends at the await where it is.
    async fn kill(mut self) {
        self.writer.abort();
        self.lanes.shutdown().await;
        let _ = self.writer.await;
    }

    async fn drain(self) -> Result<(), String> {
        self.stop.cancel();
        for outcome in self.lanes.join_all().await {
            outcome.map_err(|error| error.to_string())?;
        }
        self.writer_stop.cancel();
        self.writer.await.map_err(|error| error.to_string())
    }
}

fn down(cluster: &Cluster, outage: Duration) {
    cluster.set_up(false);
    let cluster = cluster.clone();
    tokio::spawn(async move {
        tokio::time::sleep(outage).await;
        cluster.set_up(true);
    });
}
