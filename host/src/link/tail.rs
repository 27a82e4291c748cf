//! The tail of a destination partition: what was stored there since the last confirmation.
//!
//! A send whose outcome is unknown, and a restart from an older checkpoint, both leave one question: which of the
//! messages that are due are there already? The tail answers it for each of them, with messages of other writers in
//! between, and also when part of it has expired, or when the partition was purged or rolled back meanwhile.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::Error;
use super::retry::{Retrier, repeat};
use super::size::PollSize;
use crate::batch::{Identity, Outgoing, Polled};
use crate::checkpoint::Mark;
use crate::cluster::{Client, Partition, PollFrom};

/// Most messages and bytes that are read at once.
const READ: (u32, usize) = (1000, 4 * 1024 * 1024);

/// Pause before a partition that holds messages but gives none is asked again.
const READ_FAULT_PAUSE: Duration = Duration::from_millis(100);

/// The messages of a destination partition since a mark.
#[derive(Debug)]
pub struct Tail {
    /// The copies of each message that are there, in their order.
    stored: HashMap<Identity, VecDeque<Copy>>,
    /// Whether the oldest part has expired, so that the first messages may be missing although they were delivered.
    begins_late: bool,
    intact: bool,
}

#[derive(Debug)]
struct Copy {
    offset: u64,
    /// Hash of its headers and payload.
    content: u64,
}

/// Which of the messages that were due are there.
#[derive(Debug)]
pub struct Sorted<'a> {
    /// Those that are not, in their order.
    pub missing: Vec<Outgoing<'a>>,
    /// How many are.
    pub found: usize,
    /// The last of these, and the offset after it.
    pub last: Option<(Outgoing<'a>, u64)>,
}

impl Tail {
    /// Reads `partition` from a mark to its end.
    ///
    /// # Errors
    /// [`Error`] when it cannot be read, or when the gateway stops.
    pub async fn read<C: Client>(
        partition: &Partition,
        mark: &Mark,
        client: &mut C,
        retrier: &Retrier,
    ) -> Result<Self, Error> {
        let mut reader = Reader::new(partition, client, retrier);
        let intact = reader.is_intact(mark).await?;
        let mut tail = Self {
            stored: HashMap::new(),
            begins_late: false,
            intact,
        };
        if intact {
            let mut ranges = mark.earlier.clone();
            ranges.push((mark.next_offset, u64::MAX));
            for (place, range) in ranges.into_iter().enumerate() {
                let begins_late = tail.read_range(&mut reader, range).await?;
                tail.begins_late |= place == 0 && begins_late;
            }
        } else {
            tail.read_range(&mut reader, (0, u64::MAX)).await?;
        }
        Ok(tail)
    }

    /// Reads a range of offsets; tells whether its first messages have expired.
    async fn read_range<C: Client>(
        &mut self,
        reader: &mut Reader<'_, C>,
        (start, end): (u64, u64),
    ) -> Result<bool, Error> {
        let (mut next_offset, mut first) = (start, None);
        while next_offset < end
            && let Some(read) = reader.next(next_offset).await?
        {
            for frame in read.frames() {
                first.get_or_insert(frame.offset);
                // Another writer's odd batch may repeat offsets; reading must go on all the same.
                next_offset = next_offset.max(frame.offset).saturating_add(1);
                if frame.offset >= end {
                    break;
                }
                let message = Outgoing {
                    id: frame.id,
                    origin_timestamp: frame.origin_timestamp,
                    headers: read.headers(frame),
                    payload: read.payload(frame),
                };
                let copies = self.stored.entry(message.identity()).or_default();
                copies.push_back(Copy {
                    offset: frame.offset,
                    content: message.content(),
                });
            }
        }
        Ok(first.is_some_and(|first| first > start))
    }

    /// Whether the partition still held what it had confirmed; otherwise all of it is in the tail.
    pub const fn is_intact(&self) -> bool {
        self.intact
    }

    /// Where below an offset the messages are that did not come up as due yet, as ranges of offsets in their order.
    pub fn ranges(&self, below: u64) -> Vec<(u64, u64)> {
        let copies = self.stored.values().flatten();
        let offsets = copies.map(|copy| copy.offset);
        let mut offsets: Vec<_> = offsets.filter(|offset| *offset < below).collect();
        offsets.sort_unstable();
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for offset in offsets {
            match ranges.last_mut() {
                Some((_, end)) if *end == offset => *end += 1,
                _ => ranges.push((offset, offset + 1)),
            }
        }
        ranges
    }

    /// Whether nothing is left that a due message could be.
    pub fn is_empty(&self) -> bool {
        self.stored.is_empty()
    }

