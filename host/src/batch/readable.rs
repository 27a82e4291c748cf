//! Headers and bytes as people read and write them.

use serde::{Deserialize, Serialize};

use super::headers::{FIELD_LIMIT, Field, KIND_TEXT};

/// Iggy's names of the kinds, by their code less one.
const KINDS: [&str; 15] = [
    "raw", "text", "bool", "int8", "int16", "int32", "int64", "int128", "uint8", "uint16",
    "uint32", "uint64", "uint128", "float32", "float64",
];

/// A user header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Header {
    /// Its key.
    pub key: Value,
    /// Its value.
    pub value: Value,
}

/// The key or the value of a user header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Value {
    /// The name of its kind, such as `text` or `uint32`; `kind N` where it has none.
    pub kind: String,
    /// A number, a text, `true` or `false`; `0x` and hexadecimal digits for raw bytes and for what is not of its kind.
    pub value: String,
}

impl From<(Field<'_>, Field<'_>)> for Header {
    fn from((key, value): (Field<'_>, Field<'_>)) -> Self {
        Self {
            key: key.into(),
            value: value.into(),
        }
    }
}

impl From<Field<'_>> for Value {
    fn from(field: Field<'_>) -> Self {
        let name = usize::from(field.kind)
            .checked_sub(1)
            .and_then(|index| KINDS.get(index));
        let kind = name.map_or_else(|| format!("kind {}", field.kind), ToString::to_string);
        let value = decode(field).unwrap_or_else(|| format!("0x{}", hex(field.bytes)));
        Self { kind, value }
    }
}

impl Value {
    /// A text.
    pub fn text(text: &str) -> Self {
        Field {
            kind: KIND_TEXT,
            bytes: text.as_bytes(),
        }
        .into()
    }

    /// The kind code and the wire bytes.
    ///
    /// # Errors
    /// What is wrong with the kind or the value.
    pub fn encode(&self) -> Result<(u8, Vec<u8>), String> {
        let kind = match KINDS.iter().position(|name| *name == self.kind) {
            Some(index) => u8::try_from(index + 1).ok(),
            None => self
                .kind
                .strip_prefix("kind ")
                .and_then(|code| code.parse().ok())
                .filter(|code| *code != 0),
        };
        let kind = kind.ok_or_else(|| {
            format!(
                "there is no kind `{}` of header; there are {} and `kind N`",
                self.kind,
                KINDS.join(", ")
            )
        })?;
        let bytes = encode(kind, &self.value)
            .or_else(|| unhex(self.value.strip_prefix("0x")?))
            .ok_or_else(|| format!("`{}` is no value of kind {}", self.value, self.kind))?;
        if !(1..=FIELD_LIMIT).contains(&bytes.len()) {
            return Err(format!(
                "a header field has {} bytes; Iggy carries 1 to {FIELD_LIMIT}",
                bytes.len()
            ));
        }
        Ok((kind, bytes))
    }
}

/// A field's value by its kind; none for raw bytes, and for bytes that are not of their kind.
fn decode(field: Field<'_>) -> Option<String> {
    let bytes = field.bytes;
    Some(match field.kind {
        2 => std::str::from_utf8(bytes).ok()?.to_owned(),
        3 => match bytes {
            [0] => "false".to_owned(),
            [1] => "true".to_owned(),
            _ => return None,
        },
        4 => i8::from_le_bytes(bytes.try_into().ok()?).to_string(),
        5 => i16::from_le_bytes(bytes.try_into().ok()?).to_string(),
        6 => i32::from_le_bytes(bytes.try_into().ok()?).to_string(),
        7 => i64::from_le_bytes(bytes.try_into().ok()?).to_string(),
        8 => i128::from_le_bytes(bytes.try_into().ok()?).to_string(),
        9 => u8::from_le_bytes(bytes.try_into().ok()?).to_string(),
        10 => u16::from_le_bytes(bytes.try_into().ok()?).to_string(),
        11 => u32::from_le_bytes(bytes.try_into().ok()?).to_string(),
        12 => u64::from_le_bytes(bytes.try_into().ok()?).to_string(),
        13 => u128::from_le_bytes(bytes.try_into().ok()?).to_string(),
        14 => f32::from_le_bytes(bytes.try_into().ok()?).to_string(),
        15 => f64::from_le_bytes(bytes.try_into().ok()?).to_string(),
        _ => return None,
    })
}

/// The bytes of what [`decode`] wrote.
fn encode(kind: u8, value: &str) -> Option<Vec<u8>> {
    Some(match kind {
        2 => value.as_bytes().to_vec(),
        3 => vec![u8::from(value.parse::<bool>().ok()?)],
        4 => value.parse::<i8>().ok()?.to_le_bytes().to_vec(),
        5 => value.parse::<i16>().ok()?.to_le_bytes().to_vec(),
        6 => value.parse::<i32>().ok()?.to_le_bytes().to_vec(),
        7 => value.parse::<i64>().ok()?.to_le_bytes().to_vec(),
        8 => value.parse::<i128>().ok()?.to_le_bytes().to_vec(),
        9 => value.parse::<u8>().ok()?.to_le_bytes().to_vec(),
        10 => value.parse::<u16>().ok()?.to_le_bytes().to_vec(),
        11 => value.parse::<u32>().ok()?.to_le_bytes().to_vec(),
        12 => value.parse::<u64>().ok()?.to_le_bytes().to_vec(),
        13 => value.parse::<u128>().ok()?.to_le_bytes().to_vec(),
        14 => value.parse::<f32>().ok()?.to_le_bytes().to_vec(),
        15 => value.parse::<f64>().ok()?.to_le_bytes().to_vec(),
        _ => return None,
    })
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// The bytes of a hexadecimal text, if it is one.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    pairs
        .iter()
        .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_read_is_written_back(
            kind in 1_u8..=20,
            bytes in prop::collection::vec(any::<u8>(), 1..=40),
        ) {
            let read = Value::from(Field { kind, bytes: &bytes });
            let (kind_again, bytes_again) = read.encode().expect("it was a field");
            prop_assert_eq!(kind_again, kind);
            // Bytes that are no text are written as a text of digits, and not every NaN with its bits.
            if kind != KIND_TEXT && kind < 14 {
                prop_assert_eq!(bytes_again, bytes);
            }
        }
    }

    #[test]
    fn what_is_no_field_is_refused() {
        let of = |kind: &str, value: &str| Value {
            kind: kind.to_owned(),
            value: value.to_owned(),
        };
        for (value, says) in [
            (of("int33", "1"), "no kind `int33`"),
            (of("kind 0", "0x00"), "no kind `kind 0`"),
            (of("int8", "128"), "`128` is no value of kind int8"),
            (of("raw", "0x1"), "`0x1` is no value of kind raw"),
            (of("raw", "0xgg"), "is no value"),
            (of("text", ""), "has 0 bytes"),
        ] {
            let error = value.encode().expect_err("refused");
            assert!(error.contains(says), "{error}");
        }
    }
}
