//! Reading places.

use std::sync::Arc;

use super::context::Level;
use super::keys::{self, Key, Resolved};
use super::place::{Field, Place, PointField};
use super::scene::{DATA, PointKind, Scene};
use super::trace_state;
use super::value::{MessageKind, Value};
use crate::collector::text::value_text::as_text;
use crate::otlp::wire;
use crate::otlp::{AnyValue, Edit, KeyValue, Text};

/// The words of span kinds, by number.
pub(super) const KINDS: [&str; 6] = ["Unspecified", "Internal", "Server", "Client", "Producer", "Consumer"];

/// How a field of a data point stands on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Attributes,
    Nanoseconds,
    Time,
    /// One of the two forms of a number point's value.
    NumberDouble,
    NumberInteger,
    /// uint32.
    Flags,
    /// fixed64.
    Count,
    Sum,
    /// Lists of fixed64 and double.
    Counts,
    Bounds,
    /// sint32.
    Scale,
    Messages(MessageKind),
    Buckets,
    /// Of the buckets in this field.
    BucketOffset,
    BucketCounts,
}

/// Number and form of a field, if this kind of point has it.
pub(super) fn point_field(kind: PointKind, field: PointField) -> Option<(u32, Form)> {
    use PointKind::{Exponential, Histogram, Number, Summary};
    Some(match (field, kind) {
        (PointField::Attributes, _) => (kind.attributes(), Form::Attributes),
        (PointField::StartNanoseconds, _) => (2, Form::Nanoseconds),
        (PointField::Nanoseconds, _) => (3, Form::Nanoseconds),
        (PointField::StartTime, _) => (2, Form::Time),
        (PointField::Time, _) => (3, Form::Time),
        (PointField::Double, Number) => (4, Form::NumberDouble),
        (PointField::Integer, Number) => (6, Form::NumberInteger),
        (PointField::Exemplars, Number) => (5, Form::Messages(MessageKind::Exemplars)),
        (PointField::Exemplars, Histogram) => (8, Form::Messages(MessageKind::Exemplars)),
        (PointField::Exemplars, Exponential) => (11, Form::Messages(MessageKind::Exemplars)),
        (PointField::Flags, Number | Summary) => (8, Form::Flags),
        (PointField::Flags, Histogram | Exponential) => (10, Form::Flags),
        (PointField::Count, Histogram | Exponential | Summary) => (4, Form::Count),
        (PointField::Sum, Histogram | Exponential | Summary) => (5, Form::Sum),
        (PointField::BucketCounts, Histogram) => (6, Form::Counts),
        (PointField::Bounds, Histogram) => (7, Form::Bounds),
        (PointField::Scale, Exponential) => (6, Form::Scale),
        (PointField::ZeroCount, Exponential) => (7, Form::Count),
        (PointField::Positive, Exponential) => (8, Form::Buckets),
        (PointField::PositiveOffset, Exponential) => (8, Form::BucketOffset),
        (PointField::PositiveCounts, Exponential) => (8, Form::BucketCounts),
        (PointField::Negative, Exponential) => (9, Form::Buckets),
        (PointField::NegativeOffset, Exponential) => (9, Form::BucketOffset),
        (PointField::NegativeCounts, Exponential) => (9, Form::BucketCounts),
        (PointField::Quantiles, Summary) => (6, Form::Messages(MessageKind::Quantiles)),
        _ => return None,
    })
}