    /// Sorts messages that are due into those that are there and those that are not. A message that is there once
    /// counts for one that is due.
    pub fn sort<'a>(&mut self, due: &[Outgoing<'a>]) -> Sorted<'a> {
        let mut sorted = Sorted {
            missing: Vec::new(),
            found: 0,
            last: None,
        };
        for message in due {
            match self.stored.entry(message.identity()) {
                Entry::Vacant(_) => sorted.missing.push(*message),
                Entry::Occupied(mut entry) => {
                    if std::mem::take(&mut self.begins_late) {
                        // Messages arrive in order: what was due before the first one was there too, and expired.
                        sorted.found += sorted.missing.len();
                        sorted.missing.clear();
                    }
                    if let Some(offset) = take(entry.get_mut(), message) {
                        sorted.found += 1;
                        sorted.last = Some((*message, offset + 1));
                    }
                    if entry.get().is_empty() {
                        entry.remove();
                    }
                }
            }
        }
        sorted
    }
}

/// Takes the copy that a message is, and returns its offset. Where several messages share an identity they arrived in
/// the order in which they are due, but the source may have lost the first ones since: then the content tells. A
/// guest may have changed that, so a copy with another content is better than none.
fn take(copies: &mut VecDeque<Copy>, message: &Outgoing<'_>) -> Option<u64> {
    let place = if copies.len() == 1 {
        0
    } else {
        let content = message.content();
        let mut contents = copies.iter().map(|copy| copy.content);
        contents.position(|copy| copy == content).unwrap_or(0)
    };
    copies.drain(..=place).next_back().map(|copy| copy.offset)
}

/// Reads a partition at the destination.
#[derive(Debug)]
pub struct Reader<'a, C> {
    partition: &'a Partition,
    client: &'a mut C,
    retrier: &'a Retrier,
    size: PollSize,
}

impl<'a, C: Client> Reader<'a, C> {
    /// A reader of `partition`.
    pub fn new(partition: &'a Partition, client: &'a mut C, retrier: &'a Retrier) -> Self {
        Self {
            partition,
            client,
            retrier,
            size: PollSize::new(READ.0, READ.1),
        }
    }

    /// Whether the partition still has the mark's message at its place. One that has not was purged or rolled back.
    async fn is_intact(&mut self, mark: &Mark) -> Result<bool, Error> {
        let Some(last) = mark.last else {
            return Ok(true);
        };
        let at = mark.next_offset.saturating_sub(1);
        let polled = self.poll(at, 1).await?;
        let intact = match polled.frames().first() {
            Some(frame) if frame.offset == at => {
                frame.id == last.id && frame.origin_timestamp == last.origin_timestamp
            }
            Some(_) => true,
            None => polled.current_offset >= at,
        };
        if !intact {
            tracing::warn!(
                destination = %self.partition,
                offset = at,
                "the destination no longer holds what it confirmed: it was purged, or lost it in a crash"
            );
        }
        Ok(intact)
    }

    /// Messages from an offset on, as many as fit; none at the end.
    ///
    /// # Errors
    /// [`Error`] when they cannot be read, or when the gateway stops.
    pub async fn next(&mut self, next_offset: u64) -> Result<Option<Polled>, Error> {
        loop {
            let polled = self.poll(next_offset, self.size.count()).await?;
            self.size.learn(&polled);
            if !polled.is_empty() {
                return Ok(Some(polled));
            }
            if next_offset > polled.current_offset || self.holds_nothing().await? {
                return Ok(None);
            }
            tracing::warn!(
                destination = %self.partition,
                offset = next_offset,
                current_offset = polled.current_offset,
                "the destination gives no message where it says that it has some; asking again"
            );
            self.retrier.sleep(READ_FAULT_PAUSE).await?;
        }
    }

    /// Whether the partition is empty: it never held a message, or all of them expired.
    async fn holds_nothing(&mut self) -> Result<bool, Error> {
        let (client, at) = (&mut *self.client, self.partition);
        let topic = repeat!(self.retrier, client.topic(&at.stream, &at.topic).await)?;
        let found = topic.as_ref().and_then(|topic| topic.partition(at.id));
        Ok(found.is_none_or(|found| found.messages == 0))
    }

    async fn poll(&mut self, offset: u64, count: u32) -> Result<Polled, Error> {
        self.retrier.check_stop()?;
        let from = PollFrom::Offset(offset);
        let mut count = count;
        let mut pauses = self.retrier.pauses();
        loop {
            match self.client.poll(self.partition, from, count).await {
                Ok(polled) => return Ok(polled),
                Err(error) => {
                    self.size.shrink();
                    count = count.min(self.size.count());
                    pauses.after(error).await?;
                }
            }
        }
    }
}
