//! Dead letters after they were written: reading them, and replaying them.

mod memory;
mod planner;
mod replay;
mod round;
mod summary;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use twox_hash::XxHash3_64;

pub use super::dead_letter::Origin;
pub use super::tail::Reader;
pub use replay::{Parts, Request, replay};
pub use summary::{LeftOut, Summary};

use super::Error;
use super::report::Status;
use super::retry::{Retrier, repeat};
use crate::batch::{Frame, Outgoing, Polled};
use crate::checkpoint::LetterId;
use crate::cluster::{Client, Cluster, Connection, Partition, PollFrom};
use crate::config::link::{DeadLetter, Retry};

/// A message of a dead-letter topic.
#[derive(Debug)]
pub struct Letter<'a> {
    /// Its offset there.
    pub offset: u64,
    /// The message as it is stored: the id, the time of production and the payload are those of the original.
    pub message: Outgoing<'a>,
    /// What its headers say, or why they are not those of a letter.
    pub origin: Result<Origin<'a>, String>,
}

impl<'a> Letter<'a> {
    /// Reads a message that was polled from a dead-letter topic.
    pub fn read(polled: &'a Polled, frame: &Frame) -> Self {
        let headers = polled.headers(frame);
        Self {
            offset: frame.offset,
            message: Outgoing {
                id: frame.id,
                origin_timestamp: frame.origin_timestamp,
                headers,
                payload: polled.payload(frame),
            },
            origin: Origin::read(headers),
        }
    }

    /// What tells it from other letters.
    pub fn id(&self) -> LetterId {
        let message = &self.message;
        let mut bytes = message.id.to_le_bytes().to_vec();
        bytes.extend(message.origin_timestamp.to_le_bytes());
        bytes.extend(message.headers);
        LetterId {
            offset: self.offset,
            fingerprint: XxHash3_64::oneshot(&bytes),
        }
    }
}

/// A dead-letter topic.
#[derive(Debug)]
pub struct Mailbox {
    client: Connection,
    retrier: Retrier,
    stream: Arc<str>,
    topic: Arc<str>,
}

impl Mailbox {
    /// The topic at a link's destination; failed calls are repeated by `retry` until `stop`.
    pub fn new(
        cluster: Arc<Cluster>,
        place: &DeadLetter,
        retry: Retry,
        stop: CancellationToken,
    ) -> Self {
        let status = Arc::new(Status::new("", "dead letters"));
        Self {
            client: Connection::new(cluster),
            retrier: Retrier::new(retry, status, stop),
            stream: place.stream.as_str().into(),
            topic: place.topic.as_str().into(),
        }
    }

    /// Its partitions; none when it does not exist, so that no letter was ever written.
    ///
    /// # Errors
    /// [`Error`] when the cluster fails.
    pub async fn partitions(&mut self) -> Result<Vec<Partition>, Error> {
        let client = &mut self.client;
        let topic = repeat!(self.retrier, client.topic(&self.stream, &self.topic).await)?;
        let partitions = topic.map(|topic| topic.partitions).unwrap_or_default();
        let ids = partitions.iter().map(|partition| partition.id);
        Ok(ids.map(|id| self.partition(id)).collect())
    }

    fn partition(&self, id: u32) -> Partition {
        Partition {
            stream: Arc::clone(&self.stream),
            topic: Arc::clone(&self.topic),
            id,
        }
    }

    /// Reads one of its partitions.
    pub fn reader<'a>(&'a mut self, partition: &'a Partition) -> Reader<'a, Connection> {
        Reader::new(partition, &mut self.client, &self.retrier)
    }

    /// The offset after the newest letter of a partition; 0 when it holds none.
    ///
    /// # Errors
    /// [`Error`] when the partition cannot be read.
    pub async fn end(&mut self, partition: &Partition) -> Result<u64, Error> {
        let client = &mut self.client;
        let last = repeat!(
            self.retrier,
            client.poll(partition, PollFrom::Last, 1).await
        )?;
        Ok(last.frames().last().map_or(0, |frame| frame.offset + 1))
    }
}
