//! Keys and values of user headers.

/// Iggy's kind code of text.
pub(crate) const TEXT: u8 = 2;

/// A key or a value as it is in the message. Iggy carries 1 to 255 bytes in each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Field<'a> {
    /// Opaque bytes.
    Raw(&'a [u8]),
    /// Text.
    Text(&'a str),
    /// A truth value.
    Bool(bool),
    /// A signed 8-bit integer.
    Int8(i8),
    /// A signed 16-bit integer.
    Int16(i16),
    /// A signed 32-bit integer.
    Int32(i32),
    /// A signed 64-bit integer.
    Int64(i64),
    /// A signed 128-bit integer.
    Int128(i128),
    /// An unsigned 8-bit integer.
    Uint8(u8),
    /// An unsigned 16-bit integer.
    Uint16(u16),
    /// An unsigned 32-bit integer.
    Uint32(u32),
    /// An unsigned 64-bit integer.
    Uint64(u64),
    /// An unsigned 128-bit integer.
    Uint128(u128),
    /// A 32-bit floating point number.
    Float32(f32),
    /// A 64-bit floating point number.
    Float64(f64),
    /// Bytes that do not decode as their kind, or a kind newer than this contract, with Iggy's kind code.
    Other(u8, &'a [u8]),
}

impl<'a> Field<'a> {
    pub(crate) fn decode(kind: u8, bytes: &'a [u8]) -> Self {
        Self::typed(kind, bytes).unwrap_or(Self::Other(kind, bytes))
    }

    fn typed(kind: u8, bytes: &'a [u8]) -> Option<Self> {
        Some(match kind {
            1 => Self::Raw(bytes),
            TEXT => Self::Text(std::str::from_utf8(bytes).ok()?),
            3 => match bytes {
                [0] => Self::Bool(false),
                [1] => Self::Bool(true),
                _ => return None,
            },
            4 => Self::Int8(i8::from_le_bytes(bytes.try_into().ok()?)),
            5 => Self::Int16(i16::from_le_bytes(bytes.try_into().ok()?)),
            6 => Self::Int32(i32::from_le_bytes(bytes.try_into().ok()?)),
            7 => Self::Int64(i64::from_le_bytes(bytes.try_into().ok()?)),
            8 => Self::Int128(i128::from_le_bytes(bytes.try_into().ok()?)),
            9 => Self::Uint8(u8::from_le_bytes(bytes.try_into().ok()?)),
            10 => Self::Uint16(u16::from_le_bytes(bytes.try_into().ok()?)),
            11 => Self::Uint32(u32::from_le_bytes(bytes.try_into().ok()?)),
            12 => Self::Uint64(u64::from_le_bytes(bytes.try_into().ok()?)),
            13 => Self::Uint128(u128::from_le_bytes(bytes.try_into().ok()?)),
            14 => Self::Float32(f32::from_le_bytes(bytes.try_into().ok()?)),
            15 => Self::Float64(f64::from_le_bytes(bytes.try_into().ok()?)),
            _ => return None,
        })
    }

    /// The text, if it is text.
    pub const fn as_str(&self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The bytes, if they are opaque.
    pub const fn as_bytes(&self) -> Option<&'a [u8]> {
        match self {
            Self::Raw(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The truth value, if it is one.
    pub const fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The integer, whatever its width, if it is one and fits.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_i128()?.try_into().ok()
    }

    /// The integer, whatever its width, if it is one and fits.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_i128()?.try_into().ok()
    }

    /// The integer, whatever its width, if it is one and fits.
    pub fn as_i128(&self) -> Option<i128> {
        match *self {
            Self::Int8(value) => Some(value.into()),
            Self::Int16(value) => Some(value.into()),
            Self::Int32(value) => Some(value.into()),
            Self::Int64(value) => Some(value.into()),
            Self::Int128(value) => Some(value),
            Self::Uint8(value) => Some(value.into()),
            Self::Uint16(value) => Some(value.into()),
            Self::Uint32(value) => Some(value.into()),
            Self::Uint64(value) => Some(value.into()),
            Self::Uint128(value) => i128::try_from(value).ok(),
            _ => None,
        }
    }

    /// The floating point number, if it is one.
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Self::Float32(value) => Some(value.into()),
            Self::Float64(value) => Some(value),
            _ => None,
        }
    }
}

/// A key or a value for a header that a guest writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldBuf {
    pub(crate) kind: u8,
    pub(crate) bytes: Vec<u8>,
}

