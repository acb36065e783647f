//! Writing places.

use std::sync::Arc;

use super::arguments::shown;
use super::context::Level;
use super::depth;
use super::keys::{self, Key, Resolved};
use super::place::{Field, Place};
use super::read::{Form, KINDS, body, point_field, points_kind};
use super::scene::Scene;
use super::trace_state;
use super::value::{MessageKind, Value};
use crate::otlp::{AnyValue, Edit, KeyValue, Text};

impl Scene {
    /// Puts a value at a place.
    pub(super) fn write(&mut self, place: &Place, value: Value) -> Result<(), String> {
        let Place { level, field, keys } = place;
        let keys = Key::resolve_all(keys, self);
        depth::check(&value, keys.len())?;
        if let Some(number) = self.map_number(*field) {
            return self.write_map(*level, number, &keys, value);
        }
        match *field {
            Field::SchemaUrl => {
                let url = text(value)?;
                match level {
                    Level::Resource => self.resource_schema_url = url,
                    _ => self.scope_schema_url = url,
                }
                return Ok(());
            }
            Field::MetricName => {
                self.metric_name = text(value)?;
                return Ok(());
            }
            Field::Temporality | Field::IsMonotonic | Field::DataPoints => return self.write_metric(*field, value),
            Field::TraceState => return self.write_trace_state(&keys::literal(&place.keys)?, value),
            _ => {}
        }
        let kind = self.point_kind;
        let Some(part) = self.part_mut(*level) else {
            let count = integer(&value)?;
            Arc::make_mut(&mut self.resource).dropped_attributes_count = cut(count);
            return Ok(());
        };
        match *field {
            Field::Text(number) => set_text(part, number, &text(value)?),
            Field::Count(number) => set_varint(part, number, cut(integer(&value)?).into()),
            Field::Enumeration(number) => set_int32(part, number, integer(&value)?),
            Field::Flags { number, checked } => {
                let flags = integer(&value)?;
                if checked && u32::try_from(flags).is_err() {
                    return Err(format!("{flags} does not fit into 32 bits"));
                }
                let flags = cut(flags);
                part.set(number, |writer| {
                    if flags != 0 {
                        writer.fixed32_field(number, flags);
                    }
                });
            }
            Field::Nanoseconds(number) => set_fixed64(part, number, integer(&value)?.cast_unsigned()),
            Field::Time(number) => set_fixed64(part, number, time(&value)?.cast_unsigned()),
            Field::TraceId(number) => match value {
                Value::TraceId(id) => set_id(part, number, &id),
                other => return Err(expected("a trace id", &other)),
            },
            Field::SpanId(number) => match value {
                Value::SpanId(id) => set_id(part, number, &id),
                other => return Err(expected("a span id", &other)),
            },
            Field::TraceIdText(number) => set_id(part, number, &id::<16>(value)?),
            Field::SpanIdText(number) => set_id(part, number, &id::<8>(value)?),
            Field::KindText => set_int32(part, 6, kind_of(&text(value)?, "")?),
            Field::KindOldText => set_int32(part, 6, kind_of(&text(value)?, "SPAN_KIND_")?),
            Field::Messages(number, kind) => set_messages(part, number, kind, value)?,
            Field::Status => match value {
                Value::Message(MessageKind::Status, status) => part.set(15, |writer| writer.bytes_field(15, &status)),
                other => return Err(expected("a status", &other)),
            },
            Field::StatusCode => {
                let code = integer(&value)?;
                part.set_inner(15, |status| set_int32(status, 3, code));
            }
            Field::StatusMessage => {
                let message = text(value)?;
                part.set_inner(15, |status| set_text(status, 2, &message));
            }
            Field::EventIndex => return Err("`event_index` cannot be changed".to_owned()),
            Field::Body => return write_body(part, &keys, value),
            Field::BodyText => set_body(part, &AnyValue::String(text(value)?)),
            Field::Point(field) => match point_field(kind, field) {
                Some((number, form)) => write_point(part, number, form, value)?,
                None => return Err("this kind of data point has no such field".to_owned()),
            },
            // The type of a metric does not change, and this is no error. All others are written above.
            _ => {}
        }
        Ok(())
    }

    fn write_map(&mut self, level: Level, number: u32, keys: &[Resolved], value: Value) -> Result<(), String> {
        if keys.is_empty() {
            let map = match value {
                Value::Nil => Vec::new(),
                Value::Map(entries) => entries,
                other => return Err(expected("a map", &other)),
            };
            *self.map_mut(level, number) = map;
            return Ok(());
        }
        // What is there already is not written again, so that its item stays as it is.
        if let ([Resolved::Name(name)], Some(value)) = (keys, scalar(&value))
            && self.map_value(level, number, name) == Some(value)
        {
            return Ok(());
        }
        keys::write_map(self.map_mut(level, number), keys, value)
    }

