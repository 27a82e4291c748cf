//! Dead letters: the original message with the reason in its headers.

use crate::batch::headers::{self, Field, KIND_UINT32, KIND_UINT64};
use crate::checkpoint::LaneKey;
use crate::guest::Failure;

/// The headers of a dead letter: those of the message as it was polled, then where it came from and why it is
/// here. When it was written is the append time of the dead letter itself. Header bytes that do not parse are
/// left out; the message is still at its source offset.
pub fn headers(original: &[u8], lane: &LaneKey, offset: u64, failure: &Failure) -> Vec<u8> {
    let (partition, offset) = (lane.partition.to_le_bytes(), offset.to_le_bytes());
    let number = |kind, bytes| Field { kind, bytes };
    let added = [
        ("sluice-link", Field::text(&lane.link)),
        ("sluice-cluster", Field::text(&lane.cluster)),
        ("sluice-stream", Field::text(&lane.stream)),
        ("sluice-topic", Field::text(&lane.topic)),
        ("sluice-partition", number(KIND_UINT32, &partition)),
        ("sluice-offset", number(KIND_UINT64, &offset)),
        ("sluice-guest", Field::text(&failure.guest)),
        ("sluice-stage", Field::text(failure.stage.name())),
        ("sluice-reason", Field::text(&failure.reason)),
    ];
    let mut list = headers::parse(original).unwrap_or_default();
    for (key, value) in added {
        if !value.bytes.is_empty() {
            headers::set(&mut list, Field::text(key), value);
        }
    }
    headers::encode(&list)
}
