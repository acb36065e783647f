//! How deeply values nest. Statements can put a value into itself again and again; whatever they make must stay what
//! every reader of OTLP takes.

use super::value::Value;
use crate::otlp::{AnyValue, DEEPEST_VALUE};

/// Refuses a value that would nest too deeply behind so many keys: the first one is that of an attribute, each further
/// one is that of a map or list in it.
pub(super) fn check(value: &Value, keys: usize) -> Result<(), String> {
    if levels(value) + 3 * keys.saturating_sub(1) > DEEPEST_VALUE {
        return Err("lists and maps nest too deeply in each other".to_owned());
    }
    Ok(())
}

/// As [`AnyValue::levels`].
fn levels(value: &Value) -> usize {
    match value {
        Value::Map(entries) => 1 + entries.iter().map(|entry| 2 + entry.value.levels()).max().unwrap_or(0),
        Value::Slice(values) => 1 + values.iter().map(|value| 1 + AnyValue::levels(value)).max().unwrap_or(0),
        Value::List(values) => 1 + values.iter().map(|value| 1 + levels(value)).max().unwrap_or(0),
        Value::Texts(_) | Value::Doubles(_) | Value::Counts(_) => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use crate::collector::fuzzing::run_statement;
    use crate::otlp::{Payload, Signal};

    /// The payload with the statement's effect on its spans.
    fn edited(statement: &str, payload: &Payload) -> Payload {
        run_statement(statement, payload).pop().expect("a statement of spans")
    }

    #[test]
    fn a_value_that_goes_into_itself_stays_readable() {
        for statement in [
            r#"set(span.attributes["a"], {"in": span.attributes["a"]})"#,
            r#"set(span.attributes["a"], [span.attributes["a"]])"#,
            r#"merge_maps(span.attributes, {"a": {"in": {"in": span.attributes["a"]}}}, "upsert")"#,
        ] {
            let json = br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"s","attributes":[{"key":"a"}]}]}]}]}"#;
            let mut payload = Payload::from_json(Signal::Traces, json).expect("valid");
            for _ in 0..150 {
                payload = edited(statement, &payload);
            }
            let wire = payload.encode();
            assert!(wire.len() > 500, "it went deep: {statement}");
            assert!(Payload::decode(Signal::Traces, wire).is_ok(), "{statement}");
        }
    }
}
