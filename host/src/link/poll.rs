//! Polling a source partition, ahead of what the lane is sending.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::report::Counts;
use super::retry::{Retrier, repeat};
use crate::batch::Polled;
use crate::checkpoint::LastSettled;
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
    /// The message before it, where there is one.
    pub last: Option<LastSettled>,
    /// How many messages to ask for.
    pub size: PollSize,
    /// First pause after an empty poll.
    pub linger: Duration,
    /// How failed polls are repeated.
    pub retrier: Retrier,
    /// Where gaps are counted.
    pub counts: Arc<Counts>,
    /// Whether the log says already that due messages cannot be read.
    pub read_fault: bool,
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
        // Whether the source may have been purged or rolled back since the last message, and filled again.
        let mut doubtful = false;
        loop {
            let connects = self.connection.connects();
            let polled = match self.poll().await {
                Ok(polled) => polled,
                Err(error) => return error,
            };
            doubtful |= polled.is_empty() || connects != self.connection.connects();
            if polled.is_empty() {
                self.look_for_read_fault(&polled);
                if let Err(error) = self.retrier.sleep(pause).await {
                    return error;
                }
                pause = (pause * 2).min(self.linger * IDLE_GROWTH);
                continue;
            }
            if std::mem::take(&mut doubtful)
                && let Err(error) = self.verify().await
            {
                return error;
            }
            pause = self.linger;
            self.advance(&polled);
            if sender.send(Ok(polled)).await.is_err() {
                return Error::Interrupted;
            }
        }
    }

    async fn poll(&mut self) -> Result<Polled, Error> {
        let from = PollFrom::Offset(self.next_offset);
        let mut pauses = self.retrier.pauses();
        let polled = loop {
            let count = self.size.count();
            match self.connection.poll(&self.partition, from, count).await {
                Ok(polled) => break polled,
                Err(error) => {
                    self.size.shrink();
                    pauses.after(error).await?;
                }
            }
        };
        self.size.learn(&polled);
        self.check(&polled)?;
        Ok(polled)
    }

    /// Compares the last message with what the source has at its offset.
    async fn verify(&mut self) -> Result<(), Error> {
        let Some(last) = self.last else { return Ok(()) };
        let (connection, source) = (&mut self.connection, &self.partition);
        source_continues(connection, &self.retrier, source, &last).await
    }

    fn advance(&mut self, polled: &Polled) {
        if let Some(last) = polled.frames().last() {
            self.next_offset = last.offset + 1;
            self.last = Some(LastSettled::from(last));
        }
        self.read_fault = false;
    }

    /// An empty reply although there should be messages: the source cannot read them, or they have all expired.
    fn look_for_read_fault(&mut self, polled: &Polled) {
        let due = self.next_offset <= polled.current_offset && polled.current_offset > 0;
        if due && !std::mem::replace(&mut self.read_fault, true) {
            tracing::warn!(
                source = %self.partition,
                offset = self.next_offset,
                current_offset = polled.current_offset,
                "the source gives no message where it says that it has some: they have expired, or it cannot read them"
            );
        }
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

/// Compares the last settled message with what the source has at its offset: a source that was purged, created
/// anew or rolled back has another one there, or none.
///
/// # Errors
/// [`Error::Source`] when it differs, or another when the source cannot be read.
pub async fn source_continues(
    connection: &mut Connection,
    retrier: &Retrier,
    source: &Partition,
    last: &LastSettled,
) -> Result<(), Error> {
    let from = PollFrom::Offset(last.offset);
    let polled = repeat!(retrier, connection.poll(source, from, 1).await)?;
    let continues = match polled.frames().first() {
        // Retention took it; what is missing between is counted as a gap.
        Some(frame) if frame.offset > last.offset => true,
        Some(frame) => LastSettled::from(frame) == *last,
        None => polled.current_offset >= last.offset,
    };
    if continues {
        return Ok(());
    }
    Err(Error::Source(format!(
        "source partition {source} no longer holds the message that was copied last, at offset {}: it was purged, \
         created anew or rolled back. Nothing is copied until you decide: restore the source, or move the checkpoint \
         away",
        last.offset
    )))
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

    /// Asks for less after a failure: the last reply may have been too large for the time limit.
    pub fn shrink(&mut self) {
        self.count = (self.count / 2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_poll_is_tried_with_fewer_messages_down_to_one() {
        let mut size = PollSize::new(1000, 1 << 20);
        assert_eq!(size.count(), FIRST);
        let mut counts = Vec::new();
        for _ in 0..6 {
            size.shrink();
            counts.push(size.count());
        }
        assert_eq!(counts, [8, 4, 2, 1, 1, 1]);
    }
}
