//! Messages as a guest reads them.

use crate::field::{Field, TEXT};

/// One message. Nothing is copied until it is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    pub(crate) offset: u64,
    pub(crate) timestamp: u64,
    pub(crate) origin_timestamp: u64,
    pub(crate) id: u128,
    pub(crate) payload: &'a [u8],
    pub(crate) headers: &'a [u8],
}

impl<'a> Message<'a> {
    /// Offset at the source partition.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Time of appending at the source, in microseconds since the Unix epoch.
    pub const fn timestamp(&self) -> u64 {
        self.timestamp
    }

    /// Time of production as the producer gave it, in microseconds since the Unix epoch.
    pub const fn origin_timestamp(&self) -> u64 {
        self.origin_timestamp
    }

    /// The message id; 0 when the producer gave none.
    pub const fn id(&self) -> u128 {
        self.id
    }

    /// The payload; empty when the guest's inputs leave payloads out.
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The user headers in their order; none when the guest's inputs leave headers out.
    pub const fn headers(&self) -> Headers<'a> {
        Headers { rest: self.headers }
    }

    /// The value of the first header with this text as its key.
    pub fn header(&self, key: &str) -> Option<Field<'a>> {
        let mut rest = self.headers;
        loop {
            let (header, after) = RawHeader::split(rest)?;
            if header.key == (TEXT, key.as_bytes()) {
                return Some(header.value());
            }
            rest = after;
        }
    }

    /// Whether the header bytes parse to their end. Where they do not, the headers before that are still given.
    pub fn headers_readable(&self) -> bool {
        let mut rest = self.headers;
        while let Some((_, after)) = RawHeader::split(rest) {
            rest = after;
        }
        rest.is_empty()
    }
}

/// One user header.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Header<'a> {
    /// Its key.
    pub key: Field<'a>,
    /// Its value.
    pub value: Field<'a>,
}

/// The user headers of a message, parsed as they are asked for. Ends at the first byte that is not a header.
#[derive(Debug, Clone)]
pub struct Headers<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Headers<'a> {
    type Item = Header<'a>;

    fn next(&mut self) -> Option<Header<'a>> {
        let (header, rest) = RawHeader::split(self.rest)?;
        self.rest = rest;
        Some(Header {
            key: Field::decode(header.key.0, header.key.1),
            value: header.value(),
        })
    }
}

/// A kind code and the bytes, not decoded yet.
type RawField<'a> = (u8, &'a [u8]);

/// A header that is not decoded yet.
struct RawHeader<'a> {
    key: RawField<'a>,
    value: RawField<'a>,
}

impl<'a> RawHeader<'a> {
    /// The header at the front, and what comes after it.
    fn split(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (key, rest) = split_field(bytes)?;
        let (value, rest) = split_field(rest)?;
        Some((Self { key, value }, rest))
    }

    fn value(&self) -> Field<'a> {
        Field::decode(self.value.0, self.value.1)
    }
}

/// Kind (u8), length (u32, little-endian), bytes.
fn split_field(bytes: &[u8]) -> Option<(RawField<'_>, &[u8])> {
    let (&kind, rest) = bytes.split_first()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    if kind == 0 || length == 0 || length > 255 {
        return None;
    }
    let (bytes, rest) = rest.split_at_checked(length)?;
    Some(((kind, bytes), rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::FieldBuf;
    use crate::testing::TestMessage;

    #[test]
    fn headers_of_every_kind_are_read() {
        let message = TestMessage::new("")
            .header("text", "eu")
            .header("flag", true)
            .header("count", -3_i32)
            .header("big", u128::MAX)
            .header("ratio", 0.5_f64);
        let message = message.as_message();
        assert_eq!(message.header("text").and_then(|f| f.as_str()), Some("eu"));
        assert_eq!(message.header("flag").and_then(|f| f.as_bool()), Some(true));
        assert_eq!(message.header("count").and_then(|f| f.as_i128()), Some(-3));
        assert_eq!(message.header("big"), Some(Field::Uint128(u128::MAX)));
        assert_eq!(message.header("ratio").and_then(|f| f.as_f64()), Some(0.5));
        assert_eq!(message.header("none"), None);
        assert!(message.headers_readable());
    }

    #[test]
    fn the_first_of_equal_keys_is_found_and_keys_of_other_kinds_are_not() {
        let message = TestMessage::new("")
            .header(&b"key"[..], "bytes")
            .header("key", "first")
            .header("key", "second");
        let message = message.as_message();
        assert_eq!(message.header("key"), Some(Field::Text("first")));
        assert_eq!(message.headers().count(), 3);
    }

    #[test]
    fn headers_before_the_unreadable_bytes_are_given() {
        let message = TestMessage::new("").header("a", "b").raw_headers([2, 9]);
        let message = message.as_message();
        assert!(!message.headers_readable());
        assert_eq!(message.headers().count(), 1);
        assert_eq!(message.header("a"), Some(Field::Text("b")));
        assert_eq!(message.header("c"), None);
    }

    #[test]
    fn bytes_that_are_no_value_of_their_kind_stay_bytes() {
        assert_eq!(Field::decode(2, &[0xff]), Field::Other(2, &[0xff]));
        assert_eq!(Field::decode(6, &[1, 2, 3]), Field::Other(6, &[1, 2, 3]));
        assert_eq!(Field::decode(3, &[2]), Field::Other(3, &[2]));
        assert_eq!(Field::decode(99, &[1]), Field::Other(99, &[1]));
    }

    proptest! {
        #[test]
        fn hostile_header_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let message = Message {
                offset: 0,
                timestamp: 0,
                origin_timestamp: 0,
                id: 0,
                payload: &[],
                headers: &bytes,
            };
            prop_assert!(message.headers().count() <= bytes.len());
            let _ = (message.header("a"), message.headers_readable());
        }

        #[test]
        fn looking_up_and_walking_agree(
            fields in prop::collection::vec((1_u8..20, prop::collection::vec(97_u8..100, 1..3)), 0..12),
            key in "[a-c]{1,2}",
            tail in prop::collection::vec(any::<u8>(), 0..8),
        ) {
            let mut message = TestMessage::new("");
            for pair in fields.chunks_exact(2) {
                let [key, value] = pair else { unreachable!() };
                message = message.header(
                    FieldBuf::new(key.0, key.1.clone()),
                    FieldBuf::new(value.0, value.1.clone()),
                );
            }
            let message = message.raw_headers(tail);
            let message = message.as_message();
            let walked = message.headers().find(|header| header.key == Field::Text(&key));
            // Formatted, so that a NaN equals itself.
            prop_assert_eq!(
                format!("{:?}", message.header(&key)),
                format!("{:?}", walked.map(|header| header.value))
            );
        }
    }
}
