//! Header fields between the wire and the contract's typed form.

use super::bindings::types::{Field, Wide};
use crate::batch::headers;

/// A field as guests see it. Bytes that do not decode as their kind, and kinds that the contract does not know,
/// become `other`, which goes back as it came.
pub fn to_guest(field: headers::Field<'_>) -> Field {
    decode(field).unwrap_or_else(|| Field::Other((field.kind, field.bytes.to_vec())))
}

fn decode(field: headers::Field<'_>) -> Option<Field> {
    let bytes = field.bytes;
    Some(match field.kind {
        1 => Field::Raw(bytes.to_vec()),
        2 => Field::Text(std::str::from_utf8(bytes).ok()?.to_owned()),
        3 => match bytes {
            [0] => Field::Boolean(false),
            [1] => Field::Boolean(true),
            _ => return None,
        },
        4 => Field::Int8(i8::from_le_bytes(bytes.try_into().ok()?)),
        5 => Field::Int16(i16::from_le_bytes(bytes.try_into().ok()?)),
        6 => Field::Int32(i32::from_le_bytes(bytes.try_into().ok()?)),
        7 => Field::Int64(i64::from_le_bytes(bytes.try_into().ok()?)),
        8 => Field::Int128(wide(u128::from_le_bytes(bytes.try_into().ok()?))),
        9 => Field::Uint8(u8::from_le_bytes(bytes.try_into().ok()?)),
        10 => Field::Uint16(u16::from_le_bytes(bytes.try_into().ok()?)),
        11 => Field::Uint32(u32::from_le_bytes(bytes.try_into().ok()?)),
        12 => Field::Uint64(u64::from_le_bytes(bytes.try_into().ok()?)),
        13 => Field::Uint128(wide(u128::from_le_bytes(bytes.try_into().ok()?))),
        14 => Field::Float32(f32::from_le_bytes(bytes.try_into().ok()?)),
        15 => Field::Float64(f64::from_le_bytes(bytes.try_into().ok()?)),
        _ => return None,
    })
}

/// The kind code and the wire bytes of a guest's field.
///
/// # Errors
/// A reason for the operator when Iggy cannot carry the field.
pub fn from_guest(field: &Field) -> Result<(u8, Vec<u8>), String> {
    let (kind, bytes) = match field {
        Field::Raw(bytes) => (1, bytes.clone()),
        Field::Text(text) => (2, text.clone().into_bytes()),
        Field::Boolean(value) => (3, vec![u8::from(*value)]),
        Field::Int8(value) => (4, value.to_le_bytes().to_vec()),
        Field::Int16(value) => (5, value.to_le_bytes().to_vec()),
        Field::Int32(value) => (6, value.to_le_bytes().to_vec()),
        Field::Int64(value) => (7, value.to_le_bytes().to_vec()),
        Field::Int128(value) => (8, narrow(*value).to_le_bytes().to_vec()),
        Field::Uint8(value) => (9, value.to_le_bytes().to_vec()),
        Field::Uint16(value) => (10, value.to_le_bytes().to_vec()),
        Field::Uint32(value) => (11, value.to_le_bytes().to_vec()),
        Field::Uint64(value) => (12, value.to_le_bytes().to_vec()),
        Field::Uint128(value) => (13, narrow(*value).to_le_bytes().to_vec()),
        Field::Float32(value) => (14, value.to_le_bytes().to_vec()),
        Field::Float64(value) => (15, value.to_le_bytes().to_vec()),
        Field::Other((kind, bytes)) => (*kind, bytes.clone()),
    };
    if kind == 0 {
        return Err("a header field has the kind 0, which Iggy reserves".to_owned());
    }
    if !(1..=headers::FIELD_LIMIT).contains(&bytes.len()) {
        return Err(format!(
            "a header field has {} bytes; Iggy carries 1 to 255",
            bytes.len()
        ));
    }
    Ok((kind, bytes))
}

const fn wide(value: u128) -> Wide {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the halves are meant to be cut off"
    )]
    Wide {
        low: value as u64,
        high: (value >> 64) as u64,
    }
}

const fn narrow(value: Wide) -> u128 {
    (value.high as u128) << 64 | value.low as u128
}

/// The two halves of a message id.
pub const fn halves(id: u128) -> Wide {
    wide(id)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_field_comes_back_byte_for_byte(
            kind in 1_u8..=255,
            bytes in prop::collection::vec(any::<u8>(), 1..=255),
        ) {
            let field = headers::Field { kind, bytes: &bytes };
            prop_assert_eq!(from_guest(&to_guest(field)), Ok((kind, bytes.clone())));
        }

        #[test]
        fn every_integer_keeps_its_bytes(value: u128) {
            let bytes = value.to_le_bytes();
            for (kind, size) in [(4, 1), (5, 2), (6, 4), (7, 8), (8, 16), (9, 1), (10, 2), (11, 4), (12, 8), (13, 16)] {
                let field = headers::Field { kind, bytes: &bytes[..size] };
                let typed = to_guest(field);
                prop_assert!(!matches!(typed, Field::Other(_)));
                prop_assert_eq!(from_guest(&typed), Ok((kind, bytes[..size].to_vec())));
            }
        }
    }

    #[test]
    fn fields_that_iggy_cannot_carry_are_refused() {
        assert!(from_guest(&Field::Text(String::new())).is_err());
        assert!(from_guest(&Field::Raw(vec![0; 256])).is_err());
        assert!(from_guest(&Field::Other((0, vec![1]))).is_err());
    }
}
