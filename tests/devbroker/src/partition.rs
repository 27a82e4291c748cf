//! A partition: wire batches as they came, stamped with offsets.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use bytes::{Bytes, BytesMut};
use iggy_binary_protocol::batch::{
    BATCH_HEADER_SIZE, BatchHeader, BatchRef, calculate_batch_checksum, decode_batch_slice,
};
use serde::{Deserialize, Serialize};

use crate::storage::{Log, text};

/// Names a stored consumer offset: the kind of consumer and its identifier.
pub type ConsumerKey = (u8, Vec<u8>);

/// One stored batch.
#[derive(Debug, Clone)]
struct Record {
    header: BatchHeader,
    /// The header and the message frames.
    bytes: Bytes,
}

/// A batch whose checksums are right. The bytes are those that were received: they are stored without a copy.
#[derive(Debug)]
pub struct VerifiedBatch {
    header: BatchHeader,
    bytes: BytesMut,
}

/// The messages of one partition.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Partition {
    #[serde(skip)]
    records: Vec<Record>,
    /// The offset of the next message.
    #[serde(skip)]
    next_offset: u64,
    /// The first offset that was not expired.
    first_offset: u64,
    /// Size of the records in bytes.
    #[serde(skip)]
    size: u64,
    /// Microseconds since the Unix epoch.
    pub created_at: u64,
    /// Stored consumer offsets.
    #[serde(with = "text::pairs")]
    pub offsets: BTreeMap<ConsumerKey, u64>,
    /// Where the messages are saved; none where nothing is, or when the file does not hold what the partition does.
    log: Option<Log>,
}

/// Where a poll begins.
#[derive(Debug, Clone, Copy)]
pub enum From {
    /// At an offset, or behind it where it is gone.
    Offset(u64),
    /// At the first message appended at or after a time in microseconds.
    Timestamp(u64),
    /// So many messages before the end.
    Last,
}

/// What a poll found: records to be sent as they are.
#[derive(Debug, Default)]
pub struct Found {
    /// Number of messages.
    pub count: u32,
    /// Offset of the last one.
    pub last_offset: Option<u64>,
    /// The records.
    pub records: Vec<Bytes>,
}

impl Partition {
    /// An empty partition.
    pub fn new(created_at: u64) -> Self {
        Self {
            created_at,
            ..Self::default()
        }
    }

    /// Highest offset that was ever given; 0 also when none was.
    pub const fn current_offset(&self) -> u64 {
        self.next_offset.saturating_sub(1)
    }

    /// The offset that the next message gets.
    pub const fn next_offset(&self) -> u64 {
        self.next_offset
    }

    /// Number of messages that can be polled.
    pub const fn messages(&self) -> u64 {
        self.next_offset - self.first_offset
    }

    /// Size of what is stored, in bytes.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Appends a batch; returns the offset of its first message. As at the real server, the frames' own offset
    /// deltas are kept without a look at them.
    pub fn append(&mut self, id: u32, batch: VerifiedBatch, now: u64) -> u64 {
        let VerifiedBatch { mut header, bytes } = batch;
        header.partition_id = u64::from(id);
        header.base_offset = self.next_offset;
        header.base_timestamp = now;
        self.next_offset += u64::from(header.message_count);
        let record = stamp(header, bytes);
        self.size += record.bytes.len() as u64;
        self.records.push(record);
        header.base_offset
    }

    /// Up to `count` messages.
    pub fn poll(&self, from: From, count: u32) -> Found {
        let start = match from {
            From::Offset(offset) => offset,
            From::Timestamp(time) => self
                .records
                .iter()
                .find(|record| record.header.base_timestamp >= time)
                .map_or(self.next_offset, |record| record.header.base_offset),
            From::Last => self.next_offset.saturating_sub(u64::from(count)),
        }
        .max(self.first_offset);
        let end = start.saturating_add(u64::from(count)).min(self.next_offset);
        let mut found = Found::default();
        if start >= end {
            return found;
        }
        let first = self
            .records
            .partition_point(|record| end_of(&record.header) <= start);
        for record in &self.records[first..] {
            if record.header.base_offset >= end {
                break;
            }
            found.records.push(slice(record, start, end));
        }
        found.count = u32::try_from(end - start).unwrap_or(u32::MAX);
        found.last_offset = Some(end - 1);
        found
    }

    /// Forgets everything, as a purge does: offsets begin at 0 again and stored offsets are gone.
    pub fn purge(&mut self) {
        *self = Self::new(self.created_at);
    }

    /// Forgets messages below `offset`, as retention does.
    pub fn expire(&mut self, offset: u64) {
        self.first_offset = offset.clamp(self.first_offset, self.next_offset);
        let first = self.first_offset;
        self.records.retain(|record| end_of(&record.header) > first);
        self.log = None;
        self.measure();
    }

