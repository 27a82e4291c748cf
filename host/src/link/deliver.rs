//! Delivering parcels: one unconfirmed send per destination partition, and no repetition whatever happens to it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Error;
use super::ledger::Ledger;
use super::plan::Parcel;
use super::report::{Counts, Status};
use super::retry::{Retrier, repeat};
use super::tail::{Sorted, Tail};
use bytes::Bytes;

use crate::batch::{Chunks, Outgoing, encode_send};
use crate::checkpoint::{Mark, Sent};
use crate::cluster::{Client, Partition, PollFrom};

/// Delivers the parcels of one lane.
#[derive(Debug)]
pub struct Deliverer<C> {
    /// Used by this lane alone.
    pub client: C,
    retrier: Retrier,
    limits: Limits,
    status: Arc<Status>,
    destinations: HashMap<Partition, Destination>,
}

/// What one send may carry.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Messages.
    pub messages: usize,
    /// Bytes, unless a single message has more.
    pub bytes: usize,
}

/// What is known of a destination partition.
#[derive(Debug)]
struct Destination {
    mark: Mark,
    /// What an earlier run may have delivered after its last checkpoint.
    earlier: Earlier,
}

#[derive(Debug)]
enum Earlier {
    /// Not looked at yet.
    Unread,
    /// Some of it may still come up, from source offsets below this one.
    Read(Tail, u64),
    /// All of it came up, or there is none.
    Done,
}

impl<C: Client> Deliverer<C> {
    /// Continues from the marks of a checkpoint.
    pub fn new(
        client: C,
        retrier: Retrier,
        limits: Limits,
        status: Arc<Status>,
        marks: &[Mark],
    ) -> Self {
        let destinations = marks
            .iter()
            .map(|mark| {
                let destination = Destination {
                    mark: mark.clone(),
                    earlier: Earlier::Unread,
                };
                (mark.destination(), destination)
            })
            .collect();
        Self {
            client,
            retrier,
            limits,
            status,
            destinations,
        }
    }

    /// What each destination partition confirmed, for the checkpoint.
    pub fn marks(&self) -> Vec<Mark> {
        let destinations = self.destinations.values();
        let mut marks: Vec<_> = destinations
            .map(|known| {
                let mut mark = known.mark.clone();
                if let Earlier::Read(tail, _) = &known.earlier {
                    mark.earlier = tail.ranges(mark.next_offset);
                }
                mark
            })
            .collect();
        marks.sort_unstable_by(|left, right| {
            let place = |mark: &Mark| (mark.stream.clone(), mark.topic.clone(), mark.partition);
            place(left).cmp(&place(right))
        });
        marks
    }

    /// Everything below `next_offset` at the source is settled: what an earlier run may have sent of it will not come
    /// up any more. What is left of its deliveries is of other writers, or decided otherwise now.
    pub fn settled(&mut self, next_offset: u64) {
        for known in self.destinations.values_mut() {
            if matches!(known.earlier, Earlier::Read(_, end) if end <= next_offset) {
                known.earlier = Earlier::Done;
            }
        }
    }

