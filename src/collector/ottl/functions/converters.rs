//! The converters.

use aws_lc_rs::digest;
use data_encoding::HEXLOWER;

use super::super::arguments::{ArgumentKind, Arguments, boolean_like, bytes_like, double_like, integer_like};
use super::super::context::Level;
use super::super::scene::{PointKind, Scene};
use super::super::value::{Value, time_text};
use super::{Function, converter, required, texts};
use crate::collector::config::duration::go_text;
use crate::collector::text::go_format::{Printable, format};
use crate::collector::text::value_text::{Flavour, json};
use crate::otlp::{AnyValue, Edit, KeyValue, Text, parse_json};

pub(super) const CONVERTERS: &[Function] = &[
    texts::CONCAT,
    texts::SPLIT,
    texts::SUBSTRING,
    texts::TRIM,
    texts::TO_LOWER_CASE,
    texts::TO_UPPER_CASE,
    texts::CONVERT_CASE,
    texts::HAS_PREFIX,
    texts::HAS_SUFFIX,
    texts::IS_MATCH,
    texts::EXTRACT_PATTERNS,
    converter(
        "Format",
        &[required("format", ArgumentKind::LiteralText), required("vals", ArgumentKind::Values)],
        |arguments, scene| {
            let values = arguments.expressions(1)?.iter().map(|value| value.evaluate(scene).map(printable));
            let values: Vec<Printable> = values.collect::<Result<_, _>>()?;
            let pattern = arguments.literal_text(0).map(|text| text.to_str()).unwrap_or_default();
            Ok(Value::Text(format(&pattern, &values)?.into()))
        },
    ),
    converter("Hex", &[required("target", ArgumentKind::BytesLike)], |arguments, scene| {
        let bytes = bytes_like(arguments.value(0, scene)?)?.unwrap_or_default();
        Ok(Value::Text(HEXLOWER.encode(&bytes).into()))
    }),
    converter("Int", &[required("target", ArgumentKind::IntegerLike)], |arguments, scene| {
        Ok(integer_like(arguments.value(0, scene)?)?.map_or(Value::Nil, Value::Int))
    }),
    converter("Double", &[required("target", ArgumentKind::DoubleLike)], |arguments, scene| {
        Ok(double_like(arguments.value(0, scene)?)?.map_or(Value::Nil, Value::Double))
    }),
    converter("String", &[required("target", ArgumentKind::TextLike)], |arguments, scene| {
        Ok(arguments.value(0, scene)?.to_text()?.map_or(Value::Nil, Value::Text))
    }),
    converter("Bool", &[required("target", ArgumentKind::BooleanLike)], |arguments, scene| {
        Ok(boolean_like(arguments.value(0, scene)?)?.map_or(Value::Nil, Value::Bool))
    }),
    converter("Len", &[required("target", ArgumentKind::Any)], |arguments, scene| {
        let length = match arguments.value(0, scene)? {
            Value::Text(text) => text.as_bytes().len(),
            Value::Bytes(bytes) => bytes.len(),
            Value::Map(entries) => entries.len(),
            Value::Slice(values) => values.len(),
            Value::List(values) => values.len(),
            Value::Texts(texts) => texts.len(),
            Value::Doubles(numbers) => numbers.len(),
            Value::Counts(numbers) => numbers.len(),
            Value::Messages(_, messages) => messages.len(),
            other => return Err(format!("{} has no length", other.kind())),
        };
        Ok(Value::Int(i64::try_from(length).unwrap_or(i64::MAX)))
    }),
    converter("IsString", &[required("target", ArgumentKind::Text)], |arguments, scene| {
        Ok(Value::Bool(matches!(arguments.value(0, scene)?, Value::Text(_))))
    }),
    converter("IsMap", &[required("target", ArgumentKind::Map)], |arguments, scene| {
        Ok(Value::Bool(matches!(arguments.value(0, scene)?, Value::Map(_))))
    }),
    converter("IsRootSpan", &[], |_, scene| Ok(Value::Bool(scene.span.bytes(4).iter().all(|byte| *byte == 0))))
        .only(Level::Span),
    converter("ParseJSON", &[required("target", ArgumentKind::Text)], |arguments, scene| {
        match parse_json(arguments.text(0, scene)?.as_bytes()).map_err(|error| format!("no JSON: {error}"))? {
            AnyValue::Map(entries) => Ok(Value::Map(entries)),
            AnyValue::Array(values) => Ok(Value::Slice(values)),
            other => Err(format!("JSON of {}, where an object or a list is needed", Value::from(other).kind())),
        }
    }),
    converter("SHA256", &[required("target", ArgumentKind::Text)], |arguments, scene| {
        let text = arguments.text(0, scene)?;
        Ok(Value::Text(HEXLOWER.encode(digest::digest(&digest::SHA256, text.as_bytes()).as_ref()).into()))
    }),
];