impl Scene {
    /// What stands at a place.
    pub(super) fn read(&self, place: &Place) -> Result<Value, String> {
        let Place { level, field, keys } = place;
        if let Some(number) = self.map_number(*field) {
            let keys = Key::resolve_all(keys, self);
            return self.read_map(*level, number, &keys);
        }
        let Some(part) = self.part(*level) else {
            return Ok(match field {
                Field::SchemaUrl => Value::Text(self.resource_schema_url.clone()),
                _ => Value::Int(self.resource.dropped_attributes_count.into()),
            });
        };
        Ok(match *field {
            // Those are maps and read above.
            Field::Cache | Field::Map(_) => Value::Nil,
            Field::Text(number) => Value::Text(part.text(number)),
            Field::SchemaUrl => Value::Text(self.scope_schema_url.clone()),
            Field::Count(number) | Field::Flags { number, .. } => Value::Int(uint32(part, number)),
            Field::Enumeration(number) => Value::Int(int32(part, number)),
            Field::Nanoseconds(number) => Value::Int(part.bits(number).cast_signed()),
            Field::Time(number) => Value::Time(part.bits(number).cast_signed()),
            Field::TraceId(number) => Value::TraceId(id(part, number)),
            Field::TraceIdText(number) => hexadecimal(&id::<16>(part, number)),
            Field::SpanId(number) => Value::SpanId(id(part, number)),
            Field::SpanIdText(number) => hexadecimal(&id::<8>(part, number)),
            Field::TraceState => return self.read_trace_state(&keys::literal(keys)?),
            Field::KindText => kind_text(part, KINDS, ""),
            Field::KindOldText => kind_text(part, KINDS, "SPAN_KIND_"),
            Field::Messages(number, kind) => Value::Messages(
                kind,
                match &self.walked {
                    Some(events) if kind == MessageKind::Events => Arc::clone(events),
                    _ => part.messages(number).into(),
                },
            ),
            Field::Status => Value::Message(MessageKind::Status, part.inner(15)),
            Field::StatusCode => Value::Int(int32(&Edit::new(part.inner(15)), 3)),
            Field::StatusMessage => Value::Text(Edit::new(part.inner(15)).text(2)),
            Field::EventIndex => return Err("the reference collector gives `event_index` no value here".to_owned()),
            Field::Body => return read_body(&body(part), &Key::resolve_all(keys, self)),
            Field::BodyText => Value::Text(as_text(&body(part)).into()),
            Field::MetricName => Value::Text(self.metric_name.clone()),
            Field::MetricType => {
                let place = self.data().and_then(|data| DATA.iter().position(|number| *number == data));
                Value::Int(place.and_then(|place| i64::try_from(place + 1).ok()).unwrap_or(0))
            }
            Field::Temporality => match self.data() {
                Some(data @ (7 | 9 | 10)) => Value::Int(int32(&Edit::new(part.inner(data)), 2)),
                _ => Value::Nil,
            },
            Field::IsMonotonic => match self.data() {
                Some(7) => Value::Bool(Edit::new(part.inner(7)).bits(3) != 0),
                _ => Value::Nil,
            },
            Field::DataPoints => match self.data() {
                Some(data) => Value::Messages(
                    points_kind(data),
                    match &self.walked {
                        Some(points) => Arc::clone(points),
                        None => Edit::new(part.inner(data)).messages(1).into(),
                    },
                ),
                None => Value::Nil,
            },
            Field::Point(field) => match point_field(self.point_kind, field) {
                Some((number, form)) => read_point(part, number, form),
                None => Value::Nil,
            },
        })
    }

    /// The number of a list of attributes; 0 for the cache.
    pub(super) fn map_number(&self, field: Field) -> Option<u32> {
        match field {
            Field::Cache => Some(0),
            Field::Map(number) => Some(number),
            Field::Point(PointField::Attributes) => Some(self.point_kind.attributes()),
            _ => None,
        }
    }

    fn read_map(&self, level: Level, number: u32, keys: &[Resolved]) -> Result<Value, String> {
        let of_list = |list: &[KeyValue], keys: &[Resolved]| {
            let Some((first, rest)) = keys.split_first() else { return Ok(Value::Map(list.to_vec())) };
            let name = first.name()?;
            match list.iter().find(|entry| entry.key == *name) {
                Some(entry) => keys::read(&entry.value, rest),
                None => Ok(Value::Nil),
            }
        };
        let part = match self.part(level) {
            _ if number == 0 => return of_list(&self.cache, keys),
            None => return of_list(&self.resource.attributes, keys),
            Some(part) => part,
        };
        let Some((first, rest)) = keys.split_first() else { return Ok(Value::Map(part.attributes(number))) };
        match part.attribute(number, first.name()?.as_bytes()) {
            Some(value) => keys::read(&value, rest),
            None => Ok(Value::Nil),
        }
    }

