//! Starts the lanes of a link and waits for them.

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::report::{LaneReport, LinkReport};
use super::retry::Retrier;
use super::topology::{self, SourceTopic};
use super::{Error, lane};
use crate::checkpoint::{LaneKey, Writer};
use crate::cluster::{Cluster, Connection, Partition};
use crate::config;
use crate::guest::Component;

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
    pub components: Arc<[Arc<Component>]>,
    /// Where checkpoints are kept.
    pub checkpoints: Arc<Writer>,
}

/// Runs a link until `stop`, or until one of its lanes fails: then the others drain and the link ends.
pub async fn run(parts: Parts, stop: CancellationToken) -> LinkReport {
    let stop = stop.child_token();
    let mut report = LinkReport {
        link: parts.link.name.clone(),
        lanes: Vec::new(),
        error: None,
    };
    match start(&parts, &stop).await {
        Ok(mut lanes) => {
            while let Some(ended) = lanes.join_next().await {
                let (lane, outcome) = match ended {
                    Ok(ended) => ended,
                    Err(failed) => std::panic::resume_unwind(failed.into_panic()),
                };
                report.lanes.push(lane);
                if let Err(error) = outcome {
                    tracing::error!(link = report.link, "{error}");
                    report.error.get_or_insert(error);
                    stop.cancel();
                }
            }
            report
                .lanes
                .sort_by(|left, right| left.source.cmp(&right.source));
        }
        Err(Error::Interrupted) => {}
        Err(error) => {
            tracing::error!(link = report.link, "{error}");
            report.error = Some(error);
        }
    }
    report
}

type Lanes = JoinSet<(LaneReport, Result<(), Error>)>;

async fn start(parts: &Parts, stop: &CancellationToken) -> Result<Lanes, Error> {
    let link = &parts.link;
    let retrier = Retrier::new(link.retry.clone(), stop.clone());
    let mut source = Connection::new(Arc::clone(&parts.source));
    let mut destination = Connection::new(Arc::clone(&parts.destination));
    let topics = topology::discover(&mut source, &retrier, &link.source).await?;
    topology::refuse_loop(link, (&parts.source, &parts.destination), &topics)?;
    for topic in &topics {
        topology::prepare(&mut destination, &retrier, link, topic).await?;
    }
    let mut lanes = JoinSet::new();
    for topic in &topics {
        for partition in &topic.info.partitions {
            lanes.spawn(lane::run(
                lane_parts(parts, topic, partition.id),
                stop.clone(),
            ));
        }
    }
    tracing::info!(
        link = link.name,
        topics = topics.len(),
        lanes = lanes.len(),
        guests = ?link.guests,
        "link runs"
    );
    Ok(lanes)
}

fn lane_parts(parts: &Parts, topic: &SourceTopic, id: u32) -> lane::Parts {
    let link = &parts.link;
    let (stream, destination_topic) = topology::destination(link, topic);
    lane::Parts {
        key: LaneKey {
            link: link.name.clone(),
            cluster: link.source.cluster.clone(),
            stream: topic.stream.to_string(),
            topic: topic.topic.to_string(),
            partition: id,
            destination: link.destination.cluster.clone(),
        },
        source: Partition {
            stream: Arc::clone(&topic.stream),
            topic: Arc::clone(&topic.topic),
            id,
        },
        default: Partition {
            stream,
            topic: destination_topic,
            id,
        },
        dead_letters: Partition {
            stream: link.dead_letter.stream.as_str().into(),
            topic: link.dead_letter.topic.as_str().into(),
            id: 0,
        },
        topic: Arc::clone(&topic.info),
        link: Arc::clone(link),
        components: Arc::clone(&parts.components),
        source_connection: Connection::new(Arc::clone(&parts.source)),
        destination_connection: Connection::new(Arc::clone(&parts.destination)),
        checkpoints: Arc::clone(&parts.checkpoints),
    }
}
