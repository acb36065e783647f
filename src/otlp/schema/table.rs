//! The form of the tables.

/// One message type.
#[derive(Debug)]
pub struct Message {
    /// The name in the proto files, for error texts.
    pub name: &'static str,
    /// The fields in JSON order.
    pub fields: &'static [Field],
    /// Field number to place in `fields` plus one; 0 for a number that is not known.
    slots: [u8; MAX_NUMBER + 1],
}

/// The greatest field number in use.
const MAX_NUMBER: usize = 16;

/// One field of a message.
#[derive(Debug)]
pub struct Field {
    /// The number on the wire.
    pub number: u32,
    /// `"name":` as JSON has it, in `lowerCamelCase`.
    pub(super) json_key: &'static str,
    /// The name in the proto files, accepted in JSON too.
    pub snake_name: &'static str,
    /// The type of one value.
    pub kind: FieldKind,
    /// How often it may be there, and what is written when it is not.
    pub presence: Presence,
}

/// The type of a value.
#[derive(Debug, Clone, Copy)]
pub enum FieldKind {
    /// Text; the reference accepts bytes that are not UTF-8 on the wire, so they are accepted here.
    String,
    /// Bytes; base64 in JSON.
    Bytes,
    /// An id of so many bytes, or none; hexadecimal in JSON.
    Id(usize),
    /// bool.
    Bool,
    /// int32.
    Int32,
    /// uint32.
    Uint32,
    /// sint32 (zigzag).
    Sint32,
    /// int64; text in JSON.
    Int64,
    /// uint64; text in JSON.
    Uint64,
    /// fixed32.
    Fixed32,
    /// fixed64; text in JSON.
    Fixed64,
    /// sfixed64; text in JSON.
    Sfixed64,
    /// double.
    Double,
    /// An enum; the names of its values from 0 on.
    Enum(&'static [&'static str]),
    /// A message.
    Message(&'static Message),
}

/// When a field is written to JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Unless it has its default value.
    Implicit,
    /// Whenever it is on the wire.
    Explicit,
    /// One of a group of which the last on the wire counts; a message of it replaces the former one.
    OneOf,
    /// Always: a message that the reference always holds.
    Always,
    /// As a list, unless empty.
    Repeated,
}

impl Field {
    /// The name with quotes and colon.
    #[inline]
    pub fn json_key(&self) -> &'static str {
        self.json_key
    }

    /// The name in `lowerCamelCase`.
    #[inline]
    pub fn name(&self) -> &'static str {
        &self.json_key[1..self.json_key.len() - 2]
    }
}

impl Message {
    pub(super) const fn new(name: &'static str, fields: &'static [Field]) -> Self {
        let mut slots = [0; MAX_NUMBER + 1];
        let mut slot = 0;
        while slot < fields.len() {
            #[expect(clippy::cast_possible_truncation, reason = "a message has at most 16 fields")]
            {
                slots[fields[slot].number as usize] = slot as u8 + 1;
            }
            slot += 1;
        }
        Self { name, fields, slots }
    }

    /// The place of a field number in [`Message::fields`].
    #[inline]
    pub fn slot(&self, number: u32) -> Option<usize> {
        match self.slots.get(number as usize) {
            Some(&slot) if slot > 0 => Some(usize::from(slot) - 1),
            _ => None,
        }
    }
}

/// `[number, "camelName", "snake_name", kind, presence]...`
macro_rules! fields {
    ($([$number:literal, $name:literal, $snake:literal, $kind:expr, $presence:ident]),* $(,)?) => {
        &[$(Field {
            number: $number,
            json_key: concat!("\"", $name, "\":"),
            snake_name: $snake,
            kind: $kind,
            presence: Presence::$presence,
        }),*]
    };
}

pub(super) use fields;
