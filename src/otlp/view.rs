//! Views: what somebody wants to know about one span or log record, read from its wire form. A view
//! walks over the top level of the message once; attributes are looked at when they are asked for, and
//! nothing is allocated.

use bytes::Bytes;

use super::value::{AnyValue, slice};
use super::wire::{Reader, Value, Writer, bytes_fields, fields};

/// A span, seen through its wire form.
#[derive(Debug, Clone, Copy, Default)]
pub struct SpanView<'a> {
    message: &'a [u8],
    /// 16 bytes, or none.
    pub trace_id: &'a [u8],
    /// 8 bytes, or none.
    pub span_id: &'a [u8],
    /// 8 bytes, or none (a root).
    pub parent_span_id: &'a [u8],
    /// The W3C tracestate.
    pub trace_state: &'a [u8],
    /// The name.
    pub name: &'a [u8],
    /// `SpanKind`: 0 unspecified, 1 internal, 2 server, 3 client, 4 producer, 5 consumer; others may occur.
    pub kind: i32,
    /// `StatusCode`: 0 unset, 1 ok, 2 error; others may occur.
    pub status_code: i32,
    /// Start, in nanoseconds since 1970.
    pub start_time_unix_nano: u64,
    /// End, in nanoseconds since 1970.
    pub end_time_unix_nano: u64,
    /// W3C trace flags and more.
    pub flags: u32,
}

impl<'a> SpanView<'a> {
    /// Looks at a validated Span message.
    #[must_use]
    pub fn new(message: &'a [u8]) -> Self {
        let mut view = Self { message, ..Self::default() };
        for (number, value) in fields(message) {
            match number {
                1 => view.trace_id = value.bytes(),
                2 => view.span_id = value.bytes(),
                3 => view.trace_state = value.bytes(),
                4 => view.parent_span_id = value.bytes(),
                5 => view.name = value.bytes(),
                6 => view.kind = value.int32(),
                7 => view.start_time_unix_nano = value.bits(),
                8 => view.end_time_unix_nano = value.bits(),
                15 => {
                    for (_, code) in fields(value.bytes()).filter(|(number, _)| *number == 3) {
                        view.status_code = code.int32();
                    }
                }
                16 => view.flags = value.uint32(),
                _ => {}
            }
        }
        view
    }

    /// The attributes.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes { message: self.message, number: 9 }
    }

    /// The events.
    pub fn events(&self) -> impl Iterator<Item = EventView<'a>> + use<'a> {
        fields(self.message).filter(|(number, _)| *number == 11).map(|(_, value)| EventView::new(value.bytes()))
    }
}

/// An event of a span.
#[derive(Debug, Clone, Copy, Default)]
pub struct EventView<'a> {
    message: &'a [u8],
    /// The name.
    pub name: &'a [u8],
    /// When, in nanoseconds since 1970.
    pub time_unix_nano: u64,
}

impl<'a> EventView<'a> {
    fn new(message: &'a [u8]) -> Self {
        let mut view = Self { message, ..Self::default() };
        for (number, value) in fields(message) {
            match number {
                1 => view.time_unix_nano = value.bits(),
                2 => view.name = value.bytes(),
                _ => {}
            }
        }
        view
    }

    /// The attributes.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes { message: self.message, number: 3 }
    }
}

/// A log record, seen through its wire form.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogView<'a> {
    message: &'a [u8],
    /// When it happened, in nanoseconds since 1970; 0 if not known.
    pub time_unix_nano: u64,
    /// When it was seen, in nanoseconds since 1970.
    pub observed_time_unix_nano: u64,
    /// `SeverityNumber`: 1 to 24, 0 if not known; others may occur.
    pub severity_number: i32,
    /// The sender's word for the severity.
    pub severity_text: &'a [u8],
    /// What was logged.
    pub body: ValueView<'a>,
    /// 16 bytes, or none.
    pub trace_id: &'a [u8],
    /// 8 bytes, or none.
    pub span_id: &'a [u8],
    /// The event's name, if the record is one.
    pub event_name: &'a [u8],
}

impl<'a> LogView<'a> {
    /// Looks at a validated `LogRecord` message.
    #[must_use]
    pub fn new(message: &'a [u8]) -> Self {
        let mut view = Self { message, ..Self::default() };
        for (number, value) in fields(message) {
            match number {
                1 => view.time_unix_nano = value.bits(),
                2 => view.severity_number = value.int32(),
                3 => view.severity_text = value.bytes(),
                5 => view.body = view.body.replaced_by(value.bytes()),
                9 => view.trace_id = value.bytes(),
                10 => view.span_id = value.bytes(),
                11 => view.observed_time_unix_nano = value.bits(),
                12 => view.event_name = value.bytes(),
                _ => {}
            }
        }
        view
    }

    /// The attributes.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes { message: self.message, number: 6 }
    }
}

/// The attributes of a message, in the order of the sender.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    message: &'a [u8],
    number: u32,
}

impl<'a> Attributes<'a> {
    /// The attributes of a validated message whose attributes are fields of this number.
    #[must_use]
    pub fn of(message: &'a [u8], number: u32) -> Self {
        Self { message, number }
    }

