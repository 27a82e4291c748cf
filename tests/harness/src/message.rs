//! Messages as tests make and compare them.

use bytes::Bytes;
use iggy::prelude::IggyMessage;

/// A message, with everything that must arrive unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The message id.
    pub id: u128,
    /// Microseconds since the Unix epoch.
    pub origin_timestamp: u64,
    /// The content.
    pub payload: Bytes,
    /// User headers in wire form.
    pub headers: Bytes,
}

impl Message {
    /// A message with an id, and a time of production made from it.
    pub fn new(id: u128, payload: impl Into<Bytes>) -> Self {
        Self {
            id,
            origin_timestamp: 1_700_000_000_000_000 + u64::try_from(id % 1_000_000).unwrap_or(0),
            payload: payload.into(),
            headers: Bytes::new(),
        }
    }

    /// The same with text headers.
    #[must_use]
    pub fn with(mut self, list: &[(&str, &str)]) -> Self {
        self.headers = headers(list);
        self
    }
}

impl From<&IggyMessage> for Message {
    fn from(message: &IggyMessage) -> Self {
        Self {
            id: message.header.id,
            origin_timestamp: message.header.origin_timestamp,
            payload: message.payload.clone(),
            headers: message.user_headers.clone().unwrap_or_default(),
        }
    }
}

/// Text headers in wire form.
pub fn headers(list: &[(&str, &str)]) -> Bytes {
    let mut bytes = Vec::new();
    for field in list.iter().flat_map(|(key, value)| [key, value]) {
        let length = u32::try_from(field.len()).unwrap_or_default();
        bytes.push(2);
        bytes.extend(length.to_le_bytes());
        bytes.extend(field.as_bytes());
    }
    bytes.into()
}

/// The value of a text header, or of an integer header as text.
pub fn header(message: &Message, key: &str) -> Option<String> {
    let mut rest = &message.headers[..];
    let mut field = || -> Option<(u8, Vec<u8>)> {
        let (kind, after) = rest.split_first()?;
        let (length, after) = after.split_first_chunk::<4>()?;
        let (bytes, after) = after.split_at(u32::from_le_bytes(*length) as usize);
        rest = after;
        Some((*kind, bytes.to_vec()))
    };
    while let (Some((_, name)), Some((kind, value))) = (field(), field()) {
        if name == key.as_bytes() {
            return Some(match kind {
                11 => u32::from_le_bytes(value.try_into().ok()?).to_string(),
                12 => u64::from_le_bytes(value.try_into().ok()?).to_string(),
                _ => String::from_utf8(value).ok()?,
            });
        }
    }
    None
}