    /// Notes where each destination partition that was not used before ends. The caller must make the marks
    /// durable before it delivers there, or a crash would hide what was delivered. Tells whether any is new. Without
    /// a ledger, nothing is known of them but what was given to [`Deliverer::new`].
    ///
    /// # Errors
    /// [`Error`] when a partition cannot be read.
    pub async fn open(
        &mut self,
        parcels: &[Parcel<'_>],
        ledger: Option<&Ledger>,
    ) -> Result<bool, Error> {
        let mut any = false;
        for parcel in parcels {
            let to = &parcel.to;
            if self.destinations.contains_key(to) {
                continue;
            }
            let known = match ledger {
                Some(ledger) => ledger.mark(to).await?,
                None => None,
            };
            let destination = match known {
                Some(mark) => Destination {
                    mark,
                    earlier: Earlier::Unread,
                },
                None => Destination {
                    mark: self.mark_end(to).await?,
                    earlier: Earlier::Done,
                },
            };
            self.destinations.insert(to.clone(), destination);
            any = true;
        }
        Ok(any)
    }

    async fn mark_end(&mut self, to: &Partition) -> Result<Mark, Error> {
        let client = &mut self.client;
        let last = repeat!(self.retrier, client.poll(to, PollFrom::Last, 1).await)?;
        // Too low an end costs reading a little more; expired partitions keep their current offset.
        let next_offset = last
            .frames()
            .last()
            .map_or(last.current_offset, |frame| frame.offset + 1);
        Ok(Mark {
            stream: to.stream.to_string(),
            topic: to.topic.to_string(),
            partition: to.id,
            next_offset,
            last: None,
            earlier: Vec::new(),
        })
    }

    /// Delivers a parcel to a destination that was opened; when this returns all of it is confirmed.
    ///
    /// # Errors
    /// [`Error`] when a message is refused, attempts run out, or the gateway stops. Part of the parcel may be
    /// delivered then.
    pub async fn deliver(&mut self, parcel: &Parcel<'_>) -> Result<(), Error> {
        let remaining = self.without_earlier(parcel).await?;
        let due = remaining.as_deref().unwrap_or(&parcel.messages);
        let chunks: Vec<_> = Chunks::new(due, self.limits.messages, self.limits.bytes).collect();
        for chunk in chunks {
            self.deliver_chunk(&parcel.to, &due[chunk]).await?;
        }
        Ok(())
    }

    /// The messages of a parcel that an earlier run did not deliver; none when there is nothing to compare with.
    async fn without_earlier<'a>(
        &mut self,
        parcel: &Parcel<'a>,
    ) -> Result<Option<Vec<Outgoing<'a>>>, Error> {
        let to = &parcel.to;
        let earlier = std::mem::replace(&mut self.destination(to).earlier, Earlier::Done);
        let (mut tail, end) = match earlier {
            Earlier::Done => return Ok(None),
            Earlier::Read(tail, end) => (tail, end),
            Earlier::Unread => {
                // No earlier run can have seen more of the source than there is now.
                let end = self.status.source_end.load(Ordering::Relaxed);
                (self.read_tail(to).await?, end)
            }
        };
        let destination = self.destination(to);
        destination.mark.earlier.clear();
        let sorted = tail.sort(&parcel.messages);
        if !tail.is_empty() {
            destination.earlier = Earlier::Read(tail, end);
        }
        Ok(Some(self.take_note(to, sorted)))
    }

    /// Sends one request's worth of messages until all of them are known to be there.
    async fn deliver_chunk(
        &mut self,
        to: &Partition,
        messages: &[Outgoing<'_>],
    ) -> Result<(), Error> {
        let mut pauses = self.retrier.pauses();
        let mut due = messages.to_vec();
        while let Some(last) = due.last() {
            let body = encode(to, &due)?;
            match self.client.send(to, body).await {
                Ok(Some(base_offset)) => {
                    self.confirm(to, last, base_offset + due.len() as u64);
                    Counts::add(&self.status.counts.sent, due.len());
                    return Ok(());
                }
                // Stored, but the cluster does not say where. Looking moves the mark; sending again would repeat.
                Ok(None) => {
                    let rest = self.look_up(to, &due).await?;
                    Counts::add(&self.status.counts.sent, rest.len());
                    return Ok(());
                }
                Err(error) => {
                    pauses.after(error).await?;
                    due = self.look_up(to, &due).await?;
                }
            }
        }
        Ok(())
    }

    /// Reads what the partition holds since the mark; returns the messages that are still due.
    async fn look_up<'a>(
        &mut self,
        to: &Partition,
        due: &[Outgoing<'a>],
    ) -> Result<Vec<Outgoing<'a>>, Error> {
        let sorted = self.read_tail(to).await?.sort(due);
        Ok(self.take_note(to, sorted))
    }

    async fn read_tail(&mut self, to: &Partition) -> Result<Tail, Error> {
        let mark = self.destination(to).mark.clone();
        let tail = Tail::read(to, &mark, &mut self.client, &self.retrier).await?;
        if !tail.is_intact() {
            let destination = self.destination(to);
            destination.mark.next_offset = 0;
            destination.mark.last = None;
            destination.earlier = Earlier::Done;
        }
        Ok(tail)
    }

    /// Takes note of messages that turned out to be delivered; returns those that are still due.
    fn take_note<'a>(&mut self, to: &Partition, sorted: Sorted<'a>) -> Vec<Outgoing<'a>> {
        if let Some((last, next_offset)) = sorted.last {
            // After a decision changed, an earlier run's deliveries come up in another order than they are in.
            if next_offset >= self.destination(to).mark.next_offset {
                self.confirm(to, &last, next_offset);
            }
            Counts::add(&self.status.counts.sent, sorted.found);
            Counts::add(&self.status.counts.found, sorted.found);
            tracing::info!(destination = %to, messages = sorted.found, "found delivered, not sent again");
        }
        sorted.missing
    }

    fn confirm(&mut self, to: &Partition, last: &Outgoing<'_>, next_offset: u64) {
        let mark = &mut self.destination(to).mark;
        mark.next_offset = next_offset;
        mark.last = Some(Sent {
            id: last.id,
            origin_timestamp: last.origin_timestamp,
        });
    }

    fn destination(&mut self, to: &Partition) -> &mut Destination {
        self.destinations
            .get_mut(to)
            .expect("a destination is opened before anything is delivered to it")
    }
}

fn encode(to: &Partition, due: &[Outgoing<'_>]) -> Result<Bytes, Error> {
    encode_send(&to.stream, &to.topic, to.id, due)
        .map_err(|error| Error::Source(format!("a batch for {to} cannot be encoded: {error}")))
}