    fn read_trace_state(&self, keys: &[Resolved]) -> Result<Value, String> {
        let state = self.span.text(3);
        let Some(key) = keys.first() else { return Ok(Value::Text(state)) };
        let key = key.name()?;
        Ok(trace_state::get(&state.to_str(), &key.to_str()).map_or(Value::Nil, |value| Value::Text(value.into())))
    }
}

/// The body of a log record.
pub(super) fn body(record: &Edit) -> AnyValue {
    AnyValue::decode(&record.inner(5))
}

fn read_body(body: &AnyValue, keys: &[Resolved]) -> Result<Value, String> {
    if !keys.is_empty() && !matches!(body, AnyValue::Map(_) | AnyValue::Array(_)) {
        return Err(format!("a body that is {} has no keys", Value::from(body.clone()).kind()));
    }
    keys::read(body, keys)
}

fn read_point(point: &Edit, number: u32, form: Form) -> Value {
    let buckets = || Edit::new(point.inner(number));
    let set = |wanted: u32| point.last_of(&[4, 6]) == Some(wanted);
    match form {
        // That is a map and read elsewhere.
        Form::Attributes => Value::Nil,
        Form::Nanoseconds | Form::Count => Value::Int(point.bits(number).cast_signed()),
        Form::Time => Value::Time(point.bits(number).cast_signed()),
        Form::NumberDouble => Value::Double(if set(4) { f64::from_bits(point.bits(4)) } else { 0.0 }),
        Form::NumberInteger => Value::Int(if set(6) { point.bits(6).cast_signed() } else { 0 }),
        Form::Flags => Value::Int(uint32(point, number)),
        Form::Sum => Value::Double(f64::from_bits(point.bits(number))),
        Form::Counts => Value::Counts(point.fixed64s(number)),
        Form::Bounds => Value::Doubles(point.fixed64s(number).into_iter().map(f64::from_bits).collect()),
        Form::Scale => Value::Int(sint32(point, number)),
        Form::Messages(kind) => Value::Messages(kind, point.messages(number).into()),
        Form::Buckets => Value::Message(MessageKind::Buckets, point.inner(number)),
        Form::BucketOffset => Value::Int(sint32(&buckets(), 1)),
        Form::BucketCounts => Value::Counts(buckets().varints(2)),
    }
}

/// What the points in this field of a metric are.
pub(super) fn points_kind(data: u32) -> MessageKind {
    match PointKind::of(data) {
        PointKind::Number => MessageKind::NumberPoints,
        PointKind::Histogram => MessageKind::HistogramPoints,
        PointKind::Exponential => MessageKind::ExponentialPoints,
        PointKind::Summary => MessageKind::SummaryPoints,
    }
}

fn uint32(part: &Edit, number: u32) -> i64 {
    part.last(number).map_or(0, wire::Value::uint32).into()
}

fn int32(part: &Edit, number: u32) -> i64 {
    part.last(number).map_or(0, wire::Value::int32).into()
}

fn sint32(part: &Edit, number: u32) -> i64 {
    part.last(number).map_or(0, wire::Value::sint32).into()
}

fn id<const N: usize>(part: &Edit, number: u32) -> [u8; N] {
    part.bytes(number).try_into().unwrap_or([0; N])
}

fn hexadecimal(id: &[u8]) -> Value {
    Value::Text(data_encoding::HEXLOWER.encode(id).into())
}

/// The word of a span's kind after `prefix`, in capitals if there is one; empty for a number without a word.
fn kind_text(span: &Edit, words: [&'static str; 6], prefix: &str) -> Value {
    let word = usize::try_from(int32(span, 6)).ok().and_then(|kind| words.get(kind).copied());
    Value::Text(match word {
        None => Text::default(),
        Some(word) if prefix.is_empty() => word.into(),
        Some(word) => format!("{prefix}{}", word.to_ascii_uppercase()).into(),
    })
}
