//! Polling a source partition, ahead of what the lane is sending.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::report::Counts;
use super::retry::{Retrier, repeat};
use crate::batch::Polled;
use crate::cluster::{Connection, Partition, PollFrom};

/// Batches that wait between polling and sending.
const AHEAD: usize = 1;

/// Messages in the very first poll, when their size is not known yet.
const FIRST: u32 = 16;

/// The longest idle pause is this many times the first one.
const IDLE_GROWTH: u32 = 16;

/// Reads one source partition in offset order from `next_offset` on.
#[derive(Debug)]
pub struct Poller {
    /// Used for polling alone.
    pub connection: Connection,
    /// The source partition.
    pub partition: Partition,
    /// The first offset that is due.
    pub next_offset: u64,
    /// How many messages to ask for.
    pub size: PollSize,
    /// First pause after an empty poll.
    pub linger: Duration,
    /// How failed polls are repeated.
    pub retrier: Retrier,
    /// Where gaps are counted.
    pub counts: Arc<Counts>,
}

impl Poller {
    /// Polls until `stop`, an error, or until the receiver is dropped. The batches come in offset order; the
    /// channel closes after the last one.
    pub fn start(self, stop: CancellationToken) -> mpsc::Receiver<Result<Polled, Error>> {
        let (sender, receiver) = mpsc::channel(AHEAD);
        tokio::spawn(async move {
            tokio::select! {
                // A poll that is cut short has no effect at the source.
                () = stop.cancelled() => {}
                () = sender.closed() => {}
                error = self.run(&sender) => {
                    // A closed channel means that nobody waits for the error.
                    let _ = sender.send(Err(error)).await;
                }
            }
        });
        receiver
    }

    async fn run(mut self, sender: &mpsc::Sender<Result<Polled, Error>>) -> Error {
        let mut pause = self.linger;
        loop {
            let polled = match self.poll().await {
                Ok(polled) => polled,
                Err(error) => return error,
            };
            if polled.is_empty() {
                if let Err(error) = self.retrier.sleep(pause).await {
                    return error;
                }
                pause = (pause * 2).min(self.linger * IDLE_GROWTH);
                continue;
            }
            pause = self.linger;
            if sender.send(Ok(polled)).await.is_err() {
                return Error::Interrupted;
            }
        }
    }

    async fn poll(&mut self) -> Result<Polled, Error> {
        let (connection, partition) = (&mut self.connection, &self.partition);
        let (from, count) = (PollFrom::Offset(self.next_offset), self.size.count());
        let polled = repeat!(self.retrier, connection.poll(partition, from, count).await)?;
        self.size.learn(&polled);
        self.check(&polled)?;
        if let Some(last) = polled.frames().last() {
            self.next_offset = last.offset + 1;
        }
        Ok(polled)
    }

    /// Holds a reply against what is due: nothing may be skipped unnoticed.
    fn check(&self, polled: &Polled) -> Result<(), Error> {
        let mut due = self.next_offset;
        if polled.is_empty() && due > polled.current_offset.saturating_add(1) {
            return Err(Error::Source(format!(
                "source partition {} ends at offset {}, but offset {due} is due: it was purged, created anew or \
                 rolled back. Nothing is copied until you decide: restore the source, or move the checkpoint away",
                self.partition, polled.current_offset
            )));
        }
        for frame in polled.frames() {
            if frame.offset < due {
                return Err(Error::Source(format!(
                    "source partition {} answered offset {} when offset {due} was due",
                    self.partition, frame.offset
                )));
            }
            if frame.offset > due {
                let missing = frame.offset - due;
                tracing::warn!(
                    source = %self.partition,
                    missing,
                    from = due,
                    to = frame.offset - 1,
                    "the source no longer has messages that were not copied yet; its retention is too short"
                );
                Counts::add(
                    &self.counts.gaps,
                    usize::try_from(missing).unwrap_or(usize::MAX),
                );
            }
            due = frame.offset + 1;
        }
        Ok(())
    }
}

/// How many messages to ask for, so that replies, which Iggy does not bound, stay near a size in bytes.
#[derive(Debug, Clone)]
pub struct PollSize {
    most_messages: u32,
    bytes: usize,
    count: u32,
}

impl PollSize {
    /// At most `most_messages` messages, aiming at `bytes`.
    pub fn new(most_messages: u32, bytes: usize) -> Self {
        Self {
            most_messages,
            bytes,
            count: most_messages.min(FIRST),
        }
    }

    /// Messages to ask for next.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Takes the sizes of a reply into account.
    pub fn learn(&mut self, polled: &Polled) {
        let messages = polled.frames().len();
        if messages == 0 {
            return;
        }
        let each = polled.size().div_ceil(messages).max(1);
        let fitting = u32::try_from(self.bytes / each).unwrap_or(u32::MAX);
        self.count = fitting
            .min(self.count.saturating_mul(8))
            .clamp(1, self.most_messages);
    }
}
