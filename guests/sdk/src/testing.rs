//! Messages for ordinary tests of a guest's handler.
//!
//! ```
//! use sluice_guest::testing::{TestMessage, source};
//! use sluice_guest::{Config, Guest, Message, Source, Verdict};
//!
//! struct NoEmpty;
//!
//! impl Guest for NoEmpty {
//!     fn start(_: &Source, _: &Config) -> Result<Self, String> {
//!         Ok(Self)
//!     }
//!
//!     fn handle(&mut self, message: &Message<'_>) -> Verdict {
//!         if message.payload().is_empty() { Verdict::Drop } else { Verdict::Forward }
//!     }
//! }
//!
//! let mut guest = NoEmpty::start(&source(), &Config::new("{}"))?;
//! assert_eq!(guest.handle(&TestMessage::new("").as_message()), Verdict::Drop);
//! assert_eq!(guest.handle(&TestMessage::new("x").as_message()), Verdict::Forward);
//! # Ok::<(), String>(())
//! ```

use crate::field::FieldBuf;
use crate::message::Message;
use crate::{Rewrite, Source};

/// A message that a test makes.
#[derive(Debug, Clone, Default)]
pub struct TestMessage {
    /// Offset at the source partition.
    pub offset: u64,
    /// Microseconds since the Unix epoch.
    pub timestamp: u64,
    /// Microseconds since the Unix epoch.
    pub origin_timestamp: u64,
    /// The message id.
    pub id: u128,
    payload: Vec<u8>,
    headers: Vec<u8>,
}

impl TestMessage {
    /// A message with this payload and no header.
    pub fn new(payload: impl Into<Vec<u8>>) -> Self {
        Self {
            payload: payload.into(),
            ..Self::default()
        }
    }

    /// Adds a header.
    ///
    /// # Panics
    /// When key or value do not have 1 to 255 bytes.
    #[must_use]
    pub fn header(mut self, key: impl Into<FieldBuf>, value: impl Into<FieldBuf>) -> Self {
        for field in [key.into(), value.into()] {
            let length = u8::try_from(field.bytes.len()).unwrap_or_default();
            assert!(length > 0, "a header field has 1 to 255 bytes");
            self.headers.push(field.kind);
            self.headers.extend(u32::from(length).to_le_bytes());
            self.headers.extend(field.bytes);
        }
        self
    }

    /// Adds bytes after the headers as they are, readable or not.
    #[must_use]
    pub fn raw_headers(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.headers.extend_from_slice(bytes.as_ref());
        self
    }

    /// The message as the handler gets it.
    pub fn as_message(&self) -> Message<'_> {
        Message {
            offset: self.offset,
            timestamp: self.timestamp,
            origin_timestamp: self.origin_timestamp,
            id: self.id,
            payload: &self.payload,
            headers: &self.headers,
        }
    }
}

/// A source partition for tests.
pub fn source() -> Source {
    Source {
        cluster: "eu".to_owned(),
        stream: "shop".to_owned(),
        topic: "orders".to_owned(),
        partition: 0,
    }
}

/// The payload that a rewrite sets, if it sets one.
pub fn payload_of(rewrite: &Rewrite) -> Option<&[u8]> {
    rewrite.payload.as_deref()
}
