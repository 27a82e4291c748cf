//! Polling a source partition, ahead of what the lane is sending.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::continuity::{Place, continues, first_place, next_place};
use super::report::{Counts, Status};
use super::retry::{Retrier, repeat};
use super::size::PollSize;
use crate::batch::Polled;
use crate::checkpoint::LastSettled;
use crate::cluster::{Client, Partition, PollFrom};
use crate::config::link::{OnGap, OnSourceReset, Start};

/// Batches that wait between polling and sending.
const AHEAD: usize = 1;

/// The longest idle pause is this many times the first one.
const IDLE_GROWTH: u32 = 16;

/// What comes from the source, in order.
#[derive(Debug)]
pub enum Event {
    /// The next messages.
    Batch(Polled),
    /// The source is another than it was, and the lane goes on here.
    Moved(Place),
}

/// Reads one source partition in offset order.
#[derive(Debug)]
pub struct Poller<C> {
    /// Used for polling alone.
    pub client: C,
    /// The source partition.
    pub partition: Partition,
    /// Where it reads next.
    pub place: Place,
    /// How many messages to ask for.
    pub size: PollSize,
    /// First pause after an empty poll.
    pub linger: Duration,
    /// What happens when the source is another than it was.
    pub on_reset: OnSourceReset,
    /// What happens when the source no longer has what is due.
    pub on_gap: OnGap,
    /// How failed polls are repeated.
    pub retrier: Retrier,
    /// Where gaps and faults are told.
    pub status: Arc<Status>,
}

/// What a poll shows of the source.
enum Finding {
    /// Messages that follow the ones before.
    Messages(Polled),
    /// Nothing yet.
    Nothing(Polled),
    /// It is another than it was, for this reason.
    Reset(String),
}

