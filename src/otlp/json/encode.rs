//! Wire form to JSON, in the field order and with the omissions of the reference collector.
//!
//! A message is looked over once to find where its fields stand, since senders write them by number
//! and JSON wants them in the order of the tables; then each is written from where it stands. So it
//! makes no difference in which order a sender writes, whether it repeats fields (the last one counts,
//! messages are joined), or mixes lists.

use crate::otlp::metric::Metric;
use crate::otlp::payload::{Payload, ResourceItems, Signal};
use crate::otlp::records::{Items, Records};
use crate::otlp::resource::Resource;
use crate::otlp::schema::{self, Field, FieldKind, Message, Presence};
use crate::otlp::value::{AnyValue, KeyValue};
use crate::otlp::view::usual_attribute;
use crate::otlp::wire::{Reader, Value, bytes_fields, fields};

use super::object::Object;
use super::text::{write_base64, write_double, write_hex, write_signed, write_string, write_unsigned};

/// Keys that depend on the signal: of the resources, scopes and items.
const fn keys(signal: Signal) -> [&'static str; 3] {
    match signal {
        Signal::Traces => ["\"resourceSpans\":", "\"scopeSpans\":", "\"spans\":"],
        Signal::Metrics => ["\"resourceMetrics\":", "\"scopeMetrics\":", "\"metrics\":"],
        Signal::Logs => ["\"resourceLogs\":", "\"scopeLogs\":", "\"logRecords\":"],
    }
}

impl Payload {
    /// Appends the export request as OTLP/JSON, without a line end; an empty one is `{}`.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        self.clone().write_json_in_parts(out, &mut |_, _| ());
    }

    /// The same; `between` may take away what was written so far, after each item. It is told how many bytes of items were
    /// let go of since the last time: those of one run of records, or of a scope's metrics, once all of them are written.
    /// A request is in memory as long as a part of it is.
    pub fn write_json_in_parts(self, out: &mut Vec<u8>, between: &mut dyn FnMut(&mut Vec<u8>, usize)) {
        write_request(out, self.signal, self.resources, between);
    }
}

fn write_request(
    out: &mut Vec<u8>,
    signal: Signal,
    entries: Vec<ResourceItems>,
    between: &mut dyn FnMut(&mut Vec<u8>, usize),
) {
    let [resources, scopes, items] = keys(signal);
    let mut request = Object::start(out);
    request.list(resources, entries, |out, entry| {
        let mut object = Object::start(out);
        object.key("\"resource\":");
        write_resource(object.out, &entry.resource);
        object.list(scopes, entry.scopes, |out, scope| {
            let mut object = Object::start(out);
            object.key("\"scope\":");
            write_message(object.out, &scope.scope, &schema::SCOPE);
            match scope.items {
                Items::Records(records) => write_records(&mut object, items, records, signal.item(), between),
                Items::Metrics(metrics) => {
                    let mut gone = 0;
                    object.list(items, metrics, |out, metric| {
                        write_metric(out, &metric);
                        gone += metric.rest().len();
                        between(out, 0);
                    });
                    between(object.out, gone);
                }
            }
            object.text("\"schemaUrl\":", scope.schema_url.as_bytes());
            object.end();
        });
        object.text("\"schemaUrl\":", entry.schema_url.as_bytes());
        object.end();
    });
    request.end();
}

fn write_records(
    object: &mut Object<'_>,
    key: &str,
    records: Records,
    message: &'static Message,
    between: &mut dyn FnMut(&mut Vec<u8>, usize),
) {
    if records.is_empty() {
        return;
    }
    object.key(key);
    object.out.push(b'[');
    let mut first = true;
    for run in records.into_runs() {
        for record in run.iter() {
            if !std::mem::take(&mut first) {
                object.out.push(b',');
            }
            write_message(object.out, record, message);
            between(object.out, 0);
        }
        let gone = run.size();
        drop(run);
        between(object.out, gone);
    }
    object.out.push(b']');
}

fn write_resource(out: &mut Vec<u8>, resource: &Resource) {
    let mut object = Object::start(out);
    object.list("\"attributes\":", &resource.attributes, write_attribute);
    if resource.dropped_attributes_count != 0 {
        object.key("\"droppedAttributesCount\":");
        write_unsigned(object.out, resource.dropped_attributes_count.into());
    }
    object.list("\"entityRefs\":", fields(&resource.entity_refs), |out, (_, entity_ref)| {
        write_message(out, entity_ref.bytes(), &schema::ENTITY_REF);
    });
    object.end();
}

fn write_attribute(out: &mut Vec<u8>, attribute: &KeyValue) {
    let mut object = Object::start(out);
    object.text("\"key\":", attribute.key.as_bytes());
    object.key("\"value\":");
    write_any_value(object.out, &attribute.value);
    object.end();
}