impl FieldBuf {
    /// A field of any kind, by Iggy's kind code. The host rejects the message where the bytes are not 1 to 255.
    pub fn new(kind: u8, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            kind,
            bytes: bytes.into(),
        }
    }

    /// The field as it will be read.
    pub fn as_field(&self) -> Field<'_> {
        Field::decode(self.kind, &self.bytes)
    }
}

impl From<&str> for FieldBuf {
    fn from(text: &str) -> Self {
        Self::new(TEXT, text)
    }
}

impl From<String> for FieldBuf {
    fn from(text: String) -> Self {
        Self::new(TEXT, text)
    }
}

impl From<&String> for FieldBuf {
    fn from(text: &String) -> Self {
        Self::new(TEXT, text.as_str())
    }
}

impl From<&[u8]> for FieldBuf {
    fn from(bytes: &[u8]) -> Self {
        Self::new(1, bytes)
    }
}

impl From<Vec<u8>> for FieldBuf {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(1, bytes)
    }
}

impl From<bool> for FieldBuf {
    fn from(value: bool) -> Self {
        Self::new(3, [u8::from(value)])
    }
}

macro_rules! from_number {
    ($($kind:literal $number:ty),*) => {
        $(impl From<$number> for FieldBuf {
            fn from(value: $number) -> Self {
                Self::new($kind, value.to_le_bytes())
            }
        })*
    };
}

from_number!(
    4 i8, 5 i16, 6 i32, 7 i64, 8 i128, 9 u8, 10 u16, 11 u32, 12 u64, 13 u128, 14 f32, 15 f64
);

/// A field of another message, or of this one, byte for byte.
impl From<Field<'_>> for FieldBuf {
    fn from(field: Field<'_>) -> Self {
        match field {
            Field::Raw(bytes) => bytes.into(),
            Field::Text(text) => text.into(),
            Field::Bool(value) => value.into(),
            Field::Int8(value) => value.into(),
            Field::Int16(value) => value.into(),
            Field::Int32(value) => value.into(),
            Field::Int64(value) => value.into(),
            Field::Int128(value) => value.into(),
            Field::Uint8(value) => value.into(),
            Field::Uint16(value) => value.into(),
            Field::Uint32(value) => value.into(),
            Field::Uint64(value) => value.into(),
            Field::Uint128(value) => value.into(),
            Field::Float32(value) => value.into(),
            Field::Float64(value) => value.into(),
            Field::Other(kind, bytes) => Self::new(kind, bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn integers_are_given_where_they_fit() {
        assert_eq!(Field::Uint8(7).as_i64(), Some(7));
        assert_eq!(Field::Int8(-7).as_u64(), None);
        assert_eq!(Field::Uint64(u64::MAX).as_u64(), Some(u64::MAX));
        assert_eq!(Field::Uint64(u64::MAX).as_i64(), None);
        assert_eq!(Field::Uint128(u128::MAX).as_i128(), None);
        assert_eq!(Field::Text("7").as_i64(), None);
    }

    proptest! {
        #[test]
        fn a_field_that_is_read_and_written_keeps_its_bytes(
            kind in 1_u8..=255,
            bytes in prop::collection::vec(any::<u8>(), 1..=255),
        ) {
            let copy = FieldBuf::from(Field::decode(kind, &bytes));
            prop_assert_eq!(copy, FieldBuf::new(kind, bytes));
        }
    }
}
