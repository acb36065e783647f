//! Recorded requests and what the reference collector (v0.161.0) wrote for them, from `tests/data/collector-cases`:
//! each body goes through decoding and comes out as the recorded JSON.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use data_encoding::BASE64;
use gymrun::otlp::{Payload, Signal};
use serde_json::{Map, Value, json};

/// Lists with a meaningful order; the others are compared as sets, as the recorder did.
const ORDERED: [&str; 7] =
    ["bucketCounts", "explicitBounds", "quantileValues", "events", "links", "idKeys", "descriptionKeys"];

fn folder(case: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/collector-cases").join(case)
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The body of a step.
fn body(case: &str, step: &Value) -> Vec<u8> {
    if let Some(text) = step["text"].as_str() {
        return text.as_bytes().to_vec();
    }
    if let Some(file) = step["file"].as_str() {
        return read(&folder(case).join(file));
    }
    if let Some(file) = step["b64_file"].as_str() {
        let text: Vec<u8> =
            read(&folder(case).join(file)).into_iter().filter(|byte| !byte.is_ascii_whitespace()).collect();
        return BASE64.decode(&text).expect("base64");
    }
    step["json"].to_string().into_bytes()
}

fn decode(step: &Value, body: Vec<u8>) -> Result<Payload, String> {
    let path = step["post"].as_str().expect("a path");
    let signal = Signal::ALL.into_iter().find(|signal| path == format!("/v1/{}", signal.name())).expect("a signal");
    let protobuf = step["content_type"] == "application/x-protobuf";
    let payload = if protobuf { Payload::decode(signal, body) } else { Payload::from_json(signal, &body) };
    payload.map_err(|error| error.to_string())
}

fn json_of(payload: &Payload) -> String {
    let mut line = Vec::new();
    payload.write_json(&mut line);
    String::from_utf8(line).expect("UTF-8")
}

/// Sorts what has no order; whole doubles become integers.
fn normal(value: &Value, key: &str) -> Value {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<_> = object.iter().map(|(key, value)| (key.clone(), normal(value, key))).collect();
            entries.sort_by(|left, right| left.0.cmp(&right.0));
            Value::Object(Map::from_iter(entries))
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(|item| normal(item, "")).collect();
            let any_array = key == "values" && items.first().is_none_or(|item| item.get("key").is_none());
            if !any_array && !ORDERED.contains(&key) {
                items.sort_by_key(Value::to_string);
            }
            Value::Array(items)
        }
        // Minus zero is zero to the recorder.
        Value::Number(number) => number.as_f64().map_or(value.clone(), |double| json!(double + 0.0)),
        _ => value.clone(),
    }
}

/// Runs the posts of a case: (path, accepted, line) of each; a payload without items gives no line.
fn run(case: &str) -> Vec<(Value, Result<Option<String>, String>)> {
    let steps: Vec<Value> = serde_json::from_slice(&read(&folder(case).join("steps.json"))).expect("steps");
    let posts = steps.into_iter().filter(|step| step["post"].is_string());
    posts
        .map(|step| {
            let result = decode(&step, body(case, &step)).map(|payload| {
                let line = (payload.item_count() > 0).then(|| json_of(&payload));
                if let Some(line) = &line {
                    check_round_trips(&payload, line);
                }
                line
            });
            (step, result)
        })
        .collect()
}

/// The same JSON comes out after another turn through the wire form, and after one through JSON.
fn check_round_trips(payload: &Payload, line: &str) {
    let again = Payload::decode(payload.signal, payload.encode()).expect("what was encoded is valid");
    assert_eq!(json_of(&again), line, "wire form and back");
    let again = Payload::from_json(payload.signal, line.as_bytes()).expect("what was written is read");
    assert_eq!(json_of(&again), line, "JSON and back");
}

fn check(case: &str) {
    let golden: Vec<Value> = String::from_utf8(read(&folder(case).join("golden.jsonl")))
        .expect("UTF-8")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a row"))
        .collect();
    let results = run(case);
    let mut answers = golden.iter().filter(|row| row["response"].is_string());
    let mut lines = Vec::new();
    for (step, result) in &results {
        let row = answers.next().expect("an answer");
        let name = step["name"].as_str().unwrap_or_else(|| step["post"].as_str().unwrap_or(""));
        assert_eq!(result.is_ok(), row["status"] == 200, "{case} {name}: {result:?}");
        lines.extend(result.iter().flatten().cloned());
    }
    for row in &golden {
        if let Some(raw) = row["raw"].as_str() {
            assert_eq!(format!("{}\n", lines.join("\n")), raw, "{case}");
            return;
        }
    }
    let wanted: Vec<Value> =
        golden.iter().filter(|row| row["line"].is_object()).map(|row| row["line"].clone()).collect();
    assert_eq!(lines.len(), wanted.len(), "{case}");
    for (line, wanted) in lines.iter().zip(wanted) {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let [line, wanted] = [normal(&line, ""), normal(&wanted, "")].map(|value| format!("{value:#}"));
        for (place, (line, wanted)) in line.lines().zip(wanted.lines()).enumerate() {
            assert_eq!(line, wanted, "{case}, line {place} of the pretty form");
        }
        assert_eq!(line.len(), wanted.len(), "{case}");
    }
}

