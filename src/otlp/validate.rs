//! The one check of what comes in: after it, every later pass over the bytes is sure to succeed.

use std::fmt;

use super::schema::{Field, FieldKind, KEY_VALUE, Message, Presence};
use super::view::usual_attribute;
use super::wire::{MAX_DEPTH, Reader, Value, WireError};
use crate::diag::counted;

/// Why a request is refused: what is wrong and in which field of which message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    /// From the innermost field outwards.
    path: Vec<&'static str>,
    text: String,
}

impl DecodeError {
    /// An error with its text.
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { path: Vec::new(), text: text.into() }
    }

    /// Bytes that are no message of this type.
    pub(super) fn wire(message: &str, error: WireError) -> Self {
        Self::new(format!("{message}: {error}"))
    }

    /// The same error as seen from the message around: it happened in this field.
    pub(super) fn within(mut self, field: &'static str) -> Self {
        self.path.push(field);
        self
    }
}

impl std::error::Error for DecodeError {}

impl fmt::Display for DecodeError {
    /// `spans.traceId: offset 17: ...`; of a deep path its innermost part.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let innermost = &self.path[..self.path.len().min(8)];
        for (place, field) in innermost.iter().rev().enumerate() {
            write!(formatter, "{}{field}", if place > 0 { "." } else { "" })?;
        }
        write!(formatter, "{}{}", if innermost.is_empty() { "" } else { ": " }, self.text)
    }
}

/// Checks a message of a known type: lengths, varints, wire types, ids, packed lists, depth.
/// `depth` is how many messages are around it.
pub(super) fn validate(bytes: &[u8], message: &'static Message, depth: usize) -> Result<(), DecodeError> {
    if depth > MAX_DEPTH {
        return Err(DecodeError::wire(message.name, WireError::TooDeep));
    }
    let mut reader = Reader::new(bytes);
    while let Some((number, value)) = reader.read().map_err(|error| DecodeError::wire(message.name, error))? {
        if let Some(slot) = message.slot(number) {
            let field = &message.fields[slot];
            match (field.kind, value) {
                (FieldKind::Message(inner), Value::Bytes(bytes)) if !is_plain_attribute(inner, bytes) => {
                    validate(bytes, inner, depth + 1).map_err(|error| error.within(field.name()))?;
                }
                (FieldKind::Message(_), Value::Bytes(_)) => {}
                _ => check(field, value).map_err(|what| refused(message, field, &what))?,
            }
        }
    }
    Ok(())
}

/// The message is an attribute of the usual form whose value has no messages in it, and it is right.
#[inline]
fn is_plain_attribute(message: &'static Message, bytes: &[u8]) -> bool {
    let content = if std::ptr::eq(message, &raw const KEY_VALUE) { usual_attribute(bytes) } else { None };
    matches!(content, Some((_, 1 | 7, Value::Bytes(_)) | (_, 2 | 3, Value::Varint(_)) | (_, 4, Value::Fixed64(_))))
}

fn refused(message: &Message, field: &Field, what: &str) -> DecodeError {
    DecodeError::new(format!("{}: {what}", message.name)).within(field.name())
}

/// The value has the wire type of the field, and the length where there is one to check.
fn check(field: &Field, value: Value<'_>) -> Result<(), String> {
    let fits = match (field.kind, value) {
        (FieldKind::Id(length), Value::Bytes(id)) => {
            if id.is_empty() || id.len() == length {
                return Ok(());
            }
            return Err(format!("an id of {}, {length} expected", counted(id.len(), "byte", "bytes")));
        }
        (FieldKind::String | FieldKind::Bytes, Value::Bytes(_))
        | (FieldKind::Fixed32, Value::Fixed32(_))
        | (FieldKind::Fixed64 | FieldKind::Sfixed64 | FieldKind::Double, Value::Fixed64(_))
        | (
            FieldKind::Bool
            | FieldKind::Int32
            | FieldKind::Uint32
            | FieldKind::Sint32
            | FieldKind::Int64
            | FieldKind::Uint64
            | FieldKind::Enum(_),
            Value::Varint(_),
        ) => true,
        (_, Value::Bytes(packed)) if field.presence == Presence::Repeated => return check_packed(field.kind, packed),
        _ => false,
    };
    if fits { Ok(()) } else { Err("wrong wire type".to_string()) }
}

fn check_packed(kind: FieldKind, packed: &[u8]) -> Result<(), String> {
    match kind {
        FieldKind::Fixed64 | FieldKind::Double if packed.len().is_multiple_of(8) => Ok(()),
        FieldKind::Uint64 => {
            let mut reader = Reader::new(packed);
            while reader.position() < packed.len() {
                reader.varint().map_err(|error| error.to_string())?;
            }
            Ok(())
        }
        _ => Err("a packed list of the wrong length".to_string()),
    }
}
