//! Delivering parcels: one unconfirmed send per destination partition, and no repetition whatever happens to it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::Error;
use super::plan::Parcel;
use super::report::Counts;
use super::retry::{Retrier, repeat};
use super::tail::{Found, Tail};
use bytes::Bytes;

use crate::batch::{Chunks, Outgoing, REQUEST_LIMIT, encode_send};
use crate::checkpoint::Mark;
use crate::cluster::{Connection, Partition, PollFrom};

/// Pause before a stored batch that cannot be read yet is looked for again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Delivers the parcels of one lane.
#[derive(Debug)]
pub struct Deliverer {
    /// Used by this lane alone.
    pub connection: Connection,
    retrier: Retrier,
    most_messages: usize,
    most_bytes: usize,
    counts: Arc<Counts>,
    destinations: HashMap<Partition, Destination>,
}

/// What is known of a destination partition.
#[derive(Debug)]
struct Destination {
    /// Everything that this lane delivered before lies below this offset.
    next_offset: u64,
    last_id: Option<u128>,
    /// What an earlier run may have delivered after its last checkpoint.
    earlier: Option<Tail>,
}

impl Deliverer {
    /// Continues from the marks of a checkpoint.
    pub fn new(
        connection: Connection,
        retrier: Retrier,
        (most_messages, most_bytes): (usize, usize),
        counts: Arc<Counts>,
        marks: &[Mark],
    ) -> Self {
        let destinations = marks
            .iter()
            .map(|mark| {
                let destination = Destination {
                    next_offset: mark.next_offset,
                    last_id: mark.last_id,
                    earlier: Some(Tail::new(mark.destination(), mark.next_offset)),
                };
                (mark.destination(), destination)
            })
            .collect();
        Self {
            connection,
            retrier,
            most_messages,
            most_bytes,
            counts,
            destinations,
        }
    }

    /// What each destination partition confirmed, for the checkpoint.
    pub fn marks(&self) -> Vec<Mark> {
        let mut marks: Vec<_> = self
            .destinations
            .iter()
            .map(|(partition, destination)| Mark {
                stream: partition.stream.to_string(),
                topic: partition.topic.to_string(),
                partition: partition.id,
                next_offset: destination.next_offset,
                last_id: destination.last_id,
            })
            .collect();
        marks.sort_unstable_by(|left, right| {
            let place = |mark: &Mark| (mark.stream.clone(), mark.topic.clone(), mark.partition);
            place(left).cmp(&place(right))
        });
        marks
    }

    /// Notes where each destination partition that was not used before ends. The caller must make the marks
    /// durable before it delivers there, or a crash would hide what was delivered. Tells whether any is new.
    ///
    /// # Errors
    /// [`Error`] when a partition cannot be read.
    pub async fn open(&mut self, parcels: &[Parcel<'_>]) -> Result<bool, Error> {
        let mut any = false;
        for parcel in parcels {
            if self.destinations.contains_key(&parcel.to) {
                continue;
            }
            let (connection, to) = (&mut self.connection, &parcel.to);
            let last = repeat!(self.retrier, connection.poll(to, PollFrom::Last, 1).await)?;
            // Too low an end costs reading a little more; expired partitions keep their current offset.
            let next_offset = last
                .frames()
                .last()
                .map_or(last.current_offset, |frame| frame.offset + 1);
            let destination = Destination {
                next_offset,
                last_id: None,
                earlier: None,
            };
            self.destinations.insert(to.clone(), destination);
            any = true;
        }
        Ok(any)
    }

    /// Delivers a parcel to a destination that was opened; when this returns all of it is confirmed.
    ///
    /// # Errors
    /// [`Error`] when a message is refused, attempts run out, or the gateway stops. Part of the parcel may be
    /// delivered then.
    pub async fn deliver(&mut self, parcel: &Parcel<'_>) -> Result<(), Error> {
        let mut due = parcel.messages.as_slice();
        if let Some(mut earlier) = self.destination(&parcel.to).earlier.take() {
            let found = earlier
                .find(&mut self.connection, &self.retrier, due)
                .await?;
            due = self.confirm_found(&parcel.to, due, &found);
            if !earlier.is_exhausted() {
                self.destination(&parcel.to).earlier = Some(earlier);
            }
        }
        let chunks: Vec<_> = Chunks::new(due, self.most_messages, self.most_bytes).collect();
        for chunk in chunks {
            self.deliver_chunk(&parcel.to, &due[chunk]).await?;
        }
        Ok(())
    }

    /// Sends one request's worth of messages until all of them are known to be there.
    async fn deliver_chunk(
        &mut self,
        to: &Partition,
        mut due: &[Outgoing<'_>],
    ) -> Result<(), Error> {
        let retrier = self.retrier.clone();
        let mut pauses = retrier.pauses();
        while let Some(last) = due.last() {
            let body = encode(to, due)?;
            match self.connection.send(to, body).await {
                Ok(Some(base_offset)) => {
                    let destination = self.destination(to);
                    destination.next_offset = base_offset + due.len() as u64;
                    destination.last_id = Some(last.id);
                    Counts::add(&self.counts.sent, due.len());
                    return Ok(());
                }
                // Stored, but the cluster does not say where: only looking helps, sending would repeat it.
                Ok(None) => {
                    while !due.is_empty() {
                        due = self.look_up(to, due).await?;
                        if !due.is_empty() {
                            retrier.sleep(LOOK_AGAIN).await?;
                        }
                    }
                }
                Err(error) => {
                    pauses.after(error).await?;
                    due = self.look_up(to, due).await?;
                }
            }
        }
        Ok(())
    }

    /// Reads what the partition holds since the last confirmation; returns the messages that are still due.
    async fn look_up<'a>(
        &mut self,
        to: &Partition,
        due: &'a [Outgoing<'a>],
    ) -> Result<&'a [Outgoing<'a>], Error> {
        let mut tail = Tail::new(to.clone(), self.destination(to).next_offset);
        let found = tail.find(&mut self.connection, &self.retrier, due).await?;
        Ok(self.confirm_found(to, due, &found))
    }

    /// Takes note of messages that turned out to be delivered; returns those that are still due.
    fn confirm_found<'a>(
        &mut self,
        to: &Partition,
        due: &'a [Outgoing<'a>],
        found: &Found,
    ) -> &'a [Outgoing<'a>] {
        let (there, due) = due.split_at(found.count);
        if let (Some(next_offset), Some(last)) = (found.next_offset, there.last()) {
            let destination = self.destination(to);
            destination.next_offset = next_offset;
            destination.last_id = Some(last.id);
            Counts::add(&self.counts.sent, there.len());
            Counts::add(&self.counts.found, there.len());
            tracing::info!(destination = %to, messages = there.len(), "found delivered, not sent again");
        }
        due
    }

    fn destination(&mut self, to: &Partition) -> &mut Destination {
        self.destinations
            .get_mut(to)
            .expect("a destination is opened before anything is delivered to it")
    }
}

/// The body of a request that the cluster can read; a larger one would break the connection each time.
fn encode(to: &Partition, due: &[Outgoing<'_>]) -> Result<Bytes, Error> {
    let body = encode_send(&to.stream, &to.topic, to.id, due)
        .map_err(|error| Error::Source(format!("a batch for {to} cannot be encoded: {error}")))?;
    if body.len() > REQUEST_LIMIT {
        return Err(Error::Source(format!(
            "a message for {to} takes a request of {} bytes; Iggy reads at most {REQUEST_LIMIT}. Nothing after it is \
             copied until it has expired at the source or a guest drops it",
            body.len()
        )));
    }
    Ok(body)
}