#[test]
fn spans_exact_bytes() {
    check("otlp_json_spans_exact_bytes");
}

#[test]
fn logs() {
    check("otlp_json_logs");
}

#[test]
fn snake_case() {
    check("otlp_json_snake_case");
}

#[test]
fn entity_references() {
    check("otlp_entity_refs");
}

#[test]
fn protobuf() {
    check("otlp_protobuf");
}

#[test]
fn bad_json() {
    check("otlp_json_bad");
}

#[test]
fn bad_ids_are_named() {
    let errors: Vec<String> = run("otlp_json_bad").into_iter().filter_map(|(_, result)| result.err()).collect();
    for field in ["traceId", "spanId", "startTimeUnixNano", "kind", "bytesValue", "doubleValue"] {
        assert!(errors.iter().any(|error| error.contains(field)), "{field} in {errors:#?}");
    }
}

#[test]
fn ids_of_either_case_and_numbers_of_either_form() {
    let request = br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5B8EFFF798038103d269B633813fc60C",
        "spanId":"EEE19b7ec3c1B174","startTimeUnixNano":1700000000000000001,"endTimeUnixNano":"1700000000000000002",
        "attributes":[{"key":"i","value":{"intValue":-5}},{"key":"j","value":{"intValue":"6"}}]}]}]}]}"#;
    let payload = Payload::from_json(Signal::Traces, request).expect("accepted");
    assert_eq!(
        json_of(&payload),
        r#"{"resourceSpans":[{"resource":{},"scopeSpans":[{"scope":{},"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","startTimeUnixNano":"1700000000000000001","endTimeUnixNano":"1700000000000000002","attributes":[{"key":"i","value":{"intValue":"-5"}},{"key":"j","value":{"intValue":"6"}}],"status":{}}]}]}]}"#
    );
    let base64 = br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"W47/95gDgQPSabYzgT/GDA=="}]}]}]}"#;
    let error = Payload::from_json(Signal::Traces, base64).expect_err("refused").to_string();
    assert!(error.contains("traceId"), "{error}");
}

#[test]
fn bytes_that_are_not_utf8_pass() {
    // A span whose name is [0xff].
    let request = Bytes::from_static(&[0x0a, 0x07, 0x12, 0x05, 0x12, 0x03, 0x2a, 0x01, 0xff]);
    let mut line = Vec::new();
    Payload::decode(Signal::Traces, request).expect("accepted").write_json(&mut line);
    let wanted = b"{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"spans\":[{\"name\":\"\xff\",\"status\":{}}]}]}]}";
    assert_eq!(line, wanted);
}

fn through(signal: Signal, text: &str) -> Result<String, String> {
    Payload::from_json(signal, text.as_bytes()).map(|payload| json_of(&payload)).map_err(|error| error.to_string())
}

/// `{"resourceSpans":[{"scopeSpans":[{"spans":[SPANS]}]}]}`, and what comes out where `[SPANS]` stands.
fn span(fields: &str) -> Result<String, String> {
    let line =
        through(Signal::Traces, &format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{{fields}}}]}}]}}]}}"#))?;
    let span = line.split_once(r#""spans":[{"#).and_then(|(_, rest)| rest.strip_suffix(r#","status":{}}]}]}]}"#));
    span.map(str::to_owned).ok_or(line)
}

