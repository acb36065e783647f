//! The wire form byte for byte as the reference collector writes it: the last field of a message first, defaults left out,
//! ids and some messages always there, unknown fields dropped. For outputs that are compared by bytes; whoever only wants
//! the same data takes [`Payload::encode`], which copies.

use super::json::{is_default, packed};
use super::metric::Metric;
use super::payload::{Payload, ResourceItems, ScopeItems, Signal};
use super::records::Items;
use super::schema::{self, Field, FieldKind, Message, Presence};
use super::wire::{Value, Writer, fields};

impl Payload {
    /// The export request in the reference's wire form.
    #[must_use]
    pub fn encode_as_reference(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        for entry in &self.resources {
            writer.message_field(1, |inner| write_entry(inner, entry, self.signal));
        }
        writer.into_vec()
    }
}

fn write_entry(writer: &mut Writer, entry: &ResourceItems, signal: Signal) {
    if !entry.schema_url.is_empty() {
        writer.bytes_field(3, entry.schema_url.as_bytes());
    }
    for scope in &entry.scopes {
        writer.message_field(2, |inner| write_scope(inner, scope, signal));
    }
    let mut resource = Writer::new();
    entry.resource.encode(&mut resource);
    writer.message_field(1, |inner| write_message(inner, resource.as_slice(), &schema::RESOURCE));
}

fn write_scope(writer: &mut Writer, entry: &ScopeItems, signal: Signal) {
    if !entry.schema_url.is_empty() {
        writer.bytes_field(3, entry.schema_url.as_bytes());
    }
    match &entry.items {
        Items::Records(records) => {
            for record in records.iter() {
                writer.message_field(2, |inner| write_message(inner, record, signal.item()));
            }
        }
        Items::Metrics(metrics) => {
            for metric in metrics {
                writer.message_field(2, |inner| write_metric(inner, metric));
            }
        }
    }
    writer.message_field(1, |inner| write_message(inner, &entry.scope, &schema::SCOPE));
}

fn write_metric(writer: &mut Writer, metric: &Metric) {
    // The name is the first field, so it comes last.
    write_message(writer, metric.rest(), &schema::METRIC);
    if !metric.name.is_empty() {
        writer.bytes_field(1, metric.name.as_bytes());
    }
}

fn write_message(writer: &mut Writer, bytes: &[u8], message: &'static Message) {
    let one_of = |number: &u32| message.slot(*number).is_some_and(|slot| is_one_of(&message.fields[slot]));
    let chosen = fields(bytes).map(|(number, _)| number).filter(one_of).last();
    for field in message.fields.iter().rev().filter(|field| !is_one_of(field) || chosen == Some(field.number)) {
        let values = fields(bytes).filter(|(number, _)| *number == field.number).map(|(_, value)| value);
        if field.presence == Presence::Repeated {
            write_list(writer, field, values);
        } else {
            write_single(writer, field, &values.collect::<Vec<_>>());
        }
    }
}

fn is_one_of(field: &Field) -> bool {
    field.presence == Presence::OneOf
}

fn write_list<'a>(writer: &mut Writer, field: &Field, values: impl Iterator<Item = Value<'a>>) {
    match field.kind {
        FieldKind::Message(_) | FieldKind::String | FieldKind::Bytes | FieldKind::Id(_) => {
            values.for_each(|value| write_value(writer, field, value));
        }
        FieldKind::Fixed64 | FieldKind::Sfixed64 | FieldKind::Double => {
            let all: Vec<u64> = values.flat_map(|value| packed(field.kind, value)).map(Value::bits).collect();
            if !all.is_empty() {
                writer.packed_fixed64(field.number, all.into_iter());
            }
        }
        _ => {
            let mut all = values.flat_map(|value| packed(field.kind, value)).map(Value::bits).peekable();
            if all.peek().is_some() {
                writer.packed_varint(field.number, all);
            }
        }
    }
}

fn write_single(writer: &mut Writer, field: &Field, values: &[Value<'_>]) {
    match (field.kind, values.last()) {
        (FieldKind::Message(message), Some(last)) => {
            let bytes = if is_one_of(field) {
                last.bytes().to_vec()
            } else {
                values.iter().map(|value| value.bytes()).collect::<Vec<_>>().concat()
            };
            writer.message_field(field.number, |inner| write_message(inner, &bytes, message));
        }
        (FieldKind::Message(message), None) if field.presence == Presence::Always => {
            writer.message_field(field.number, |inner| write_message(inner, &[], message));
        }
        (FieldKind::Id(_), last) => {
            let id = last.filter(|id| !is_default(field.kind, **id)).map_or(&[][..], |id| id.bytes());
            writer.bytes_field(field.number, id);
        }
        (_, Some(last)) if field.presence != Presence::Implicit || !is_default(field.kind, *last) => {
            write_value(writer, field, *last);
        }
        _ => {}
    }
}

fn write_value(writer: &mut Writer, field: &Field, value: Value<'_>) {
    let number = field.number;
    match field.kind {
        FieldKind::String | FieldKind::Bytes | FieldKind::Id(_) => writer.bytes_field(number, value.bytes()),
        FieldKind::Bool => writer.bool_field(number, value.bits() != 0),
        FieldKind::Int32 | FieldKind::Enum(_) => writer.int64_field(number, value.int32().into()),
        FieldKind::Uint32 => writer.varint_field(number, value.uint32().into()),
        FieldKind::Sint32 => writer.sint32_field(number, value.sint32()),
        FieldKind::Int64 | FieldKind::Uint64 => writer.varint_field(number, value.bits()),
        FieldKind::Fixed32 => writer.fixed32_field(number, value.uint32()),
        FieldKind::Fixed64 | FieldKind::Sfixed64 | FieldKind::Double => writer.fixed64_field(number, value.bits()),
        FieldKind::Message(message) => {
            writer.message_field(number, |inner| write_message(inner, value.bytes(), message));
        }
    }
}
