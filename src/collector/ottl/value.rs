//! What statements compute with.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use data_encoding::HEXLOWER;

use super::syntax::Comparison;
use crate::collector::text::value_text::{Flavour, json, json_double, write_quoted};
use crate::otlp::{AnyValue, KeyValue, Text, same_list, same_map};

/// A value while a statement runs. Lists come in several kinds, which the reference does not compare with each other.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Nil,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(Text),
    Bytes(Bytes),
    /// A map of the telemetry, or one written in the statement.
    Map(Vec<KeyValue>),
    /// A list of the telemetry.
    Slice(Vec<AnyValue>),
    /// A list written in the statement.
    List(Vec<Value>),
    /// What `Split` gives.
    Texts(Vec<Text>),
    /// Bounds of buckets.
    Doubles(Vec<f64>),
    /// Counts of buckets.
    Counts(Vec<u64>),
    /// Nanoseconds since 1970.
    Time(i64),
    /// Nanoseconds.
    Duration(i64),
    TraceId([u8; 16]),
    SpanId([u8; 8]),
    /// A list of messages of one kind.
    Messages(MessageKind, Arc<[Bytes]>),
    /// One message.
    Message(MessageKind, Bytes),
}

/// Parts of the telemetry that a statement can only take as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageKind {
    Events,
    Links,
    Exemplars,
    Quantiles,
    NumberPoints,
    HistogramPoints,
    ExponentialPoints,
    SummaryPoints,
    Status,
    Buckets,
}

impl From<AnyValue> for Value {
    fn from(value: AnyValue) -> Self {
        match value {
            AnyValue::Empty => Self::Nil,
            AnyValue::String(text) => Self::Text(text),
            AnyValue::Bool(value) => Self::Bool(value),
            AnyValue::Int(value) => Self::Int(value),
            AnyValue::Double(value) => Self::Double(value),
            AnyValue::Array(values) => Self::Slice(values),
            AnyValue::Map(entries) => Self::Map(entries),
            AnyValue::Bytes(bytes) => Self::Bytes(bytes),
        }
    }
}

impl Value {
    /// What it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Bool(_) => "a boolean",
            Self::Int(_) => "an integer",
            Self::Double(_) => "a double",
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytes",
            Self::Map(_) => "a map",
            Self::Slice(_) | Self::List(_) | Self::Texts(_) | Self::Doubles(_) | Self::Counts(_) => "a list",
            Self::Time(_) => "a time",
            Self::Duration(_) => "a duration",
            Self::TraceId(_) => "a trace id",
            Self::SpanId(_) => "a span id",
            Self::Messages(..) => "a list of messages",
            Self::Message(..) => "a message",
        }
    }

    /// Puts it in the place of `target`, which keeps its value (or loses part of it) if there is an error.
    pub fn store(self, target: &mut AnyValue) -> Result<(), String> {
        *target = match self {
            Self::Nil => AnyValue::Empty,
            Self::Bool(value) => AnyValue::Bool(value),
            Self::Int(value) => AnyValue::Int(value),
            Self::Double(value) => AnyValue::Double(value),
            Self::Text(text) => AnyValue::String(text),
            Self::Bytes(bytes) => AnyValue::Bytes(bytes),
            Self::Map(entries) => AnyValue::Map(entries),
            Self::Slice(values) => AnyValue::Array(values),
            Self::Texts(texts) => AnyValue::Array(texts.into_iter().map(AnyValue::String).collect()),
            Self::Doubles(numbers) => AnyValue::Array(numbers.into_iter().map(AnyValue::Double).collect()),
            Self::List(values) => {
                // Of an element that cannot be stored an empty value stays; only the last one's error counts.
                let (mut elements, mut last) = (Vec::with_capacity(values.len()), Ok(()));
                for value in values {
                    let mut element = AnyValue::Empty;
                    last = value.store(&mut element);
                    elements.push(element);
                }
                *target = AnyValue::Array(elements);
                return last;
            }
            other => return Err(format!("{} cannot be the value of an attribute", other.kind())),
        };
        Ok(())
    }

    /// As an element of a map that is written in a statement: the same, without partial success, and without the lists
    /// that the reference does not take there.
    pub fn into_any(self) -> Result<AnyValue, String> {
        match self {
            Self::Slice(_) | Self::Texts(_) | Self::Doubles(_) => {
                Err(format!("{} of the telemetry or of a converter cannot stand in a map", self.kind()))
            }
            Self::List(values) => values.into_iter().map(Self::into_any).collect::<Result<_, _>>().map(AnyValue::Array),
            other => {
                let mut value = AnyValue::Empty;
                other.store(&mut value)?;
                Ok(value)
            }
        }
    }

    /// The text of anything; None for nil.
    pub fn to_text(&self) -> Result<Option<Text>, String> {
        let no_json = || format!("{} has no text", self.kind());
        Ok(Some(match self {
            Self::Nil => return Ok(None),
            Self::Text(text) => text.clone(),
            Self::Bytes(bytes) => HEXLOWER.encode(bytes).into(),
            other => other.json().ok_or_else(no_json)?.into(),
        }))
    }

    fn json(&self) -> Option<String> {
        let list = |values: &mut dyn Iterator<Item = Option<String>>| {
            Some(format!("[{}]", values.collect::<Option<Vec<String>>>()?.join(",")))
        };
        let quoted = |text: &str| {
            let mut out = String::new();
            write_quoted(&mut out, text, Flavour::Escaped);
            out
        };
        let number = |value: f64| value.is_finite().then(|| json_double(value, Flavour::Escaped));
        let bytes = |bytes: &[u8]| list(&mut bytes.iter().map(|byte| Some(byte.to_string())));
        match self {
            Self::Nil => Some("null".to_owned()),
            Self::Bool(value) => Some(value.to_string()),
            Self::Int(value) | Self::Duration(value) => Some(value.to_string()),
            Self::Double(value) => number(*value),
            Self::Text(text) => Some(quoted(&text.to_str())),
            Self::Bytes(bytes) => Some(quoted(&data_encoding::BASE64.encode(bytes))),
            Self::Map(entries) => json(&AnyValue::Map(entries.clone()), Flavour::Escaped),
            Self::Slice(values) => json(&AnyValue::Array(values.clone()), Flavour::Escaped),
            Self::List(values) => list(&mut values.iter().map(|value| match value {
                // The reference has nothing to show of these in a list.
                Self::Map(_) | Self::Slice(_) => Some("{}".to_owned()),
                value => value.json(),
            })),
            Self::Texts(texts) => list(&mut texts.iter().map(|text| Some(quoted(&text.to_str())))),
            Self::Doubles(numbers) => list(&mut numbers.iter().map(|value| number(*value))),
            Self::Counts(numbers) => list(&mut numbers.iter().map(|value| Some(value.to_string()))),
            Self::Time(time) => Some(quoted(&time_text(*time))),
            Self::TraceId(id) => bytes(id),
            Self::SpanId(id) => bytes(id),
            Self::Messages(..) | Self::Message(..) => Some("{}".to_owned()),
        }
    }
}

