//! Kinds of JSON values.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

/// A kind of JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Every value.
    Any,
    /// `[...]`
    Array,
    /// `true` or `false`
    Boolean,
    /// A number without a fraction; `2.0` is one.
    Integer,
    /// `null`
    Null,
    /// Any number.
    Number,
    /// `{...}`
    Object,
    /// `"..."`
    String,
}

impl Kind {
    /// The narrowest kind of a value.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) => match number.as_f64() {
                Some(float) if number.is_f64() && float.fract() != 0.0 => Self::Number,
                _ => Self::Integer,
            },
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }

    fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Any => true,
            Self::Number => value.is_number(),
            kind => kind == Self::of(value),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Any => "anything",
            Self::Array => "an array",
            Self::Boolean => "a boolean",
            Self::Integer => "an integer",
            Self::Null => "null",
            Self::Number => "a number",
            Self::Object => "an object",
            Self::String => "a string",
        })
    }
}

/// The kinds that a field may have.
#[derive(Debug, Clone, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a kind or a list of kinds: any, array, boolean, integer, null, number, object, string"
)]
pub enum Kinds {
    /// One of them.
    One(Kind),
    /// Any of these.
    Several(Vec<Kind>),
}

impl Kinds {
    fn list(&self) -> &[Kind] {
        match self {
            Self::One(kind) => std::slice::from_ref(kind),
            Self::Several(kinds) => kinds,
        }
    }

    /// Whether no value has one of them.
    pub fn is_empty(&self) -> bool {
        self.list().is_empty()
    }

    /// Whether the value has one of them.
    pub fn accept(&self, value: &Value) -> bool {
        self.list().iter().any(|kind| kind.accepts(value))
    }
}

impl fmt::Display for Kinds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, kind) in self.list().iter().enumerate() {
            let separator = if index == 0 { "" } else { " or " };
            write!(formatter, "{separator}{kind}")?;
        }
        Ok(())
    }
}