impl<C: Client> Poller<C> {
    /// Polls until `stop`, an error, or until the receiver is dropped. The batches come in offset order; the
    /// channel closes after the last one.
    pub fn start(self, stop: CancellationToken) -> mpsc::Receiver<Result<Event, Error>> {
        let (sender, receiver) = mpsc::channel(AHEAD);
        tokio::spawn(async move {
            tokio::select! {
                biased;
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

    async fn run(mut self, sender: &mpsc::Sender<Result<Event, Error>>) -> Error {
        match self.read(sender).await {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    async fn read(
        &mut self,
        sender: &mpsc::Sender<Result<Event, Error>>,
    ) -> Result<std::convert::Infallible, Error> {
        let mut pause = self.linger;
        // Whether the source may have been purged or rolled back since the last message, and filled again.
        let mut doubtful = false;
        if let Some(reason) = self.difference().await? {
            self.move_on(reason, sender).await?;
        }
        loop {
            let connects = self.client.connects();
            let finding = self.poll().await?;
            doubtful |= connects != self.client.connects();
            let reason = match finding {
                Finding::Nothing(polled) => {
                    doubtful = true;
                    self.nothing_came(&polled).await?;
                    self.retrier.sleep(pause).await?;
                    pause = (pause * 2).min(self.linger * IDLE_GROWTH);
                    continue;
                }
                Finding::Reset(reason) => reason,
                Finding::Messages(polled) => {
                    let difference = if doubtful {
                        self.difference().await?
                    } else {
                        None
                    };
                    doubtful = false;
                    let Some(reason) = difference else {
                        pause = self.linger;
                        self.advance(polled, sender).await?;
                        continue;
                    };
                    reason
                }
            };
            self.move_on(reason, sender).await?;
        }
    }

    async fn poll(&mut self) -> Result<Finding, Error> {
        let from = PollFrom::Offset(self.place.next_offset);
        let mut pauses = self.retrier.pauses();
        let polled = loop {
            let count = self.size.count();
            match self.client.poll(&self.partition, from, count).await {
                Ok(polled) => break polled,
                Err(error) => {
                    self.size.shrink();
                    pauses.after(error).await?;
                }
            }
        };
        drop(pauses);
        self.size.learn(&polled);
        let due = self.place.next_offset;
        if !polled.is_empty() {
            return self
                .check_order(&polled)
                .map(|()| Finding::Messages(polled));
        }
        if due > polled.current_offset.saturating_add(1) {
            return Ok(Finding::Reset(format!(
                "source partition {} ends at offset {}, but offset {due} is due: it was purged, created anew or \
                 rolled back",
                self.partition, polled.current_offset
            )));
        }
        Ok(Finding::Nothing(polled))
    }

    /// Offsets rise from the one that is due.
    fn check_order(&self, polled: &Polled) -> Result<(), Error> {
        let mut due = self.place.next_offset;
        for frame in polled.frames() {
            if frame.offset < due {
                return Err(Error::Source(format!(
                    "source partition {} answered offset {} when offset {due} was due",
                    self.partition, frame.offset
                )));
            }
            due = frame.offset.saturating_add(1);
        }
        Ok(())
    }

    /// Passes messages on, after counting those that are missing before and between them.
    async fn advance(
        &mut self,
        polled: Polled,
        sender: &mpsc::Sender<Result<Event, Error>>,
    ) -> Result<(), Error> {
        self.status.read_fault(None);
        self.see_end(&polled);
        for frame in polled.frames() {
            self.note_gap(frame.offset)?;
            self.place.next_offset = frame.offset.saturating_add(1);
        }
        self.place.last = polled.frames().last().map(LastSettled::from);
        send(sender, Event::Batch(polled)).await
    }

    /// Messages from the one that is due up to `found` have expired.
    fn note_gap(&self, found: u64) -> Result<(), Error> {
        let due = self.place.next_offset;
        let missing = found - due;
        if missing == 0 {
            return Ok(());
        }
        Counts::add(
            &self.status.counts.gaps,
            usize::try_from(missing).unwrap_or(usize::MAX),
        );
        let last = found - 1;
        let text = format!(
            "source partition {} no longer has the {missing} messages at offsets {due} to {last}, which were not \
             copied yet: its retention is too short",
            self.partition
        );
        if self.on_gap == OnGap::Stop {
            return Err(Error::Gap(text));
        }
        tracing::warn!(source = %self.partition, missing, from = due, to = last, "{text}");
        Ok(())
    }

    /// Nothing came. Where the source says that it has what is due, that has expired, or it cannot be read.
    async fn nothing_came(&mut self, polled: &Polled) -> Result<(), Error> {
        self.see_end(polled);
        let due = self.place.next_offset;
        if due > polled.current_offset || polled.current_offset == 0 {
            self.status.read_fault(None);
            return Ok(());
        }
        let (client, at) = (&mut self.client, &self.partition);
        let topic = repeat!(self.retrier, client.topic(&at.stream, &at.topic).await)?;
        let Some(partition) = topic.as_ref().and_then(|topic| topic.partition(at.id)) else {
            return Ok(());
        };
        if partition.messages == 0 && partition.current_offset >= due {
            let end = partition.current_offset + 1;
            self.note_gap(end)?;
            self.place.next_offset = end;
        } else if partition.messages > 0 && self.status.read_fault(Some(due)) {
            tracing::error!(
                source = %self.partition,
                offset = due,
                current_offset = polled.current_offset,
                messages = partition.messages,
                "the source gives no message where it says that it has some: it cannot read them, look at its log. \
                 Nothing is skipped; the lane waits"
            );
        }
        Ok(())
    }

    fn see_end(&self, polled: &Polled) {
        let empty = polled.is_empty() && polled.current_offset == 0;
        let end = if empty { 0 } else { polled.current_offset + 1 };
        self.status.source_end.store(end, Ordering::Relaxed);
    }

    /// How the source differs from what was read, if it does.
    async fn difference(&mut self) -> Result<Option<String>, Error> {
        let Some(last) = self.place.last else {
            return Ok(None);
        };
        let (client, source) = (&mut self.client, &self.partition);
        if continues(client, &self.retrier, source, &last).await? {
            return Ok(None);
        }
        Ok(Some(format!(
            "source partition {source} no longer holds the message that was copied last, at offset {}: it was \
             purged, created anew or rolled back",
            last.offset
        )))
    }

    /// Goes on where the policy says, with a source that is another than it was.
    async fn move_on(
        &mut self,
        reason: String,
        sender: &mpsc::Sender<Result<Event, Error>>,
    ) -> Result<(), Error> {
        Counts::add(&self.status.counts.resets, 1);
        let (client, source) = (&mut self.client, &self.partition);
        self.place = match self.on_reset {
            OnSourceReset::Stop => return Err(Error::Reset(reason)),
            OnSourceReset::Restart => {
                first_place(client, &self.retrier, source, Start::Earliest).await?
            }
            OnSourceReset::Continue => {
                next_place(client, &self.retrier, source, self.place.next_offset).await?
            }
        };
        self.status.read_fault(None);
        tracing::warn!(
            next_offset = self.place.next_offset,
            "{reason}; the lane goes on by its on_source_reset"
        );
        send(sender, Event::Moved(self.place)).await
    }
}

async fn send(sender: &mpsc::Sender<Result<Event, Error>>, event: Event) -> Result<(), Error> {
    sender.send(Ok(event)).await.map_err(|_| Error::Interrupted)
}