/// RFC 3339 in UTC, without zeros at the end of the fraction.
pub(super) fn time_text(nanoseconds: i64) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(nanoseconds))
        .map_or_else(|_| nanoseconds.to_string(), |time| time.to_string())
}

/// Values of different types are not equal and not ordered, but for integers and doubles, which are compared as numbers.
/// Nil and an empty value are the same.
pub(super) fn compare(comparison: Comparison, left: &Value, right: &Value) -> bool {
    let ordered = |order: Option<Ordering>| match comparison {
        Comparison::Equal => order == Some(Ordering::Equal),
        Comparison::NotEqual => order != Some(Ordering::Equal),
        Comparison::Less => order == Some(Ordering::Less),
        Comparison::LessOrEqual => order.is_some_and(Ordering::is_le),
        Comparison::Greater => order == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
    };
    // What can only be equal or not.
    let equal = |equal: bool| match comparison {
        Comparison::Equal => equal,
        Comparison::NotEqual => !equal,
        _ => false,
    };
    match (left, right) {
        (Value::Nil, Value::Nil) => ordered(Some(Ordering::Equal)),
        // Bytes without a byte are nil to the reference, but only on the left.
        (Value::Nil, other) => compare(comparison, other, &Value::Nil),
        (Value::Bytes(left), Value::Nil) if left.is_empty() => ordered(Some(Ordering::Equal)),
        (Value::Bytes(left), other) if left.is_empty() => match other {
            Value::Bytes(right) if right.is_empty() => ordered(Some(Ordering::Equal)),
            other => compare(comparison, other, &Value::Nil),
        },
        (Value::Bytes(left), Value::Bytes(right)) if !right.is_empty() => ordered(Some(left.cmp(right))),
        (Value::Bool(left), Value::Bool(right)) => ordered(Some(left.cmp(right))),
        (Value::Text(left), Value::Text(right)) => ordered(Some(left.as_bytes().cmp(right.as_bytes()))),
        (Value::Int(left), Value::Int(right)) | (Value::Time(left), Value::Time(right)) => {
            ordered(Some(left.cmp(right)))
        }
        (Value::Duration(left), Value::Duration(right)) => ordered(Some(left.cmp(right))),
        (Value::Int(left), Value::Double(right)) => ordered((*left as f64).partial_cmp(right)),
        (Value::Double(left), Value::Int(right)) => ordered(left.partial_cmp(&(*right as f64))),
        (Value::Double(left), Value::Double(right)) => ordered(left.partial_cmp(right)),
        (Value::Map(left), Value::Map(right)) => equal(same_map(left, right)),
        (Value::List(left), Value::List(right)) => equal(left == right),
        (Value::Slice(slice), Value::List(list)) | (Value::List(list), Value::Slice(slice)) => {
            equal(is_written(slice, list))
        }
        (Value::Slice(left), Value::Slice(right)) => equal(same_list(left, right)),
        (
            Value::Texts(_)
            | Value::Doubles(_)
            | Value::Counts(_)
            | Value::TraceId(_)
            | Value::SpanId(_)
            | Value::Messages(..)
            | Value::Message(..),
            _,
        ) => equal(left == right),
        _ => comparison == Comparison::NotEqual,
    }
}

