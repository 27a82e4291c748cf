//! The tail of a destination partition: what was stored there since the last confirmation.
//!
//! A send whose outcome is unknown, and a restart from an older checkpoint, both leave one question: which of the
//! messages that are due are there already? Messages go to a partition in order, so those that are there are a
//! prefix of what is due, possibly with messages of other writers in between.

use super::Error;
use super::poll::PollSize;
use super::retry::{Retrier, repeat};
use crate::batch::{Frame, Outgoing, Polled};
use crate::cluster::{Connection, Partition, PollFrom};

/// Most messages and bytes that are read at once.
const READ: (u32, usize) = (1000, 4 * 1024 * 1024);

/// A cursor over the messages of a destination partition from an offset on.
#[derive(Debug)]
pub struct Tail {
    partition: Partition,
    next_offset: u64,
    size: PollSize,
    read: Polled,
    position: usize,
    exhausted: bool,
}

/// What a tail holds of the messages that are due.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// How many of them, from the first on, are there.
    pub count: usize,
    /// The offset after the last of these.
    pub next_offset: Option<u64>,
}

impl Tail {
    /// The tail of `partition` from `next_offset` on.
    pub fn new(partition: Partition, next_offset: u64) -> Self {
        Self {
            partition,
            next_offset,
            size: PollSize::new(READ.0, READ.1),
            read: Polled::default(),
            position: 0,
            exhausted: false,
        }
    }

    /// Whether everything that was stored has been looked at.
    pub const fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// How many of `due`, from the first on, the tail holds in this order. Continues where the last call stopped;
    /// once a message is not found, nothing after it was sent and the tail is exhausted.
    ///
    /// # Errors
    /// [`Error`] when the partition cannot be read.
    pub async fn find(
        &mut self,
        connection: &mut Connection,
        retrier: &Retrier,
        due: &[Outgoing<'_>],
    ) -> Result<Found, Error> {
        let mut found = Found::default();
        while let Some(message) = due.get(found.count) {
            let Some(stored) = self.advance(connection, retrier).await? else {
                break;
            };
            if message.is(&stored_message(&self.read, &stored)) {
                found.count += 1;
                found.next_offset = Some(stored.offset + 1);
            }
        }
        Ok(found)
    }

    async fn advance(
        &mut self,
        connection: &mut Connection,
        retrier: &Retrier,
    ) -> Result<Option<Frame>, Error> {
        if self.position == self.read.frames().len() && !self.exhausted {
            self.read_on(connection, retrier).await?;
            // A partition that ends below the mark was purged: what it holds now is all newer.
            let purged = self.read.current_offset.saturating_add(1) < self.next_offset;
            if self.read.is_empty() && purged {
                self.next_offset = 0;
                self.read_on(connection, retrier).await?;
            }
            self.position = 0;
            self.exhausted = self.read.is_empty();
        }
        let frame = self.read.frames().get(self.position).copied();
        if let Some(frame) = frame {
            self.position += 1;
            self.next_offset = frame.offset + 1;
        }
        Ok(frame)
    }

    async fn read_on(
        &mut self,
        connection: &mut Connection,
        retrier: &Retrier,
    ) -> Result<(), Error> {
        let (from, count) = (PollFrom::Offset(self.next_offset), self.size.count());
        self.read = repeat!(retrier, connection.poll(&self.partition, from, count).await)?;
        self.size.learn(&self.read);
        Ok(())
    }
}

fn stored_message<'a>(read: &'a Polled, frame: &Frame) -> Outgoing<'a> {
    Outgoing {
        id: frame.id,
        origin_timestamp: frame.origin_timestamp,
        headers: read.headers(frame),
        payload: read.payload(frame),
        is_dead_letter: false,
    }
}