/// What only conditions on metrics have.
pub(in super::super) const POINT_CONVERTERS: &[Function] = &[
    converter(
        "HasAttrOnDatapoint",
        &[required("key", ArgumentKind::LiteralText), required("expected_val", ArgumentKind::LiteralText)],
        |arguments, scene| has_attribute(scene, arguments, true),
    )
    .only(Level::Metric),
    converter("HasAttrKeyOnDatapoint", &[required("key", ArgumentKind::LiteralText)], |arguments, scene| {
        has_attribute(scene, arguments, false)
    })
    .only(Level::Metric),
];

/// Whether the first data point that has the attribute has this text in it; without a text, whether one has it.
fn has_attribute(scene: &Scene, arguments: Arguments<'_>, compared: bool) -> Result<Value, String> {
    let Some(data) = scene.data() else { return Err("the metric has no type".to_owned()) };
    let key = arguments.literal_text(0).cloned().unwrap_or_default();
    let number = PointKind::of(data).attributes();
    let points = Edit::new(scene.metric.inner(data)).messages(1);
    let found = points.into_iter().find_map(|point| Edit::new(point).attribute(number, key.as_bytes()));
    let expected = arguments.literal_text(1).cloned().unwrap_or_default();
    Ok(Value::Bool(match found {
        Some(AnyValue::String(text)) => !compared || text == expected,
        // What is no text counts as an empty one.
        Some(_) => !compared || expected.is_empty(),
        None => false,
    }))
}

fn printable(value: Value) -> Printable {
    let of_any = |value: AnyValue| printable(Value::from(value));
    match value {
        Value::Nil => Printable::Nil,
        Value::Bool(value) => Printable::Bool(value),
        Value::Int(value) => Printable::Int(value),
        Value::Double(value) => Printable::Double(value),
        Value::Text(text) => Printable::Text(text.to_str().into_owned()),
        Value::Bytes(bytes) => Printable::Bytes(bytes.to_vec()),
        Value::List(values) => Printable::List(values.into_iter().map(printable).collect(), "[]interface {}"),
        Value::Texts(texts) => {
            let text = |text: Text| Printable::Text(text.to_str().into_owned());
            Printable::List(texts.into_iter().map(text).collect(), "[]string")
        }
        Value::Doubles(numbers) => Printable::List(numbers.into_iter().map(Printable::Double).collect(), "[]float64"),
        Value::Counts(numbers) => {
            let number = |number: u64| Printable::Int(number.cast_signed());
            Printable::List(numbers.into_iter().map(number).collect(), "[]uint64")
        }
        // The reference shows addresses of memory here; JSON is of more use.
        Value::Map(entries) => shown(json_of(&AnyValue::Map(entries)), "pcommon.Map"),
        Value::Slice(values) if values.iter().all(|value| !matches!(value, AnyValue::Map(_))) => {
            Printable::List(values.into_iter().map(of_any).collect(), "pcommon.Slice")
        }
        Value::Slice(values) => shown(json_of(&AnyValue::Array(values)), "pcommon.Slice"),
        Value::Time(time) => shown(go_time(time), "time.Time"),
        Value::Duration(duration) => {
            let sign = if duration < 0 { "-" } else { "" };
            let size = std::time::Duration::from_nanos(duration.unsigned_abs());
            let inner = Box::new(Printable::Int(duration));
            Printable::Shown(format!("{sign}{}", go_text(size)), "time.Duration", inner)
        }
        Value::TraceId(id) => shown_id(&id, "pcommon.TraceID"),
        Value::SpanId(id) => shown_id(&id, "pcommon.SpanID"),
        Value::Messages(..) | Value::Message(..) => shown("{}".to_owned(), "struct"),
    }
}

fn json_of(value: &AnyValue) -> String {
    json(value, Flavour::Plain).unwrap_or_default()
}

fn shown(text: String, name: &'static str) -> Printable {
    let inner = Box::new(Printable::Text(text.clone()));
    Printable::Shown(text, name, inner)
}

/// No id shows nothing.
fn shown_id(id: &[u8], name: &'static str) -> Printable {
    let text = if id.iter().all(|byte| *byte == 0) { String::new() } else { HEXLOWER.encode(id) };
    Printable::Shown(text, name, Box::new(Printable::Bytes(id.to_vec())))
}

/// `2023-11-14 22:13:20.25 +0000 UTC`.
fn go_time(nanoseconds: i64) -> String {
    time_text(nanoseconds).replace('T', " ").replace('Z', " +0000 UTC")
}

/// The attributes of nothing, for converters that find nothing.
pub(super) fn empty_map() -> Value {
    Value::Map(Vec::<KeyValue>::new())
}