fn write_any_value(out: &mut Vec<u8>, value: &AnyValue) {
    let mut object = Object::start(out);
    match value {
        AnyValue::Empty => {}
        AnyValue::String(text) => {
            object.key("\"stringValue\":");
            write_string(object.out, text.as_bytes());
        }
        AnyValue::Bool(value) => {
            object.key("\"boolValue\":");
            object.out.extend_from_slice(if *value { b"true" } else { b"false" });
        }
        AnyValue::Int(value) => {
            object.key("\"intValue\":\"");
            write_signed(object.out, *value);
            object.out.push(b'"');
        }
        AnyValue::Double(value) => {
            object.key("\"doubleValue\":");
            write_double(object.out, *value);
        }
        AnyValue::Array(values) => {
            object.key("\"arrayValue\":");
            let mut inner = Object::start(object.out);
            inner.list("\"values\":", values, write_any_value);
            inner.end();
        }
        AnyValue::Map(attributes) => {
            object.key("\"kvlistValue\":");
            let mut inner = Object::start(object.out);
            inner.list("\"values\":", attributes, write_attribute);
            inner.end();
        }
        AnyValue::Bytes(bytes) => {
            object.key("\"bytesValue\":");
            write_base64(object.out, bytes);
        }
    }
    object.end();
}

fn write_metric(out: &mut Vec<u8>, metric: &Metric) {
    let mut object = Object::start(out);
    object.text("\"name\":", metric.name.as_bytes());
    write_fields(&mut object, metric.rest(), &schema::METRIC);
    object.end();
}

/// A validated message as an object.
fn write_message(out: &mut Vec<u8>, bytes: &[u8], message: &'static Message) {
    if std::ptr::eq(message, &raw const schema::KEY_VALUE) && write_plain_key_value(out, bytes) {
        return;
    }
    let mut object = Object::start(out);
    write_fields(&mut object, bytes, message);
    object.end();
}

/// An attribute of the usual form with a key that is not empty; anything else is left to the general way.
fn write_plain_key_value(out: &mut Vec<u8>, bytes: &[u8]) -> bool {
    let Some((key, number, content)) = usual_attribute(bytes).filter(|(key, ..)| !key.is_empty()) else { return false };
    let Some(slot) = schema::ANY_VALUE.slot(number) else { return false };
    out.extend_from_slice(b"{\"key\":");
    write_string(out, key);
    match (number, content) {
        (1, Value::Bytes(text)) => {
            out.extend_from_slice(b",\"value\":{\"stringValue\":");
            write_string(out, text);
            out.extend_from_slice(b"}}");
        }
        (3, Value::Varint(bits)) => {
            out.extend_from_slice(b",\"value\":{\"intValue\":\"");
            write_signed(out, bits.cast_signed());
            out.extend_from_slice(b"\"}}");
        }
        _ => {
            let field = &schema::ANY_VALUE.fields[slot];
            out.extend_from_slice(b",\"value\":{");
            out.extend_from_slice(field.json_key().as_bytes());
            write_value(out, field.kind, content);
            out.extend_from_slice(b"}}");
        }
    }
    true
}

/// Where the values of one field stand: offsets of the first and the last tag.
#[derive(Clone, Copy, Default)]
struct Place {
    first: usize,
    last: usize,
}

fn write_fields(object: &mut Object<'_>, bytes: &[u8], message: &'static Message) {
    let mut places = [Place::default(); 16];
    // One bit for each slot.
    let (mut seen, mut repeated, mut one_of) = (0_u32, 0_u32, 0_u32);
    let (mut reader, mut start) = (Reader::new(bytes), 0);
    while let Ok(Some(number)) = reader.skip() {
        if let Some(slot) = message.slot(number) {
            let bit = 1 << slot;
            if message.fields[slot].presence == Presence::OneOf {
                seen &= !one_of;
                one_of = bit;
            }
            if seen & bit == 0 {
                places[slot].first = start;
            } else {
                repeated |= bit;
            }
            places[slot].last = start;
            seen |= bit;
        }
        start = reader.position();
    }
    for (slot, field) in message.fields.iter().enumerate() {
        let bit = 1 << slot;
        if seen & bit != 0 {
            write_field(object, field, bytes, places[slot], repeated & bit != 0);
        } else if field.presence == Presence::Always {
            object.key(field.json_key());
            write_empty_message(object.out, field);
        }
    }
}

/// A message that is always written, without content: its own messages are written in turn.
fn write_empty_message(out: &mut Vec<u8>, field: &Field) {
    if let FieldKind::Message(message) = field.kind {
        write_message(out, &[], message);
    }
}

