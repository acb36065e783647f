//! JSON of any form as a value.

use bytes::Bytes;
use indexmap::IndexMap;

use crate::otlp::validate::DecodeError;
use crate::otlp::value::{AnyValue, KeyValue, OUTERMOST, Text};
use crate::otlp::wire::MAX_DEPTH;

use super::read::JsonReader;

/// Reads a JSON text as a whole, leniently, as the reference reads texts in the telemetry: numbers become doubles, null
/// an empty value; of equal keys the last one counts. Nested as deeply as the wire form may be wherever the value is put.
pub fn parse_json(text: &[u8]) -> Result<AnyValue, DecodeError> {
    let mut reader = JsonReader::lenient(text);
    let value = read(&mut reader, OUTERMOST)?;
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(reader.error("text after the value")),
    }
}

/// `depth` is how many messages are around the content of the value's own.
fn read(reader: &mut JsonReader<'_>, depth: usize) -> Result<AnyValue, DecodeError> {
    Ok(match reader.peek() {
        Some(b'{' | b'[') if depth + 1 > MAX_DEPTH => return Err(reader.error("nested too deeply")),
        _ if depth > MAX_DEPTH => return Err(reader.error("nested too deeply")),
        Some(b'{') => {
            let mut entries: IndexMap<Text, AnyValue> = IndexMap::new();
            reader.object(|reader, key| {
                let key = Text::from(Bytes::copy_from_slice(key));
                entries.insert(key, read(reader, depth + 3)?);
                Ok(())
            })?;
            AnyValue::Map(entries.into_iter().map(|(key, value)| KeyValue { key, value }).collect())
        }
        Some(b'[') => {
            let mut values = Vec::new();
            reader.list(|reader| {
                values.push(read(reader, depth + 2)?);
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

    #[test]
    fn what_is_read_may_be_put_everywhere() {
        use crate::otlp::value::DEEPEST_VALUE;
        for (open, close, most) in [("[", "]", 96), ("{\"a\":", "}", 64), ("[{\"a\":", "}]", 38)] {
            let read =
                |levels: usize| parse_json(format!("{}1{}", open.repeat(levels), close.repeat(levels)).as_bytes());
            assert!(read(most).expect("fits").levels() <= DEEPEST_VALUE && read(most + 1).is_err(), "{open}");
        }
        assert!(parse_json(format!("{}{}", "[".repeat(96), "]".repeat(96)).as_bytes()).is_ok());
        assert!(parse_json(format!("{}{}", "[".repeat(97), "]".repeat(97)).as_bytes()).is_err());
    }

    #[test]
    fn a_map_may_have_many_keys() {
        let keys: Vec<String> = (0..200_000).map(|key| format!("\"{key}\":{key}")).collect();
        let AnyValue::Map(entries) = parse_json(format!("{{{}}}", keys.join(",")).as_bytes()).expect("reads") else {
            panic!("a map")
        };
        assert_eq!(entries.len(), 200_000);
    }
}