    /// Forgets the newest `count` messages, as a crash does that lost what was acknowledged. Their offsets are
    /// given again.
    pub fn roll_back(&mut self, count: u64) {
        let end = self
            .next_offset
            .saturating_sub(count)
            .max(self.first_offset);
        self.records
            .retain(|record| record.header.base_offset < end);
        if let Some(last) = self.records.last_mut()
            && end_of(&last.header) > end
        {
            let bytes = slice(last, last.header.base_offset, end);
            *last = decode(bytes);
        }
        self.next_offset = end;
        self.log = None;
        self.measure();
        self.clamp();
    }

    /// Saves the messages when at least so many of them are unsaved.
    pub(crate) fn save(&mut self, least: u64) -> io::Result<()> {
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        if self.next_offset - log.end < least {
            return Ok(());
        }
        let is_saved = |record: &Record| record.header.base_offset < log.end;
        let unsaved = &self.records[self.records.partition_point(is_saved)..];
        let batches = unsaved.iter().map(|record| &record.bytes);
        log.append(batches, self.next_offset)
    }

    /// Whether the file holds what the partition does, but for unsaved messages.
    pub const fn has_log(&self) -> bool {
        self.log.is_some()
    }

    /// Number of the file.
    pub fn file(&self) -> Option<u64> {
        self.log.as_ref().map(|log| log.number)
    }

    /// Saves all messages to a new file.
    pub(crate) fn rewrite(&mut self, folder: &Path, number: u64) -> io::Result<()> {
        let first = self.records.first();
        let start = first.map_or(self.next_offset, |record| record.header.base_offset);
        self.log = Some(Log::create(folder, number, start)?);
        self.save(1)
    }

    /// Reads the messages. Stored offsets that lie behind them are those of messages that were never saved.
    pub(crate) fn load(&mut self, folder: &Path) -> io::Result<()> {
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        let batches = log.load(folder)?.into_iter();
        self.next_offset = log.end;
        self.records = batches
            .map(|(header, bytes)| Record { header, bytes })
            .collect();
        self.first_offset = self.first_offset.min(self.next_offset);
        self.measure();
        self.clamp();
        Ok(())
    }

    /// Sets back stored offsets that lie behind the end.
    fn clamp(&mut self) {
        let current = self.current_offset();
        for stored in self.offsets.values_mut() {
            *stored = (*stored).min(current);
        }
    }

    fn measure(&mut self) {
        let sizes = self.records.iter().map(|record| record.bytes.len() as u64);
        self.size = sizes.sum();
    }
}

impl VerifiedBatch {
    /// Takes the batch that `bytes` begin with; none when its layout or one of its checksums is wrong.
    pub fn verify(mut bytes: BytesMut) -> Option<Self> {
        let header = decode_batch_slice(&bytes).ok()?.header;
        bytes.truncate(header.total_size());
        Some(Self { header, bytes })
    }
}

fn end_of(header: &BatchHeader) -> u64 {
    header.base_offset + u64::from(header.message_count)
}

/// Writes a header, whose length and checksum are brought up to date, over the one that `bytes` begin with.
fn stamp(mut header: BatchHeader, mut bytes: BytesMut) -> Record {
    header.batch_length = bytes.len() as u64;
    header.batch_checksum = calculate_batch_checksum(&header, &bytes[BATCH_HEADER_SIZE..]);
    header.encode_into(&mut bytes[..BATCH_HEADER_SIZE]);
    Record {
        header,
        bytes: bytes.freeze(),
    }
}

fn decode(bytes: Bytes) -> Record {
    let header = BatchHeader::decode(&bytes).expect("the broker wrote this record");
    Record { header, bytes }
}

/// The messages of a record from `start` to before `end`. A slice keeps the base offset and the deltas of the whole.
fn slice(record: &Record, start: u64, end: u64) -> Bytes {
    let base = record.header.base_offset;
    if base >= start && end_of(&record.header) <= end {
        return record.bytes.clone();
    }
    let blob = &record.bytes[BATCH_HEADER_SIZE..];
    let (mut from, mut to, mut count) = (blob.len(), 0, 0);
    let frames = BatchRef::new(record.header, blob).iter_with_offsets();
    for (framed, offset) in frames.zip(base..) {
        if (start..end).contains(&offset) {
            from = from.min(framed.start);
            to = framed.end;
            count += 1;
        }
    }
    let header = BatchHeader {
        message_count: count,
        ..record.header
    };
    let mut bytes = BytesMut::with_capacity(BATCH_HEADER_SIZE + to - from);
    bytes.resize(BATCH_HEADER_SIZE, 0);
    bytes.extend_from_slice(&blob[from..to]);
    stamp(header, bytes).bytes
}
