//! Messages into the forms that the two worlds take. Buffers are kept from call to call.

use super::View;
use super::bindings::batch_handler::Batch;
use super::bindings::message_handler::Message;
use super::bindings::types::{Header, Inputs};
use super::fields;
use crate::batch::headers;

/// Most payload and header bytes in one packed call: positions are 32-bit, and the guest needs room for them.
pub const PACK_LIMIT: usize = 16 * 1024 * 1024;

/// An empty packed batch.
pub const fn empty_batch() -> Batch {
    Batch {
        offsets: Vec::new(),
        timestamps: Vec::new(),
        origin_timestamps: Vec::new(),
        ids: Vec::new(),
        ends: Vec::new(),
        bytes: Vec::new(),
    }
}

/// Fills `batch` with messages from the front of `views`, at least one, until [`PACK_LIMIT`]; tells how many.
pub fn pack(batch: &mut Batch, views: &[View<'_>], inputs: Inputs) -> usize {
    batch.offsets.clear();
    batch.timestamps.clear();
    batch.origin_timestamps.clear();
    batch.ids.clear();
    batch.ends.clear();
    batch.bytes.clear();
    for (index, view) in views.iter().enumerate() {
        let payload: &[u8] = wanted(inputs, Inputs::PAYLOADS, view.payload);
        let headers: &[u8] = wanted(inputs, Inputs::HEADERS, view.headers);
        let size = batch.bytes.len() + payload.len() + headers.len();
        if index > 0 && size > PACK_LIMIT {
            return index;
        }
        batch.offsets.push(view.frame.offset);
        batch.timestamps.push(view.frame.timestamp);
        batch.origin_timestamps.push(view.frame.origin_timestamp);
        let id = fields::halves(view.frame.id);
        batch.ids.extend([id.low, id.high]);
        for part in [payload, headers] {
            batch.bytes.extend_from_slice(part);
            let end = u32::try_from(batch.bytes.len()).expect("a message has less than 4 GiB");
            batch.ends.push(end);
        }
    }
    views.len()
}

/// The message that `view` shows.
pub fn message(view: &View<'_>, inputs: Inputs) -> Message {
    let parsed = if inputs.contains(Inputs::HEADERS) {
        headers::parse(view.headers)
    } else {
        Ok(Vec::new())
    };
    Message {
        offset: view.frame.offset,
        timestamp: view.frame.timestamp,
        origin_timestamp: view.frame.origin_timestamp,
        id: fields::halves(view.frame.id),
        unreadable_headers: parsed.is_err(),
        headers: parsed
            .unwrap_or_default()
            .into_iter()
            .map(|(key, value)| Header {
                key: fields::to_guest(key),
                value: fields::to_guest(value),
            })
            .collect(),
        payload: wanted(inputs, Inputs::PAYLOADS, view.payload).to_vec(),
    }
}

fn wanted(inputs: Inputs, part: Inputs, bytes: &[u8]) -> &[u8] {
    if inputs.contains(part) { bytes } else { &[] }
}