fn write_field(object: &mut Object<'_>, field: &'static Field, bytes: &[u8], place: Place, repeated: bool) {
    if field.presence == Presence::Repeated {
        match field.kind {
            FieldKind::Message(message) => {
                let messages = bytes_fields(&bytes[place.first..], field.number);
                object.list(field.json_key(), messages, |out, bytes| write_message(out, bytes, message));
            }
            _ => write_list(object, field, values(field, bytes, place)),
        }
        return;
    }
    if let FieldKind::Message(message) = field.kind
        && repeated
        && field.presence != Presence::OneOf
    {
        // A message that stands there several times is the sum of its parts.
        let joined = values(field, bytes, place).map(Value::bytes).collect::<Vec<_>>().concat();
        object.key(field.json_key());
        write_message(object.out, &joined, message);
        return;
    }
    let Ok(Some((_, value))) = Reader::new(&bytes[place.last..]).read() else { return };
    if field.presence == Presence::Implicit && is_default(field.kind, value) {
        return;
    }
    object.key(field.json_key());
    write_value(object.out, field.kind, value);
}

/// All values of a field, from its first place to its last.
fn values<'a>(field: &Field, bytes: &'a [u8], place: Place) -> impl Iterator<Item = Value<'a>> {
    let (number, length) = (field.number, place.last - place.first);
    let mut reader = Reader::new(&bytes[place.first..]);
    std::iter::from_fn(move || {
        while reader.position() <= length {
            let (found, value) = reader.read().ok()??;
            if found == number {
                return Some(value);
            }
        }
        None
    })
}

fn write_list<'a>(object: &mut Object<'_>, field: &'static Field, values: impl Iterator<Item = Value<'a>>) {
    match field.kind {
        FieldKind::String | FieldKind::Bytes | FieldKind::Id(_) => {
            object.list(field.json_key(), values, |out, value| write_value(out, field.kind, value));
        }
        // Numbers come packed, or one by one from old senders.
        _ => object.list(field.json_key(), values.flat_map(|value| packed(field.kind, value)), |out, value| {
            write_value(out, field.kind, value);
        }),
    }
}

/// The elements of a packed list; a single value is itself.
pub(in crate::otlp) fn packed(kind: FieldKind, value: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    let (bytes, mut single) = match value {
        Value::Bytes(bytes) => (bytes, None),
        single => (&[][..], Some(single)),
    };
    let mut reader = Reader::new(bytes);
    let mut words = bytes.as_chunks::<8>().0.iter();
    std::iter::from_fn(move || {
        if let Some(single) = single.take() {
            return Some(single);
        }
        match kind {
            FieldKind::Fixed64 | FieldKind::Sfixed64 | FieldKind::Double => {
                words.next().map(|word| Value::Fixed64(u64::from_le_bytes(*word)))
            }
            _ => reader.varint().ok().map(Value::Varint),
        }
    })
}

/// The value is that of a field which is not there.
pub(in crate::otlp) fn is_default(kind: FieldKind, value: Value<'_>) -> bool {
    match kind {
        FieldKind::String | FieldKind::Bytes => value.bytes().is_empty(),
        FieldKind::Id(_) => value.bytes().iter().all(|byte| *byte == 0),
        FieldKind::Bool
        | FieldKind::Int64
        | FieldKind::Uint64
        | FieldKind::Fixed32
        | FieldKind::Fixed64
        | FieldKind::Sfixed64 => value.bits() == 0,
        FieldKind::Int32 | FieldKind::Uint32 | FieldKind::Sint32 | FieldKind::Enum(_) => value.uint32() == 0,
        // Minus zero equals zero.
        FieldKind::Double => value.double() == 0.0,
        FieldKind::Message(_) => false,
    }
}

fn write_value(out: &mut Vec<u8>, kind: FieldKind, value: Value<'_>) {
    match kind {
        FieldKind::String => write_string(out, value.bytes()),
        FieldKind::Bytes => write_base64(out, value.bytes()),
        FieldKind::Id(_) => write_hex(out, value.bytes()),
        FieldKind::Bool => out.extend_from_slice(if value.bits() == 0 { b"false" } else { b"true" }),
        FieldKind::Int32 | FieldKind::Enum(_) => write_signed(out, value.int32().into()),
        FieldKind::Sint32 => write_signed(out, value.sint32().into()),
        FieldKind::Uint32 | FieldKind::Fixed32 => write_unsigned(out, value.uint32().into()),
        FieldKind::Double => write_double(out, value.double()),
        FieldKind::Int64 | FieldKind::Sfixed64 => {
            out.push(b'"');
            write_signed(out, value.int64());
            out.push(b'"');
        }
        FieldKind::Uint64 | FieldKind::Fixed64 => {
            out.push(b'"');
            write_unsigned(out, value.bits());
            out.push(b'"');
        }
        FieldKind::Message(message) => write_message(out, value.bytes(), message),
    }
}
