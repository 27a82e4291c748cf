//! Starts the lanes of a link and waits for them.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::mirror::{self, Mirrored};
use super::report::{LaneReport, LinkReport, State, Status};
use super::retry::Retrier;
use super::topology::{self, SourceTopic};
use super::{Board, Error, lane};
use crate::blocking;
use crate::checkpoint::{LaneKey, Writer};
use crate::cluster::{Cluster, Connection, Partition};
use crate::config;
use crate::guest::{Chain, Judge, Slot, Source};

/// What a link is made of.
#[derive(Debug)]
pub struct Parts {
    /// Its configuration.
    pub link: Arc<config::Link>,
    /// The cluster it reads.
    pub source: Arc<Cluster>,
    /// The cluster it writes.
    pub destination: Arc<Cluster>,
    /// Its guests, in order.
    pub guests: Arc<[Arc<Slot>]>,
    /// Where checkpoints are kept.
    pub checkpoints: Arc<Writer>,
    /// Where its lanes can be looked at.
    pub board: Arc<Board>,
    /// The consumer under which the lanes' offsets are shown at the source.
    pub consumer: String,
    /// How often they are.
    pub mirror_interval: Duration,
}

/// Runs a link until `stop`, or until one of its lanes fails: then the others drain and the link ends.
pub async fn run(parts: Parts, stop: CancellationToken) -> LinkReport {
    let stop = stop.child_token();
    let mut error = None;
    // Before there are lanes, what fails is the link's as a whole.
    let status = Arc::new(Status::new(&parts.link.name, ""));
    parts.board.add_link(Arc::clone(&status));
    match start(&parts, &status, &stop).await {
        Ok((mut lanes, mirror)) => {
            status.enter(State::Running);
            while let Some(ended) = lanes.join_next().await {
                let outcome = match ended {
                    Ok(outcome) => outcome,
                    Err(failed) => std::panic::resume_unwind(failed.into_panic()),
                };
                if let Err(cause) = outcome {
                    tracing::error!(link = parts.link.name, "{cause}");
                    error.get_or_insert(cause);
                    stop.cancel();
                }
            }
            mirror.finish().await;
        }
        Err(Error::Interrupted) => {}
        Err(cause) => {
            tracing::error!(link = parts.link.name, "{cause}");
            error = Some(cause);
        }
    }
    status.enter(match &error {
        None => State::Stopped,
        Some(error) => State::Failed {
            error: error.to_string(),
        },
    });
    LinkReport {
        link: parts.link.name.clone(),
        lanes: reports(&parts.board, &parts.link.name),
        error,
    }
}

/// The totals of a link's lanes, in the order of their sources.
pub fn reports(board: &Board, link: &str) -> Vec<LaneReport> {
    let lanes = board.lanes();
    let mut reports: Vec<_> = lanes
        .iter()
        .filter(|status| status.link == link)
        .map(|status| LaneReport::from(&**status))
        .collect();
    reports.sort_by(|left, right| left.source.cmp(&right.source));
    reports
}

type Lanes = JoinSet<Result<(), Error>>;

/// The mirror of a link's offsets; it ends after the lanes, to store where they ended.
struct Mirror {
    stop: CancellationToken,
    task: AbortOnDropHandle<()>,
}

