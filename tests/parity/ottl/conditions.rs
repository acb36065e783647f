//! Comparisons of all pairs of values, and conditions of all forms.

use gymrun::otlp::Signal;
use serde_json::{Value, json};

use super::super::bed::{Case, both};
use super::inputs::{attributes, known};
use super::statements::result;
use super::tables::{accepted_lines, config, read, request, send};

const OPERATORS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];

/// Values that stand in the statement, are given by converters, or have types that no attribute has.
const WRITTEN: [&str; 33] = [
    "nil",
    "true",
    "0",
    "5",
    "9223372036854775807",
    "0.0",
    "5.0",
    "2.5",
    r#""""#,
    r#""text value""#,
    "0x0102ff",
    "0x00",
    "{}",
    r#"{"k": "v", "inner": {"l": ["p", "q"], "x": "y"}, "n": 1}"#,
    "[]",
    r#"["a", "b"]"#,
    r#"["a", 1, 1.5, false, nil, {"k": "v"}, [1]]"#,
    r#"Split("a,b", ",")"#,
    r#"Double("NaN")"#,
    r#"ParseJSON("{\"k\": \"v\"}")"#,
    r#"ParseJSON("[\"a\", \"b\"]")"#,
    "time",
    "observed_time",
    "observed_time - time",
    "trace_id",
    "span_id",
    "attributes",
    r#"attributes["missing"]"#,
    "severity_number",
    "body",
    "-5",
    "-(2.5)",
    r#"Len("12345")"#,
];

/// The values of the known attributes.
fn values() -> Vec<Value> {
    let known = known();
    known.as_array().expect("a list").iter().map(|attribute| attribute["value"].clone()).collect()
}

/// Log records with these attributes through these statements; each record under the name that `shown` gives it.
async fn run(records: Vec<(String, Value)>, statements: Vec<String>) {
    let group = json!({"context": "log", "error_mode": "silent", "statements": statements});
    let transform = json!({"log_statements": [group]}).to_string();
    both(Case::new(config(&[("transform", transform)])), async |side| {
        let sent: Vec<&Value> = records.iter().map(|(_, record)| record).collect();
        send(side, Signal::Logs, &json!({"resourceLogs": [{"scopeLogs": [{"logRecords": sent}]}]})).await;
        side.stop().await;
        for message in side.messages("logs.jsonl") {
            let came = message["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array().cloned().unwrap_or_default();
            assert_eq!(came.len(), records.len());
            for ((name, _), record) in records.iter().zip(came) {
                side.row(json!({ name: record }));
            }
        }
    })
    .await;
}

fn record(attributes: &Value) -> Value {
    json!({"timeUnixNano": "1700000000000000000", "observedTimeUnixNano": "1700000000250000000", "severityNumber": 5,
           "body": {"doubleValue": 2.5}, "traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174",
           "attributes": attributes})
}

fn held(condition: &str) -> String {
    format!("set(attributes[{}], 1) where {condition}", json!(condition))
}

/// Each value of the telemetry with each other one.
#[tokio::test]
async fn all_pairs_of_values_of_the_telemetry() {
    let values = values();
    let pairs = values.iter().flat_map(|left| values.iter().map(move |right| (left, right)));
    let records = pairs.map(|(left, right)| {
        let record = record(&attributes(&[("l", left.clone()), ("r", right.clone())]));
        (format!("{left} and {right}"), record)
    });
    let statements = OPERATORS.map(|operator| held(&format!(r#"attributes["l"] {operator} attributes["r"]"#)));
    run(records.collect(), statements.to_vec()).await;
}

/// Each value of the telemetry with each written one, on both sides; and written ones with each other.
#[tokio::test]
async fn written_values_with_those_of_the_telemetry_and_with_each_other() {
    let records = values().into_iter().map(|value| (value.to_string(), record(&attributes(&[("l", value)]))));
    let mut conditions = Vec::new();
    for written in WRITTEN {
        for operator in OPERATORS {
            conditions.push(format!(r#"attributes["l"] {operator} {written}"#));
            conditions.push(format!(r#"{written} {operator} attributes["l"]"#));
        }
        for other in WRITTEN {
            // Comparing two of those ends the reference.
            if !(written.starts_with("Split") && other.starts_with("Split")) {
                conditions.extend(["==", "<="].map(|operator| format!("{written} {operator} {other}")));
            }
        }
    }
    run(records.collect(), conditions.iter().map(|condition| held(condition)).collect()).await;
}

/// What holds is 1, what does not is 0, and what fails is neither.
#[tokio::test]
async fn conditions_of_all_forms() {
    let lines = read("conditions");
    let Some(lines) = accepted_lines(&lines, |line| format!("set(attributes[\"x\"], 1) where {}", line.text)) else {
        return;
    };
    let mut statements = Vec::new();
    for condition in lines.iter().map(|line| &line.text) {
        statements.push(result(condition, "1") + &format!(" where {condition}"));
        statements.push(result(condition, "0") + &format!(" where not ({condition})"));
    }
    statements.push("set(attributes[\"results\"], cache)".to_owned());
    let group = json!({"context": "span", "error_mode": "silent", "statements": statements});
    let transform = json!({"trace_statements": [group]}).to_string();
    both(Case::new(config(&[("transform", transform)])), async |side| {
        send(side, Signal::Traces, &request(Signal::Traces, 1)).await;
        side.stop().await;
        side.messages("traces.jsonl").into_iter().for_each(|message| side.row(message));
    })
    .await;
}