#[test]
fn rules_of_json_for_scalars() {
    for (input, output) in [
        (r#""name":"a","name":"b""#, r#""name":"b""#),
        (r#""name":"\u00e9\ud83d\ude00\ud800\/\"","kind":77"#, r#""name":"é😀�/\"","kind":77"#),
        (r#""traceId":"00000000000000000000000000000000","spanId":"","flags":"7""#, r#""flags":7"#),
        (r#""kind":"SPAN_KIND_SERVER","unknown":{"a":[1,{"b":null}],"c":"x"}"#, r#""kind":2"#),
        (r#""start_time_unix_nano":18446744073709551615"#, r#""startTimeUnixNano":"18446744073709551615""#),
        (r#""attributes":null,"name":"n""#, r#""name":"n""#),
        (
            r#""attributes":[{"key":"a","value":null}],"attributes":[{"key":"b","value":{"doubleValue":"-Infinity"}}]"#,
            r#""attributes":[{"key":"a","value":{}},{"key":"b","value":{"doubleValue":"-Infinity"}}]"#,
        ),
        (
            r#""attributes":[{"value":{"stringValue":"x","intValue":"+7"}}]"#,
            r#""attributes":[{"value":{"intValue":"7"}}]"#,
        ),
        (
            r#""attributes":[{"key":"d","value":{"doubleValue":1e3}},{"key":"n","value":{"doubleValue":"nan"}}]"#,
            r#""attributes":[{"key":"d","value":{"doubleValue":1000}},{"key":"n","value":{"doubleValue":"NaN"}}]"#,
        ),
        (
            r#""attributes":[{"key":"l","value":{"arrayValue":null}},{"key":"b","value":{"bytesValue":"AAE="}}]"#,
            r#""attributes":[{"key":"l","value":{"arrayValue":{}}},{"key":"b","value":{"bytesValue":"AAE="}}]"#,
        ),
    ] {
        assert_eq!(span(input).as_deref(), Ok(output), "{input}");
    }
    // A default takes the place of a former value.
    let line =
        span(r#""name":"a","name":"","kind":2,"kind":0,"traceId":"5b8efff798038103d269b633813fc60c","traceId":"""#);
    assert!(line.as_ref().is_err_and(|line| line.contains(r#""spans":[{"status":{}}]"#)), "{line:?}");
}

#[test]
fn rules_of_json_for_messages() {
    for (signal, input, output) in [
        (Signal::Traces, "null", "{}"),
        (Signal::Traces, r#"{"resourceSpans":[null]}"#, r#"{"resourceSpans":[{"resource":{}}]}"#),
        (
            Signal::Traces,
            r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"status":{"code":2},"status":{"message":"m"}}],"spans":[null]}]}]}"#,
            r#"{"resourceSpans":[{"resource":{},"scopeSpans":[{"scope":{},"spans":[{"status":{"message":"m","code":2}},{"status":{}}]}]}]}"#,
        ),
        (
            Signal::Metrics,
            r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"gauge":{"dataPoints":[{}]},"name":"m","gauge":{}}]}]}]}"#,
            r#"{"resourceMetrics":[{"resource":{},"scopeMetrics":[{"scope":{},"metrics":[{"name":"m","gauge":{}}]}]}]}"#,
        ),
        (
            Signal::Logs,
            r#"{"resourceLogs":[{"deprecatedScopeLogs":[{"logRecords":[{"severityNumber":"SEVERITY_NUMBER_FATAL4"}]}]}]}"#,
            r#"{"resourceLogs":[{"resource":{},"scopeLogs":[{"scope":{},"logRecords":[{"severityNumber":24,"body":{}}]}]}]}"#,
        ),
        // The reference has this name with a blank at its end.
        (
            Signal::Logs,
            r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"severityNumber":"SEVERITY_NUMBER_TRACE"}]}]}]}"#,
            r#"{"resourceLogs":[{"resource":{},"scopeLogs":[{"scope":{},"logRecords":[{"severityNumber":1,"body":{}}]}]}]}"#,
        ),
    ] {
        assert_eq!(through(signal, input).as_deref(), Ok(output), "{input}");
    }
}

#[test]
fn what_json_refuses_is_named() {
    for (input, words) in [
        (r#""startTimeUnixNano":null"#, "startTimeUnixNano"),
        (r#""kind":null"#, "kind"),
        (r#""traceId":null"#, "traceId"),
        (r#""spanId":"EEE19B7EC3C1B17""#, "spanId"),
        (r#""flags":4294967296"#, "flags"),
        (r#""attributes":[{"value":{"boolValue":null}}]"#, "attributes.value.boolValue"),
        (r#""attributes":[{"value":{"doubleValue":1e400}}]"#, "doubleValue"),
        (r#""attributes":[{"value":{"intValue":01}}]"#, "intValue"),
        ("\"name\":\"a\nb\"", "control character"),
        (r#""name":"\x""#, "escape"),
        (r#""name":"\u12g4""#, "hexadecimal"),
        (r#""unknown":[1,]"#, "number"),
        (r#""unknown":tru"#, "true"),
    ] {
        let error = span(input).expect_err(input);
        assert!(error.contains(words) && error.contains("offset"), "{input}: {error}");
    }
}
