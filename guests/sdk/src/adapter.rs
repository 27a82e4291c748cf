//! Between the packed batches of the contract and the handler over one message.

use std::cell::RefCell;
use std::rc::Rc;

pub use crate::bindings::exports::sluice::guest::batch_handler::{
    Batch, Guest as BatchHandler, Verdicts,
};
pub use crate::bindings::sluice::guest::types::Inputs as WireInputs;

use crate::bindings::sluice::guest::types as wire;
use crate::field::{Field, FieldBuf};
use crate::verdict::Change;
use crate::{Config, Guest, Inputs, Message, Rewrite, Route, Source, Verdict};

/// Verdicts that are compared with a new one before it gets an entry of its own.
const RECENT: usize = 8;

const FORWARD: u32 = 0;
const DROP: u32 = 1;

/// The guest of this instance, once it has started.
pub struct Running<G>(RefCell<Option<G>>);

impl<G: Guest> Running<G> {
    /// Not started.
    pub const fn none() -> Self {
        Self(RefCell::new(None))
    }

    /// Starts the guest.
    ///
    /// # Errors
    /// What the guest says.
    pub fn start(&self, source: &Source, config: String) -> Result<WireInputs, String> {
        *self.0.borrow_mut() = Some(G::start(source, &Config::new(config))?);
        Ok(G::INPUTS.into())
    }

    /// Asks the guest about every message.
    ///
    /// # Panics
    /// When the guest was not started, which the host does first.
    pub fn handle(&self, batch: &Batch) -> Verdicts {
        let mut guest = self.0.borrow_mut();
        let guest = guest.as_mut().expect("the host starts a guest first");
        let mut packer = Packer::new(batch.offsets.len());
        for message in messages(batch) {
            packer.push(guest.handle(&message));
        }
        packer.finish()
    }
}

/// The messages of a packed batch.
fn messages(batch: &Batch) -> impl Iterator<Item = Message<'_>> {
    let mut start = 0;
    (0..batch.offsets.len()).map(move |index| {
        let payload_end = batch.ends[2 * index] as usize;
        let headers_end = batch.ends[2 * index + 1] as usize;
        let message = Message {
            offset: batch.offsets[index],
            timestamp: batch.timestamps[index],
            origin_timestamp: batch.origin_timestamps[index],
            id: u128::from(batch.ids[2 * index + 1]) << 64 | u128::from(batch.ids[2 * index]),
            payload: &batch.bytes[start..payload_end],
            headers: &batch.bytes[payload_end..headers_end],
        };
        start = headers_end;
        message
    })
}

/// Collects verdicts; equal ones share an entry.
struct Packer {
    choices: Vec<u32>,
    table: Vec<wire::Verdict>,
    recent: Vec<(Verdict, u32)>,
    oldest: usize,
}

impl Packer {
    fn new(messages: usize) -> Self {
        Self {
            choices: Vec::with_capacity(messages),
            table: vec![wire::Verdict::Forward, wire::Verdict::Drop],
            recent: Vec::new(),
            oldest: 0,
        }
    }

    fn push(&mut self, verdict: Verdict) {
        let choice = match verdict {
            Verdict::Forward => FORWARD,
            Verdict::Drop => DROP,
            other => self.entry(other),
        };
        self.choices.push(choice);
    }

    fn entry(&mut self, verdict: Verdict) -> u32 {
        if let Some((_, entry)) = self.recent.iter().find(|(known, _)| same(known, &verdict)) {
            return *entry;
        }
        let entry = u32::try_from(self.table.len()).expect("a batch has less than 2^32 messages");
        self.table.push((&verdict).into());
        if self.recent.len() < RECENT {
            self.recent.push((verdict, entry));
        } else {
            self.recent[self.oldest] = (verdict, entry);
            self.oldest = (self.oldest + 1) % RECENT;
        }
        entry
    }

    fn finish(self) -> Verdicts {
        Verdicts {
            choices: self.choices,
            table: self.table,
        }
    }
}

/// Whether two verdicts may share an entry. Payloads are not compared: equal ones are rare and long.
fn same(left: &Verdict, right: &Verdict) -> bool {
    match (left, right) {
        (Verdict::Rewrite(left), Verdict::Rewrite(right)) => {
            Rc::ptr_eq(left, right)
                || (left.payload.is_none() && right.payload.is_none() && left == right)
        }
        (Verdict::Route(left), Verdict::Route(right)) => Rc::ptr_eq(left, right) || left == right,
        (left, right) => left == right,
    }
}