impl Mirror {
    async fn finish(self) {
        self.stop.cancel();
        if let Err(failed) = self.task.await
            && let Ok(panic) = failed.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

async fn start(
    parts: &Parts,
    status: &Arc<Status>,
    stop: &CancellationToken,
) -> Result<(Lanes, Mirror), Error> {
    let link = &parts.link;
    let retrier = Retrier::new(link.retry.clone(), Arc::clone(status), stop.clone());
    let mut source = Connection::new(Arc::clone(&parts.source));
    let mut destination = Connection::new(Arc::clone(&parts.destination));
    let topics = topology::discover(&mut source, &retrier, &link.source).await?;
    topology::refuse_loop(link, (&parts.source, &parts.destination), &topics)?;
    for topic in &topics {
        topology::prepare(&mut destination, &retrier, link, topic).await?;
    }
    let (mut lanes, mut mirrored) = (JoinSet::new(), Vec::new());
    for topic in &topics {
        for partition in &topic.info.partitions {
            let lane = lane_parts(parts, topic, partition.id);
            mirrored.push(Mirrored::new(lane.key.source(), Arc::clone(&lane.status)));
            lanes.spawn(lane::run(lane, stop.clone()));
        }
    }
    tracing::info!(
        link = link.name,
        topics = topics.len(),
        lanes = lanes.len(),
        guests = ?link.guests,
        "link runs"
    );
    let mirror_stop = CancellationToken::new();
    let mirror = mirror::run(
        source,
        parts.consumer.clone(),
        mirrored,
        parts.mirror_interval,
        mirror_stop.clone(),
    );
    let mirror = Mirror {
        stop: mirror_stop,
        task: AbortOnDropHandle::new(tokio::spawn(mirror)),
    };
    Ok((lanes, mirror))
}

/// The lanes that a link has at its source now, and where each delivers unless a guest routes elsewhere.
///
/// # Errors
/// [`Error`] when the source cannot be read, or has nothing for the link.
pub async fn lanes(
    link: &config::Link,
    source: Arc<Cluster>,
) -> Result<Vec<(LaneKey, Partition)>, Error> {
    let retry = config::link::Retry {
        attempts: config::link::Attempts::AtMost(3),
        ..link.retry.clone()
    };
    let status = Arc::new(Status::new(&link.name, ""));
    let retrier = Retrier::new(retry, status, CancellationToken::new());
    let mut source = Connection::new(source);
    let topics = topology::discover(&mut source, &retrier, &link.source).await?;
    let mut lanes = Vec::new();
    for topic in &topics {
        for partition in &topic.info.partitions {
            let key = lane_key(link, topic, partition.id);
            let usual = usual_destination(link, &key);
            lanes.push((key, usual));
        }
    }
    Ok(lanes)
}

/// Where a lane delivers unless a guest routes elsewhere.
pub fn usual_destination(link: &config::Link, lane: &LaneKey) -> Partition {
    let (stream, topic) = topology::destination(link, &lane.stream, &lane.topic);
    Partition {
        stream,
        topic,
        id: lane.partition,
    }
}

fn lane_key(link: &config::Link, topic: &SourceTopic, id: u32) -> LaneKey {
    LaneKey {
        link: link.name.clone(),
        cluster: link.source.cluster.clone(),
        stream: topic.stream.to_string(),
        topic: topic.topic.to_string(),
        partition: id,
        destination: link.destination.cluster.clone(),
    }
}

fn lane_parts(parts: &Parts, topic: &SourceTopic, id: u32) -> lane::Parts<Connection> {
    let link = &parts.link;
    let key = lane_key(link, topic, id);
    let source = Source {
        cluster: key.cluster.clone(),
        partition: key.source(),
    };
    let status = parts
        .board
        .add_lane(&link.name, &source.partition.to_string());
    let (slots, on_error) = (Arc::clone(&parts.guests), link.on_error);
    lane::Parts {
        default: usual_destination(link, &key),
        key,
        dead_letters: Partition {
            stream: link.dead_letter.stream.as_str().into(),
            topic: link.dead_letter.topic.as_str().into(),
            id: 0,
        },
        topic: Arc::clone(&topic.info),
        link: Arc::clone(link),
        guests: Box::pin(blocking(move || {
            let chain = Chain::start(&slots, source, on_error)?;
            Ok(Box::new(chain) as Box<dyn Judge>)
        })),
        source: Connection::new(Arc::clone(&parts.source)),
        destination: Connection::new(Arc::clone(&parts.destination)),
        checkpoints: Arc::clone(&parts.checkpoints),
        status,
    }
}