    /// Key and value of each; keys may repeat.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], ValueView<'a>)> + use<'a> {
        bytes_fields(self.message, self.number).map(key_value)
    }

    /// The same for those whose key is wanted; at the values of the others nobody looks.
    pub fn wanted(&self, wanted: impl Fn(&[u8]) -> bool) -> impl Iterator<Item = (&'a [u8], ValueView<'a>)> {
        bytes_fields(self.message, self.number).filter_map(move |attribute| match pair(attribute) {
            Some((key, value)) => wanted(key).then(|| (key, ValueView::new(value))),
            None => Some(key_value(attribute)).filter(|(key, _)| wanted(key)),
        })
    }

    /// The value of the first attribute of this name.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<ValueView<'a>> {
        self.wanted(|name| name == key.as_bytes()).next().map(|(_, value)| value)
    }
}

/// Key and value of an attribute as all senders write it, each once and in this order. `None`: it has another form, and
/// must be read by the book.
#[inline]
fn pair(attribute: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut reader = Reader::new(attribute);
    match (reader.read_bytes(), reader.read_bytes()) {
        (Some((1, key)), Some((2, value))) if reader.is_at_end() => Some((key, value)),
        _ => None,
    }
}

/// Key, and number and content of the value, of an attribute as all senders write it, if its value has one alternative.
#[inline(always)]
#[expect(clippy::inline_always, reason = "most of what is received is attributes")]
pub(super) fn usual_attribute(message: &[u8]) -> Option<(&[u8], u32, Value<'_>)> {
    let (key, value) = pair(message)?;
    let mut inner = Reader::new(value);
    let Ok(Some((number, content))) = inner.read() else { return None };
    inner.is_at_end().then_some((key, number, content))
}

#[inline]
fn key_value(message: &[u8]) -> (&[u8], ValueView<'_>) {
    if let Some((key, number, content)) = usual_attribute(message) {
        return (key, ValueView::Empty.or_field(number, content));
    }
    let (mut key, mut decoded) = (&[][..], ValueView::default());
    for (number, value) in fields(message) {
        match number {
            1 => key = value.bytes(),
            2 => decoded = decoded.replaced_by(value.bytes()),
            _ => {}
        }
    }
    (key, decoded)
}

/// A value, seen through its wire form.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum ValueView<'a> {
    /// No value at all.
    #[default]
    Empty,
    /// `stringValue`.
    String(&'a [u8]),
    /// `boolValue`.
    Bool(bool),
    /// `intValue`.
    Int(i64),
    /// `doubleValue`.
    Double(f64),
    /// arrayValue: the `ArrayValue` message.
    Array(&'a [u8]),
    /// kvlistValue: the `KeyValueList` message.
    Map(&'a [u8]),
    /// `bytesValue`.
    Bytes(&'a [u8]),
}

impl<'a> ValueView<'a> {
    /// Looks at a validated `AnyValue` message.
    #[must_use]
    pub fn new(message: &'a [u8]) -> Self {
        Self::Empty.replaced_by(message)
    }

    /// The last value of the message; this one if it has none.
    fn replaced_by(mut self, message: &'a [u8]) -> Self {
        for (number, value) in fields(message) {
            self = self.or_field(number, value);
        }
        self
    }

    /// The value that a field of an `AnyValue` says; this one if it says none.
    #[inline]
    fn or_field(self, number: u32, value: Value<'a>) -> Self {
        match (number, value) {
            (1, Value::Bytes(text)) => Self::String(text),
            (2, value) => Self::Bool(value.bits() != 0),
            (3, value) => Self::Int(value.int64()),
            (4, value) => Self::Double(value.double()),
            (5, Value::Bytes(message)) => Self::Array(message),
            (6, Value::Bytes(message)) => Self::Map(message),
            (7, Value::Bytes(bytes)) => Self::Bytes(bytes),
            _ => self,
        }
    }

    /// Writes the content of an `AnyValue` message.
    pub fn encode(self, writer: &mut Writer) {
        match self {
            Self::Empty => {}
            Self::String(text) => writer.bytes_field(1, text),
            Self::Bool(value) => writer.bool_field(2, value),
            Self::Int(value) => writer.int64_field(3, value),
            Self::Double(value) => writer.double_field(4, value),
            Self::Array(message) => writer.bytes_field(5, message),
            Self::Map(message) => writer.bytes_field(6, message),
            Self::Bytes(bytes) => writer.bytes_field(7, bytes),
        }
    }

    /// The value, decoded; it shares the bytes of `whole` that this was read from.
    pub(super) fn decode_from(self, whole: &Bytes) -> AnyValue {
        let share = |bytes: &'a [u8]| slice(whole, Value::Bytes(bytes));
        match self {
            Self::Empty => AnyValue::Empty,
            Self::String(text) => AnyValue::String(share(text).into()),
            Self::Bool(value) => AnyValue::Bool(value),
            Self::Int(value) => AnyValue::Int(value),
            Self::Double(value) => AnyValue::Double(value),
            Self::Array(message) => AnyValue::decode_array(whole, message),
            Self::Map(message) => AnyValue::decode_map(whole, message),
            Self::Bytes(bytes) => AnyValue::Bytes(share(bytes)),
        }
    }

    /// The value, decoded and copied.
    #[must_use]
    pub fn to_value(self) -> AnyValue {
        let mut writer = Writer::new();
        self.encode(&mut writer);
        AnyValue::decode(&Bytes::from(writer.into_vec()))
    }
}
