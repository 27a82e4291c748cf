//! User headers in wire form: reading them, and changing single ones while the rest stays as it is.

use iggy_binary_protocol::primitives::user_headers::{
    WireUserHeaderIterator, validate_user_headers,
};

/// Longest key or value, in bytes.
pub const FIELD_LIMIT: usize = 255;

/// Kind code of text.
pub const KIND_TEXT: u8 = 2;

/// Kind code of an unsigned 32-bit integer.
pub const KIND_UINT32: u8 = 11;

/// Kind code of an unsigned 64-bit integer.
pub const KIND_UINT64: u8 = 12;

/// A key or a value: Iggy's kind code and 1 to 255 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// Iggy's code of the type.
    pub kind: u8,
    /// The value in wire form.
    pub bytes: &'a [u8],
}

impl<'a> Field<'a> {
    /// A text field. Longer text than Iggy carries is cut at a character boundary.
    pub fn text(text: &'a str) -> Self {
        Self {
            kind: KIND_TEXT,
            bytes: &text.as_bytes()[..text.floor_char_boundary(FIELD_LIMIT)],
        }
    }
}

/// The header bytes of a message do not parse.
#[derive(Debug, thiserror::Error)]
#[error("the user headers do not parse: {0}")]
pub struct Unreadable(String);

/// Reads every header.
///
/// # Errors
/// [`Unreadable`] when the bytes are not a whole sequence of headers.
pub fn parse(bytes: &[u8]) -> Result<Vec<(Field<'_>, Field<'_>)>, Unreadable> {
    validate_user_headers(bytes).map_err(|error| Unreadable(error.to_string()))?;
    Ok(WireUserHeaderIterator::new(bytes)
        .map(|entry| {
            let key = Field {
                kind: entry.key_kind.0,
                bytes: entry.key,
            };
            let value = Field {
                kind: entry.value_kind.0,
                bytes: entry.value,
            };
            (key, value)
        })
        .collect())
}

/// The wire form of `headers`.
pub fn encode(headers: &[(Field<'_>, Field<'_>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (key, value) in headers {
        push(&mut bytes, *key);
        push(&mut bytes, *value);
    }
    bytes
}

fn push(bytes: &mut Vec<u8>, field: Field<'_>) {
    bytes.push(field.kind);
    let length = u32::try_from(field.bytes.len()).expect("fields have at most 255 bytes");
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(field.bytes);
}

/// Gives the first header with this key the value and removes the others, or appends the header.
pub fn set<'a>(headers: &mut Vec<(Field<'a>, Field<'a>)>, key: Field<'a>, value: Field<'a>) {
    let mut found = false;
    headers.retain_mut(|header| {
        if header.0 != key {
            return true;
        }
        header.1 = value;
        !std::mem::replace(&mut found, true)
    });
    if !found {
        headers.push((key, value));
    }
}

/// Removes every header with this key.
pub fn remove(headers: &mut Vec<(Field<'_>, Field<'_>)>, key: Field<'_>) {
    headers.retain(|header| header.0 != key);
}

/// Gives every header with the key `from` the key `to`.
pub fn rename<'a>(headers: &mut [(Field<'a>, Field<'a>)], from: Field<'_>, to: Field<'a>) {
    for header in headers {
        if header.0 == from {
            header.0 = to;
        }
    }
}

/// Keys of the headers that say which source message a dead letter is, in their order, and of which earlier letter's
/// replay, if of any.
pub const LETTER_ORIGIN: [&str; 7] = [
    "sluice-link",
    "sluice-cluster",
    "sluice-stream",
    "sluice-topic",
    "sluice-partition",
    "sluice-offset",
    "sluice-replayed",
];

/// The wire form of the headers of [`LETTER_ORIGIN`]; none for a message that is no dead letter.
pub fn letter_origin(bytes: &[u8]) -> Option<Vec<u8>> {
    // Most messages have no such header at all, and need no parsing to see that.
    let needle = LETTER_ORIGIN[0].as_bytes();
    bytes
        .windows(needle.len())
        .find(|window| *window == needle)?;
    let headers = parse(bytes).ok()?;
    let is_origin = |key: &Field<'_>| LETTER_ORIGIN.iter().any(|name| *key == Field::text(name));
    let origin: Vec<_> = headers
        .into_iter()
        .filter(|(key, _)| is_origin(key))
        .collect();
    (!origin.is_empty()).then(|| encode(&origin))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(text: &str) -> Field<'_> {
        Field::text(text)
    }

    #[test]
    fn headers_survive_a_round_trip_byte_for_byte() {
        let bytes = encode(&[(text("a"), text("1")), (text("a"), text("2"))]);
        assert_eq!(encode(&parse(&bytes).expect("valid")), bytes);
    }

    #[test]
    fn set_keeps_the_place_of_the_first_and_removes_the_rest() {
        let mut headers = vec![
            (text("a"), text("1")),
            (text("b"), text("2")),
            (text("a"), text("3")),
        ];
        set(&mut headers, text("a"), text("9"));
        assert_eq!(
            headers,
            vec![(text("a"), text("9")), (text("b"), text("2"))]
        );
        set(&mut headers, text("c"), text("4"));
        rename(&mut headers, text("b"), text("d"));
        remove(&mut headers, text("a"));
        assert_eq!(
            headers,
            vec![(text("d"), text("2")), (text("c"), text("4"))]
        );
    }

    #[test]
    fn a_key_of_another_kind_is_another_key() {
        let raw = Field {
            kind: 1,
            bytes: b"a",
        };
        let mut headers = vec![(raw, text("1"))];
        remove(&mut headers, text("a"));
        assert_eq!(headers.len(), 1);
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        let long = "é".repeat(200);
        assert_eq!(text(&long).bytes.len(), 254);
    }

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(headers) = parse(&bytes) {
                prop_assert_eq!(encode(&headers), bytes);
            }
        }
    }
}
