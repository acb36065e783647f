//! Changes of type, with Go's reading and writing of numbers.

use std::fmt::Write as _;

use data_encoding::BASE64;

use crate::otlp::AnyValue;

/// The type to change to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A signed integer.
    Integer,
    /// A floating point number.
    Double,
    /// Text.
    Text,
}

/// The converted value; `None` if it stays as it is.
pub(super) fn convert(value: &AnyValue, target: Target) -> Option<AnyValue> {
    match (target, value) {
        (Target::Integer, AnyValue::Double(value)) => Some(AnyValue::Int(truncate(*value))),
        (Target::Integer, AnyValue::Bool(value)) => Some(AnyValue::Int((*value).into())),
        (Target::Integer, AnyValue::String(text)) => text.to_str().parse().ok().map(AnyValue::Int),
        (Target::Double, AnyValue::Int(value)) => Some(AnyValue::Double(*value as f64)),
        (Target::Double, AnyValue::Bool(value)) => Some(AnyValue::Double(f64::from(u8::from(*value)))),
        (Target::Double, AnyValue::String(text)) => parse_double(&text.to_str()).map(AnyValue::Double),
        (Target::Text, AnyValue::String(_)) | (Target::Integer | Target::Double, _) => None,
        (Target::Text, other) => Some(AnyValue::from(to_text(other))),
    }
}

/// Go on amd64 gives the least integer for what does not fit.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn truncate(value: f64) -> i64 {
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value);
    if fits { value as i64 } else { i64::MIN }
}

/// A number too large for a double is an error in Go, not an infinity.
fn parse_double(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    let digits = text.bytes().any(|byte| byte.is_ascii_digit());
    if value.is_infinite() && digits { None } else { Some(value) }
}

fn to_text(value: &AnyValue) -> String {
    match value {
        AnyValue::Empty => String::new(),
        AnyValue::String(text) => text.to_str().into_owned(),
        AnyValue::Bool(value) => value.to_string(),
        AnyValue::Int(value) => value.to_string(),
        AnyValue::Double(value) if value.is_finite() => double_text(*value),
        AnyValue::Double(value) => format!("json: unsupported value: {}", go_special(*value)),
        AnyValue::Bytes(bytes) => BASE64.encode(bytes),
        AnyValue::Array(_) | AnyValue::Map(_) => {
            let mut text = String::new();
            // One number that JSON cannot have makes the whole text empty, as in Go.
            if write_json(&mut text, value).is_some() { text } else { String::new() }
        }
    }
}

fn go_special(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "+Inf"
    } else {
        "-Inf"
    }
}

/// Shortest digits; with an exponent below 1e-6 and from 1e21 on.
fn double_text(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{value:e}");
        if text.contains("e-") { text } else { text.replace('e', "e+") }
    } else {
        value.to_string()
    }
}

fn write_json(out: &mut String, value: &AnyValue) -> Option<()> {
    match value {
        AnyValue::Empty => out.push_str("null"),
        AnyValue::String(text) => write_quoted(out, &text.to_str()),
        AnyValue::Double(value) if !value.is_finite() => return None,
        AnyValue::Bool(_) | AnyValue::Int(_) | AnyValue::Double(_) => out.push_str(&to_text(value)),
        AnyValue::Bytes(bytes) => write_quoted(out, &BASE64.encode(bytes)),
        AnyValue::Array(values) => {
            out.push('[');
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(out, value)?;
            }
            out.push(']');
        }
        AnyValue::Map(entries) => {
            // Go sorts the keys, and of equal ones has the last.
            let sorted: std::collections::BTreeMap<_, _> =
                entries.iter().map(|entry| (entry.key.as_bytes(), entry)).collect();
            out.push('{');
            for (index, entry) in sorted.values().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_quoted(out, &entry.key.to_str());
                out.push(':');
                write_json(out, &entry.value)?;
            }
            out.push('}');
        }
    }
    Some(())
}

fn write_quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' | '\u{2028}' | '\u{2029}' => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::KeyValue;

    #[test]
    fn to_numbers() {
        let integer = |value: AnyValue| convert(&value, Target::Integer);
        assert_eq!(integer("123".into()), Some(AnyValue::Int(123)));
        assert_eq!(integer("-2".into()), Some(AnyValue::Int(-2)));
        for text in [" 5", "-5 ", "0x1f", "1_0", "1.5", "9223372036854775808", ""] {
            assert_eq!(integer(text.into()), None, "{text}");
        }
        assert_eq!(integer(3.99.into()), Some(AnyValue::Int(3)));
        assert_eq!(integer((-2.5).into()), Some(AnyValue::Int(-2)));
        assert_eq!(integer(f64::NAN.into()), Some(AnyValue::Int(i64::MIN)));
        assert_eq!(integer(true.into()), Some(AnyValue::Int(1)));
        let double = |value: AnyValue| convert(&value, Target::Double);
        assert_eq!(double("2.5e1".into()), Some(AnyValue::Double(25.0)));
        assert!(matches!(double("NaN".into()), Some(AnyValue::Double(value)) if value.is_nan()));
        assert_eq!(double("1e999".into()), None);
        assert_eq!(double(42.into()), Some(AnyValue::Double(42.0)));
    }

    #[test]
    fn to_text() {
        let text = |value: AnyValue| match convert(&value, Target::Text) {
            Some(AnyValue::String(text)) => text.to_str().into_owned(),
            other => panic!("{other:?}"),
        };
        for (value, expected) in
            [(1.0, "1"), (-0.0, "-0"), (1e21, "1e+21"), (1e-6, "0.000001"), (1e-7, "1e-7"), (0.1, "0.1")]
        {
            assert_eq!(text(value.into()), expected);
        }
        assert_eq!(text(f64::INFINITY.into()), "json: unsupported value: +Inf");
        let list = AnyValue::Array(vec!["a<\n".into(), 1.into(), AnyValue::Empty]);
        assert_eq!(text(list), r#"["a<\n",1,null]"#);
        let map = AnyValue::Map(vec![KeyValue::new("k", 1), KeyValue::new("j", "x")]);
        assert_eq!(text(map), r#"{"j":"x","k":1}"#);
        assert_eq!(text(AnyValue::Bytes(vec![1, 255].into())), "Af8=");
        assert_eq!(convert(&"x".into(), Target::Text), None);
    }
}