    /// A list of attributes to be changed; number 0 is the cache.
    pub(super) fn map_mut(&mut self, level: Level, number: u32) -> &mut Vec<KeyValue> {
        let part = match level {
            _ if number == 0 => return &mut self.cache,
            Level::Resource => return &mut Arc::make_mut(&mut self.resource).attributes,
            Level::Scope => &mut self.scope,
            Level::Span => &mut self.span,
            Level::SpanEvent => &mut self.event,
            Level::Metric => &mut self.metric,
            Level::DataPoint => &mut self.point,
            Level::Log => &mut self.log,
        };
        part.attributes_mut(number)
    }

    fn map_value(&self, level: Level, number: u32, name: &Text) -> Option<AnyValue> {
        let of = |list: &[KeyValue]| list.iter().find(|entry| entry.key == *name).map(|entry| entry.value.clone());
        match self.part(level) {
            _ if number == 0 => of(&self.cache),
            None => of(&self.resource.attributes),
            Some(part) => part.attribute(number, name.as_bytes()),
        }
    }

    fn write_metric(&mut self, field: Field, value: Value) -> Result<(), String> {
        let data = self.data();
        match field {
            Field::Temporality => {
                let temporality = integer(&value)?;
                if let Some(data @ (7 | 9 | 10)) = data {
                    self.metric.set_inner(data, |inner| set_int32(inner, 2, temporality));
                }
            }
            Field::IsMonotonic => {
                let Value::Bool(monotonic) = value else { return Err(expected("a boolean", &value)) };
                if data == Some(7) {
                    self.metric.set_inner(7, |inner| set_varint(inner, 3, monotonic.into()));
                }
            }
            _ => {
                let Some(data) = data else { return Ok(()) };
                let mut result = Ok(());
                self.metric.set_inner(data, |inner| result = set_messages(inner, 1, points_kind(data), value));
                return result;
            }
        }
        Ok(())
    }

    fn write_trace_state(&mut self, keys: &[Resolved], value: Value) -> Result<(), String> {
        let new = text(value)?;
        let Some(key) = keys.first() else {
            set_text(&mut self.span, 3, &new);
            return Ok(());
        };
        let key = key.name()?;
        // A state, key or value that is not as it must be changes nothing, and this is no error.
        if let Some(state) = trace_state::insert(&self.span.text(3).to_str(), &key.to_str(), &new.to_str()) {
            set_text(&mut self.span, 3, &state.into());
        }
        Ok(())
    }
}

fn write_body(record: &mut Edit, keys: &[Resolved], value: Value) -> Result<(), String> {
    let mut content = body(record);
    if !keys.is_empty() && !matches!(content, AnyValue::Map(_) | AnyValue::Array(_)) {
        return Err(format!("a body that is {} has no keys", Value::from(content).kind()));
    }
    let result = keys::write(&mut content, keys, value);
    set_body(record, &content);
    result
}

fn set_body(record: &mut Edit, body: &AnyValue) {
    record.set(5, |writer| writer.message_field(5, |inner| body.encode(inner)));
}

fn write_point(point: &mut Edit, number: u32, form: Form, value: Value) -> Result<(), String> {
    match form {
        // That is a map and written elsewhere.
        Form::Attributes => {}
        Form::Nanoseconds | Form::Count => set_fixed64(point, number, integer(&value)?.cast_unsigned()),
        Form::Time => set_fixed64(point, number, time(&value)?.cast_unsigned()),
        Form::NumberDouble => {
            let value = double(&value)?;
            point.set(6, |_| ());
            point.set(4, |writer| writer.double_field(4, value));
        }
        Form::NumberInteger => {
            let value = integer(&value)?.cast_unsigned();
            point.set(4, |_| ());
            point.set(6, |writer| writer.fixed64_field(6, value));
        }
        Form::Flags => set_varint(point, number, cut(integer(&value)?).into()),
        Form::Sum => {
            let value = double(&value)?;
            point.set(number, |writer| writer.double_field(number, value));
        }
        Form::Counts => {
            let counts = counts(value)?;
            point.set(number, |writer| writer.packed_fixed64(number, counts.into_iter()));
        }
        Form::Bounds => {
            let bounds = doubles(value)?;
            point.set(number, |writer| writer.packed_double(number, bounds.into_iter()));
        }
        Form::Scale => set_sint32(point, number, integer(&value)?),
        Form::Messages(kind) => set_messages(point, number, kind, value)?,
        Form::Buckets => match value {
            Value::Message(MessageKind::Buckets, buckets) => {
                point.set(number, |writer| writer.bytes_field(number, &buckets));
            }
            other => return Err(expected("buckets", &other)),
        },
        Form::BucketOffset => {
            let offset = integer(&value)?;
            point.set_inner(number, |buckets| set_sint32(buckets, 1, offset));
        }
        Form::BucketCounts => {
            let counts = counts(value)?;
            point.set_inner(number, |buckets| buckets.set(2, |writer| writer.packed_varint(2, counts)));
        }
    }
    Ok(())
}

