//! Decoded values: text, any value, attribute. Resources are made of these; items stay in wire form.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;

use super::wire::{MAX_DEPTH, Value, Writer, fields};

/// Text as it came: UTF-8 in practice, but the reference passes on any bytes, so any bytes are kept.
/// Cloning shares.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Bytes);

impl Text {
    /// Text that lives as long as the program.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Self {
        Self(Bytes::from_static(text.as_bytes()))
    }

    /// The text, with what is not UTF-8 replaced.
    #[must_use]
    pub fn to_str(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }

    /// The bytes as they are.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// No text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<Bytes> for Text {
    fn from(text: Bytes) -> Self {
        Self(text)
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.to_str())
    }
}

impl fmt::Display for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.to_str())
    }
}

/// The [levels](AnyValue::levels) that a value may have wherever it stands: in the innermost place, an attribute of an
/// exemplar, eight messages are around it.
pub const DEEPEST_VALUE: usize = MAX_DEPTH - OUTERMOST;

/// The messages around the value of an exemplar's attribute, and the value's own.
pub(super) const OUTERMOST: usize = 8;

/// The value of an attribute (`AnyValue`).
#[derive(Debug, Clone, Default, PartialEq)]
pub enum AnyValue {
    /// No value at all; not the same as an empty text.
    #[default]
    Empty,
    /// `stringValue`.
    String(Text),
    /// `boolValue`.
    Bool(bool),
    /// `intValue`.
    Int(i64),
    /// `doubleValue`.
    Double(f64),
    /// `arrayValue`.
    Array(Vec<AnyValue>),
    /// `kvlistValue`.
    Map(Vec<KeyValue>),
    /// `bytesValue`.
    Bytes(Bytes),
}

/// An attribute. Keys may repeat where a sender repeats them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeyValue {
    /// The name.
    pub key: Text,
    /// The value.
    pub value: AnyValue,
}

impl KeyValue {
    /// An attribute of these.
    pub fn new(key: impl Into<Text>, value: impl Into<AnyValue>) -> Self {
        Self { key: key.into(), value: value.into() }
    }

    /// Reads a validated `KeyValue` message; `whole` is what the slice was cut from.
    pub(super) fn decode(whole: &Bytes, message: &[u8]) -> Self {
        let mut attribute = Self::default();
        for (number, value) in fields(message) {
            match number {
                1 => attribute.key = Text(slice(whole, value)),
                2 => attribute.value.merge(whole, value.bytes()),
                _ => {}
            }
        }
        attribute
    }

    /// About how many bytes it takes in wire form.
    pub(super) fn size(&self) -> usize {
        self.key.as_bytes().len() + self.value.size() + 8
    }

    /// Writes the content of a `KeyValue` message.
    pub fn encode(&self, writer: &mut Writer) {
        writer.bytes_field(1, self.key.as_bytes());
        if self.value != AnyValue::Empty {
            writer.message_field(2, |inner| self.value.encode(inner));
        }
    }
}

impl AnyValue {
    /// Reads a validated `AnyValue` message.
    #[must_use]
    pub fn decode(message: &Bytes) -> Self {
        let mut decoded = Self::Empty;
        decoded.merge(message, message);
        decoded
    }

    /// The last value of the message replaces the former one; a message without a value changes nothing.
    pub(super) fn merge(&mut self, whole: &Bytes, message: &[u8]) {
        for (number, value) in fields(message) {
            *self = match number {
                1 => Self::String(Text(slice(whole, value))),
                2 => Self::Bool(value.bits() != 0),
                3 => Self::Int(value.int64()),
                4 => Self::Double(value.double()),
                5 => Self::decode_array(whole, value.bytes()),
                6 => Self::decode_map(whole, value.bytes()),
                7 => Self::Bytes(slice(whole, value)),
                _ => continue,
            };
        }
    }

    /// The values of an `ArrayValue` message.
    pub(super) fn decode_array(whole: &Bytes, message: &[u8]) -> Self {
        let values = fields(message).filter(|(number, _)| *number == 1).map(|(_, element)| {
            let mut decoded = Self::Empty;
            decoded.merge(whole, element.bytes());
            decoded
        });
        Self::Array(values.collect())
    }

    /// The attributes of a `KeyValueList` message.
    pub(super) fn decode_map(whole: &Bytes, message: &[u8]) -> Self {
        let attributes = fields(message).filter(|(number, _)| *number == 1);
        Self::Map(attributes.map(|(_, element)| KeyValue::decode(whole, element.bytes())).collect())
    }

    /// How many messages stand in each other below its own in wire form.
    #[must_use]
    pub fn levels(&self) -> usize {
        match self {
            Self::Array(values) => 1 + values.iter().map(|value| 1 + value.levels()).max().unwrap_or(0),
            Self::Map(entries) => 1 + entries.iter().map(|entry| 2 + entry.value.levels()).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// About how many bytes it takes in wire form.
    fn size(&self) -> usize {
        match self {
            Self::Empty | Self::Bool(_) | Self::Int(_) | Self::Double(_) => 10,
            Self::String(text) => text.as_bytes().len() + 4,
            Self::Bytes(bytes) => bytes.len() + 4,
            Self::Array(values) => values.iter().map(|value| value.size() + 4).sum(),
            Self::Map(attributes) => attributes.iter().map(|attribute| attribute.size() + 4).sum(),
        }
    }

    /// Writes the content of an `AnyValue` message.
    pub fn encode(&self, writer: &mut Writer) {
        match self {
            Self::Empty => {}
            Self::String(text) => writer.bytes_field(1, text.as_bytes()),
            Self::Bool(value) => writer.bool_field(2, *value),
            Self::Int(value) => writer.int64_field(3, *value),
            Self::Double(value) => writer.double_field(4, *value),
            Self::Array(values) => writer.message_field(5, |inner| {
                for value in values {
                    inner.message_field(1, |inner| value.encode(inner));
                }
            }),
            Self::Map(attributes) => writer.message_field(6, |inner| {
                for attribute in attributes {
                    inner.message_field(1, |inner| attribute.encode(inner));
                }
            }),
            Self::Bytes(bytes) => writer.bytes_field(7, bytes),
        }
    }
}

/// A shared slice of `whole`; a copy if the value was cut from something else (merged bytes).
pub(super) fn slice(whole: &Bytes, value: Value<'_>) -> Bytes {
    let bytes = value.bytes();
    let inside = whole.as_ptr_range().contains(&bytes.as_ptr());
    if inside { whole.slice_ref(bytes) } else { Bytes::copy_from_slice(bytes) }
}

impl From<&str> for AnyValue {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<String> for AnyValue {
    fn from(text: String) -> Self {
        Self::String(text.into())
    }
}

impl From<Text> for AnyValue {
    fn from(text: Text) -> Self {
        Self::String(text)
    }
}

impl From<bool> for AnyValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for AnyValue {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f64> for AnyValue {
    fn from(value: f64) -> Self {
        Self::Double(value)
    }
}