/// Whether a list of the telemetry is what a statement has written. Maps in it never are, to the reference.
fn is_written(slice: &[AnyValue], list: &[Value]) -> bool {
    let same = |(element, written): (&AnyValue, &Value)| match (element, written) {
        (AnyValue::Array(values), Value::List(list)) => is_written(values, list),
        (AnyValue::Map(_) | AnyValue::Array(_), _) => false,
        (element, written) => Value::from(element.clone()) == *written,
    };
    slice.len() == list.len() && slice.iter().zip(list).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(left: &Value, comparison: Comparison, right: &Value) -> bool {
        compare(comparison, left, right)
    }

    #[test]
    fn comparisons_need_equal_types_but_numbers() {
        use Comparison::{Equal, Greater, Less, LessOrEqual, NotEqual};
        let text = |text: &str| Value::Text(text.into());
        assert!(holds(&Value::Int(1), Equal, &Value::Double(1.0)));
        assert!(holds(&text("1"), NotEqual, &Value::Int(1)) && !holds(&text("1"), Less, &Value::Int(2)));
        assert!(holds(&text("a"), Less, &text("b")) && holds(&Value::Bool(true), Greater, &Value::Bool(false)));
        assert!(holds(&Value::Nil, LessOrEqual, &Value::Nil) && holds(&Value::Nil, NotEqual, &text("")));
        assert!(!holds(&Value::Double(f64::NAN), Equal, &Value::Double(f64::NAN)));
        let bytes = |bytes: &'static [u8]| Value::Bytes(Bytes::from_static(bytes));
        assert!(holds(&bytes(b"a"), Less, &bytes(b"b")) && holds(&bytes(b""), Equal, &Value::Nil));
        assert!(holds(&bytes(b""), Equal, &bytes(b"")) && holds(&bytes(b"a"), NotEqual, &bytes(b"")));
    }

    #[test]
    fn lists_and_maps_are_equal_or_not() {
        let slice = Value::Slice(vec![AnyValue::Int(1), "a".into()]);
        let list = Value::List(vec![Value::Int(1), Value::Text("a".into())]);
        assert!(compare(Comparison::Equal, &slice, &list) && !compare(Comparison::LessOrEqual, &slice, &list));
        assert!(compare(Comparison::NotEqual, &list, &Value::Texts(vec!["a".into()])));
        let map = |keys: [&str; 2]| Value::Map(keys.map(|key| KeyValue::new(key, 1)).to_vec());
        assert!(compare(Comparison::Equal, &map(["a", "b"]), &map(["b", "a"])));
        assert!(compare(Comparison::NotEqual, &map(["a", "b"]), &map(["b", "c"])));
    }

    #[test]
    fn texts_of_values() {
        let text = |value: Value| value.to_text().expect("a text").map(|text| text.to_str().into_owned());
        assert_eq!(text(Value::Nil), None);
        assert_eq!(text(Value::Double(1.0)).as_deref(), Some("1"));
        assert_eq!(text(Value::Bytes(vec![1, 255].into())).as_deref(), Some("01ff"));
        assert_eq!(text(Value::Slice(vec!["<".into(), AnyValue::Empty])).as_deref(), Some(r#"["\u003c",null]"#));
        assert_eq!(text(Value::Time(1_700_000_000_250_000_000)).as_deref(), Some("\"2023-11-14T22:13:20.25Z\""));
        assert!(Value::Double(f64::NAN).to_text().is_err());
    }

    #[test]
    fn what_cannot_be_stored() {
        let mut target = AnyValue::Int(1);
        assert!(Value::TraceId([1; 16]).store(&mut target).is_err());
        assert_eq!(target, AnyValue::Int(1));
        assert!(Value::List(vec![Value::TraceId([1; 16]), Value::Int(2)]).store(&mut target).is_ok());
        assert_eq!(target, AnyValue::Array(vec![AnyValue::Empty, AnyValue::Int(2)]));
    }
}
