//! Values as text, in the forms that Go gives them: the reference shows these in attributes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use data_encoding::BASE64;

use crate::otlp::{AnyValue, KeyValue};

/// The reference writes JSON with two libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// For the text of an attribute.
    Plain,
    /// For the text that a statement asks for: `<`, `>` and `&` are escaped, exponents have two digits.
    Escaped,
}

/// The text of any value: scalars as they are, bytes as base64, lists and maps as JSON (empty where a number in them
/// has no JSON).
#[must_use]
pub fn as_text(value: &AnyValue) -> String {
    match value {
        AnyValue::Empty => String::new(),
        AnyValue::String(text) => text.to_str().into_owned(),
        AnyValue::Bool(value) => value.to_string(),
        AnyValue::Int(value) => value.to_string(),
        AnyValue::Double(value) => double_text(*value),
        AnyValue::Bytes(bytes) => BASE64.encode(bytes),
        AnyValue::Array(_) | AnyValue::Map(_) => json(value, Flavour::Plain).unwrap_or_default(),
    }
}

/// A double: shortest digits, with an exponent below 1e-6 and from 1e21 on.
#[must_use]
pub fn double_text(value: f64) -> String {
    let size = value.abs();
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() }
    } else if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{value:e}");
        if text.contains("e-") { text } else { text.replace('e', "e+") }
    } else {
        value.to_string()
    }
}

/// A finite number as JSON has it.
#[must_use]
pub fn json_double(value: f64, flavour: Flavour) -> String {
    let text = double_text(value);
    match text.split_once("e-") {
        Some((digits, exponent)) if flavour == Flavour::Escaped => format!("{digits}e-{exponent:0>2}"),
        _ => text,
    }
}

/// JSON; None where a number is infinite or none.
#[must_use]
pub fn json(value: &AnyValue, flavour: Flavour) -> Option<String> {
    let mut out = String::new();
    write_json(&mut out, value, flavour)?;
    Some(out)
}

fn write_json(out: &mut String, value: &AnyValue, flavour: Flavour) -> Option<()> {
    match value {
        AnyValue::Empty => out.push_str("null"),
        AnyValue::String(text) => write_quoted(out, &text.to_str(), flavour),
        AnyValue::Double(value) if !value.is_finite() => return None,
        AnyValue::Double(value) => out.push_str(&json_double(*value, flavour)),
        AnyValue::Bool(_) | AnyValue::Int(_) => out.push_str(&as_text(value)),
        AnyValue::Bytes(bytes) => write_quoted(out, &BASE64.encode(bytes), flavour),
        AnyValue::Array(values) => {
            out.push('[');
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(out, value, flavour)?;
            }
            out.push(']');
        }
        AnyValue::Map(entries) => {
            // Go sorts the keys, and of equal ones has the last.
            let sorted: BTreeMap<&[u8], &KeyValue> =
                entries.iter().map(|entry| (entry.key.as_bytes(), entry)).collect();
            out.push('{');
            for (index, entry) in sorted.values().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_quoted(out, &entry.key.to_str(), flavour);
                out.push(':');
                write_json(out, &entry.value, flavour)?;
            }
            out.push('}');
        }
    }
    Some(())
}

/// A JSON string.
pub fn write_quoted(out: &mut String, text: &str, flavour: Flavour) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' if flavour == Flavour::Plain => out.push(c),
            '\0'..='\u{1f}' | '\u{2028}' | '\u{2029}' | '<' | '>' | '&' => {
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

    #[test]
    fn scalars_lists_and_maps() {
        for (value, expected) in
            [(1.0, "1"), (-0.0, "-0"), (1e21, "1e+21"), (1e-6, "0.000001"), (1e-7, "1e-7"), (0.1, "0.1")]
        {
            assert_eq!(as_text(&value.into()), expected);
        }
        assert_eq!(json(&1.5e-9.into(), Flavour::Escaped).as_deref(), Some("1.5e-09"));
        assert_eq!(as_text(&f64::NEG_INFINITY.into()), "-Infinity");
        let list = AnyValue::Array(vec!["a<\n".into(), 1.into(), AnyValue::Empty]);
        assert_eq!(as_text(&list), r#"["a<\n",1,null]"#);
        assert_eq!(json(&list, Flavour::Escaped).as_deref(), Some(r#"["a\u003c\n",1,null]"#));
        let map = AnyValue::Map(vec![KeyValue::new("k", 1), KeyValue::new("j", "x"), KeyValue::new("k", 2)]);
        assert_eq!(as_text(&map), r#"{"j":"x","k":2}"#);
        assert_eq!(as_text(&AnyValue::Bytes(vec![1, 255].into())), "Af8=");
        assert_eq!(as_text(&AnyValue::Array(vec![f64::NAN.into()])), "");
    }
}