impl From<Inputs> for WireInputs {
    fn from(inputs: Inputs) -> Self {
        let when = |wanted, flag| if wanted { flag } else { Self::empty() };
        when(inputs.payloads, Self::PAYLOADS) | when(inputs.headers, Self::HEADERS)
    }
}

impl From<&Verdict> for wire::Verdict {
    fn from(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Forward => Self::Forward,
            Verdict::Drop => Self::Drop,
            Verdict::Route(routes) => Self::Route(routes.iter().map(Into::into).collect()),
            Verdict::Rewrite(rewrite) => Self::Rewrite((&**rewrite).into()),
            Verdict::Reject(reason) => Self::Reject(reason.to_string()),
        }
    }
}

impl From<&Route> for wire::Route {
    fn from(route: &Route) -> Self {
        Self {
            stream: route.stream.clone(),
            topic: route.topic.clone(),
            partition: route.partition,
        }
    }
}

impl From<&Rewrite> for wire::Rewrite {
    fn from(rewrite: &Rewrite) -> Self {
        let headers = rewrite.changes.iter().map(|change| match change {
            Change::Set(key, value) => wire::HeaderChange::Set(wire::Header {
                key: key.into(),
                value: value.into(),
            }),
            Change::Remove(key) => wire::HeaderChange::Remove(key.into()),
            Change::Rename(from, to) => wire::HeaderChange::Rename((from.into(), to.into())),
        });
        Self {
            routes: rewrite.routes.iter().map(Into::into).collect(),
            headers: headers.collect(),
            payload: rewrite.payload.clone(),
        }
    }
}

impl From<&FieldBuf> for wire::Field {
    fn from(field: &FieldBuf) -> Self {
        match field.as_field() {
            Field::Raw(bytes) => Self::Raw(bytes.to_vec()),
            Field::Text(text) => Self::Text(text.to_owned()),
            Field::Bool(value) => Self::Boolean(value),
            Field::Int8(value) => Self::Int8(value),
            Field::Int16(value) => Self::Int16(value),
            Field::Int32(value) => Self::Int32(value),
            Field::Int64(value) => Self::Int64(value),
            Field::Int128(value) => Self::Int128(wide(value.cast_unsigned())),
            Field::Uint8(value) => Self::Uint8(value),
            Field::Uint16(value) => Self::Uint16(value),
            Field::Uint32(value) => Self::Uint32(value),
            Field::Uint64(value) => Self::Uint64(value),
            Field::Uint128(value) => Self::Uint128(wide(value)),
            Field::Float32(value) => Self::Float32(value),
            Field::Float64(value) => Self::Float64(value),
            Field::Other(kind, bytes) => Self::Other((kind, bytes.to_vec())),
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the halves are meant to be cut off"
)]
const fn wide(value: u128) -> wire::Wide {
    wire::Wide {
        low: value as u64,
        high: (value >> 64) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_verdicts_share_an_entry() {
        let mut packer = Packer::new(6);
        for topic in ["a", "b", "a", "b"] {
            packer.push(Verdict::route(Route::topic(topic)));
        }
        packer.push(Verdict::Forward);
        packer.push(Verdict::Drop);
        let verdicts = packer.finish();
        assert_eq!(verdicts.choices, [2, 3, 2, 3, FORWARD, DROP]);
        assert_eq!(verdicts.table.len(), 4);
    }

    #[test]
    fn more_distinct_verdicts_than_are_remembered_still_choose_right() {
        let mut packer = Packer::new(40);
        for round in 0..40 {
            packer.push(Verdict::reject(format!("reason {}", round % 20)));
        }
        let verdicts = packer.finish();
        for (round, choice) in verdicts.choices.iter().enumerate() {
            match &verdicts.table[*choice as usize] {
                wire::Verdict::Reject(reason) => {
                    assert_eq!(*reason, format!("reason {}", round % 20));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_packed_batch_is_read_back_message_by_message() {
        let batch = Batch {
            offsets: vec![5, 6],
            timestamps: vec![7, 8],
            origin_timestamps: vec![9, 10],
            ids: vec![1, 2, 3, 4],
            ends: vec![2, 5, 5, 6],
            bytes: b"ab...c".to_vec(),
        };
        let read: Vec<_> = messages(&batch).collect();
        assert_eq!(read[0].payload(), b"ab");
        assert_eq!(read[0].headers, b"...");
        assert_eq!(read[1].payload(), b"");
        assert_eq!(read[1].headers, b"c");
        assert_eq!(read[1].id(), 4 << 64 | 3);
        assert_eq!(read[1].offset(), 6);
    }
}
