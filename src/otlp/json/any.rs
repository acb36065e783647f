//! JSON of any form as a value.

use bytes::Bytes;

use crate::otlp::validate::DecodeError;
use crate::otlp::value::{AnyValue, KeyValue, Text};
use crate::otlp::wire::MAX_DEPTH;

use super::read::JsonReader;

/// Levels of the wire form that a list or map in another one takes.
const LEVELS: usize = 2;

/// Reads a JSON text as a whole, leniently, as the reference reads texts in the telemetry: numbers become doubles, null an empty value; of equal keys the last one counts. Nested
/// as deeply as the wire form may be, less what is around an attribute.
pub fn parse_json(text: &[u8]) -> Result<AnyValue, DecodeError> {
    let mut reader = JsonReader::lenient(text);
    let value = read(&mut reader, 8)?;
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(reader.error("text after the value")),
    }
}

fn read(reader: &mut JsonReader<'_>, depth: usize) -> Result<AnyValue, DecodeError> {
    Ok(match reader.peek() {
        _ if depth > MAX_DEPTH => return Err(reader.error("nested too deeply")),
        Some(b'{') => {
            let mut entries: Vec<KeyValue> = Vec::new();
            reader.object(|reader, key| {
                let key = Text::from(Bytes::copy_from_slice(key));
                let value = read(reader, depth + LEVELS)?;
                match entries.iter_mut().find(|entry| entry.key == key) {
                    Some(entry) => entry.value = value,
                    None => entries.push(KeyValue { key, value }),
                }
                Ok(())
            })?;
            AnyValue::Map(entries)
        }
        Some(b'[') => {
            let mut values = Vec::new();
            reader.list(|reader| {
                values.push(read(reader, depth + LEVELS)?);
                Ok(())
            })?;
            AnyValue::Array(values)
        }
        Some(b'"') => AnyValue::String(Bytes::copy_from_slice(&reader.string()?).into()),
        Some(b't' | b'f') => AnyValue::Bool(reader.boolean()?),
        Some(b'n') if reader.null() => AnyValue::Empty,
        _ => {
            let number = reader.number()?.parse().ok().filter(|number: &f64| number.is_finite());
            AnyValue::Double(number.ok_or_else(|| reader.error("the number is too large"))?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_json_becomes_a_value() {
        let value = parse_json(br#" {"a": [1, -2.5e1, null, true], "b": "x\ud800", "a": {"c": ""}} "#).expect("reads");
        let AnyValue::Map(entries) = value else { panic!("a map") };
        let inner = AnyValue::Map(vec![KeyValue::new("c", "")]);
        assert_eq!(entries, [KeyValue::new("a", inner), KeyValue::new("b", "x\u{fffd}")]);
        assert_eq!(parse_json(b"[1,null]").expect("reads"), AnyValue::Array(vec![1.0.into(), AnyValue::Empty]));
        for wrong in ["", "{", "[1,]", "{} x", "1e999", "{\"a\" 1}", "nope", "'a'"] {
            assert!(parse_json(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let lenient = parse_json(b"[01, 1., -.5, \"a\n\x01\"]").expect("reads");
        assert_eq!(lenient, AnyValue::Array(vec![1.0.into(), 1.0.into(), (-0.5).into(), "a\n\u{1}".into()]));
        for wrong in ["[+1]", "[1-2]", "[.5]", "[\"\0\"]", "[1e]"] {
            assert!(parse_json(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(parse_json("[".repeat(10_000).as_bytes()).is_err());
    }
}
