//! Dead letters: the original message with the reason in its headers.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::batch::headers::{self, Field, KIND_UINT32, KIND_UINT64};
use crate::batch::{Outgoing, fits};
use crate::checkpoint::LaneKey;
use crate::cluster::Partition;
use crate::guest::Failure;

/// What a dead letter carries instead of the message's own headers and payload.
#[derive(Debug)]
pub struct Letter {
    /// The user headers, in wire form.
    pub headers: Vec<u8>,
    /// Whether the payload goes along. It is left out only where Iggy could not carry both.
    pub with_payload: bool,
}

/// The dead letter of a message: its headers as it was polled, then where it came from, why it is here, and when
/// that was found, in microseconds since the Unix epoch. Header bytes that do not parse are left out, and so is what
/// would make the letter too large; the message is still at its source offset.
pub fn letter(
    to: &Partition,
    lane: &LaneKey,
    offset: u64,
    message: &Outgoing<'_>,
    failure: &Failure,
) -> Letter {
    let fields = Fields {
        lane,
        offset,
        failure,
        time: now(),
    };
    let whole = fields.after(message.headers, None);
    let fits_with = |headers: &[u8], payload| {
        let candidate = Outgoing {
            headers,
            payload,
            ..*message
        };
        fits(&to.stream, &to.topic, &candidate)
    };
    if fits_with(&whole, message.payload) {
        return Letter {
            headers: whole,
            with_payload: true,
        };
    }
    let omitted = format!("payload of {} bytes", message.payload.len());
    let without_payload = fields.after(message.headers, Some(&omitted));
    let headers = if fits_with(&without_payload, &[]) {
        without_payload
    } else {
        let omitted = format!("{omitted}, headers of {} bytes", message.headers.len());
        fields.after(&[], Some(&omitted))
    };
    Letter {
        headers,
        with_payload: false,
    }
}

struct Fields<'a> {
    lane: &'a LaneKey,
    offset: u64,
    failure: &'a Failure,
    time: u64,
}

impl Fields<'_> {
    /// The wire form of `original` followed by these fields.
    fn after(&self, original: &[u8], omitted: Option<&str>) -> Vec<u8> {
        let lane = self.lane;
        let (partition, offset) = (lane.partition.to_le_bytes(), self.offset.to_le_bytes());
        let time = self.time.to_le_bytes();
        let number = |kind, bytes| Field { kind, bytes };
        let added = [
            ("sluice-link", Field::text(&lane.link)),
            ("sluice-cluster", Field::text(&lane.cluster)),
            ("sluice-stream", Field::text(&lane.stream)),
            ("sluice-topic", Field::text(&lane.topic)),
            ("sluice-partition", number(KIND_UINT32, &partition)),
            ("sluice-offset", number(KIND_UINT64, &offset)),
            ("sluice-guest", Field::text(&self.failure.guest)),
            ("sluice-stage", Field::text(self.failure.stage.name())),
            ("sluice-reason", Field::text(&self.failure.reason)),
            ("sluice-time", number(KIND_UINT64, &time)),
            ("sluice-omitted", Field::text(omitted.unwrap_or_default())),
        ];
        let mut list = headers::parse(original).unwrap_or_default();
        for (key, value) in added {
            if !value.bytes.is_empty() {
                headers::set(&mut list, Field::text(key), value);
            }
        }
        headers::encode(&list)
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    })
}