fn expected(what: &str, value: &Value) -> String {
    format!("expected {what}, found {}", value.kind())
}

fn text(value: Value) -> Result<Text, String> {
    if let Value::Text(text) = value { Ok(text) } else { Err(expected("text", &value)) }
}

fn integer(value: &Value) -> Result<i64, String> {
    if let Value::Int(value) = value { Ok(*value) } else { Err(expected("an integer", value)) }
}

fn double(value: &Value) -> Result<f64, String> {
    if let Value::Double(value) = value { Ok(*value) } else { Err(expected("a double", value)) }
}

fn time(value: &Value) -> Result<i64, String> {
    if let Value::Time(value) = value { Ok(*value) } else { Err(expected("a time", value)) }
}

/// A scalar as an attribute has it.
fn scalar(value: &Value) -> Option<AnyValue> {
    match value {
        Value::Nil => Some(AnyValue::Empty),
        Value::Bool(value) => Some(AnyValue::Bool(*value)),
        Value::Int(value) => Some(AnyValue::Int(*value)),
        // -0 equals 0, and is not the same.
        Value::Double(value) if *value != 0.0 => Some(AnyValue::Double(*value)),
        Value::Text(text) => Some(AnyValue::String(text.clone())),
        _ => None,
    }
}

/// An id written as hexadecimal digits.
fn id<const N: usize>(value: Value) -> Result<[u8; N], String> {
    let written = text(value)?;
    let decoded = data_encoding::HEXLOWER_PERMISSIVE.decode(written.as_bytes()).ok();
    let id = decoded.and_then(|bytes| <[u8; N]>::try_from(bytes).ok());
    id.ok_or_else(|| format!("{} is no id of {} hexadecimal digits", shown(&written), 2 * N))
}

fn kind_of(word: &Text, prefix: &str) -> Result<i64, String> {
    let text = word.to_str();
    let known = |name: &&'static str| {
        if prefix.is_empty() { *name == text } else { text.strip_prefix(prefix) == Some(&name.to_ascii_uppercase()) }
    };
    let place = KINDS.iter().position(known).and_then(|place| i64::try_from(place).ok());
    place.ok_or_else(|| format!("{} is no kind of a span", shown(word)))
}

/// The lower 32 bits.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the reference cuts them off")]
fn cut(value: i64) -> u32 {
    value as u32
}

fn set_text(part: &mut Edit, number: u32, text: &Text) {
    part.set(number, |writer| {
        if !text.is_empty() {
            writer.bytes_field(number, text.as_bytes());
        }
    });
}

fn set_varint(part: &mut Edit, number: u32, value: u64) {
    part.set(number, |writer| {
        if value != 0 {
            writer.varint_field(number, value);
        }
    });
}

fn set_int32(part: &mut Edit, number: u32, value: i64) {
    let value = i64::from(cut(value).cast_signed());
    part.set(number, |writer| {
        if value != 0 {
            writer.int64_field(number, value);
        }
    });
}

fn set_sint32(part: &mut Edit, number: u32, value: i64) {
    let value = cut(value).cast_signed();
    part.set(number, |writer| {
        if value != 0 {
            writer.sint32_field(number, value);
        }
    });
}

fn set_fixed64(part: &mut Edit, number: u32, value: u64) {
    part.set(number, |writer| {
        if value != 0 {
            writer.fixed64_field(number, value);
        }
    });
}

/// An id of zeros is none.
fn set_id(part: &mut Edit, number: u32, id: &[u8]) {
    part.set(number, |writer| {
        if id.iter().any(|byte| *byte != 0) {
            writer.bytes_field(number, id);
        }
    });
}

fn set_messages(part: &mut Edit, number: u32, wanted: MessageKind, value: Value) -> Result<(), String> {
    match value {
        Value::Nil => part.set_messages(number, &[]),
        Value::Messages(kind, messages) if kind == wanted => part.set_messages(number, &messages),
        other => return Err(expected("a list of the same messages", &other)),
    }
    Ok(())
}

/// Counts of buckets; negative integers wrap.
fn counts(value: Value) -> Result<Vec<u64>, String> {
    let integer_of = |value: Value| integer(&value).map(i64::cast_unsigned);
    match value {
        Value::Nil => Ok(Vec::new()),
        Value::Counts(counts) => Ok(counts),
        Value::List(values) => values.into_iter().map(integer_of).collect(),
        Value::Slice(values) => values.into_iter().map(|value| integer_of(value.into())).collect(),
        other => Err(expected("a list of integers", &other)),
    }
}

fn doubles(value: Value) -> Result<Vec<f64>, String> {
    match value {
        Value::Nil => Ok(Vec::new()),
        Value::Doubles(bounds) => Ok(bounds),
        Value::List(values) => values.iter().map(double).collect(),
        Value::Slice(values) => values.into_iter().map(|value| double(&value.into())).collect(),
        other => Err(expected("a list of doubles", &other)),
    }
}
