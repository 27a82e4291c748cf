//! Messages as a guest reads them.

use crate::field::Field;

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
        self.headers()
            .find(|header| header.key == Field::Text(key))
            .map(|header| header.value)
    }

    /// Whether the header bytes parse to their end. Where they do not, the headers before that are still given.
    pub fn headers_readable(&self) -> bool {
        let mut headers = self.headers();
        headers.by_ref().for_each(drop);
        headers.rest.is_empty()
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
        let (key, rest) = field(self.rest)?;
        let (value, rest) = field(rest)?;
        self.rest = rest;
        Some(Header { key, value })
    }
}

/// Kind (u8), length (u32, little-endian), bytes.
fn field(bytes: &[u8]) -> Option<(Field<'_>, &[u8])> {
    let (&kind, rest) = bytes.split_first()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    if kind == 0 || length == 0 || length > 255 {
        return None;
    }
    let (bytes, rest) = rest.split_at_checked(length)?;
    Some((Field::decode(kind, bytes), rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
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
    }
}
