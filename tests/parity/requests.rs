//! Requests with everything in them: all types of values, spans with every field, metrics of all five kinds, logs.

use gymrun::otlp::{Payload, Signal};
use serde_json::{Value, json};

use super::side::Body;

/// One attribute of each type of value, lists and maps nested.
pub fn attributes() -> Value {
    json!([
        {"key": "string", "value": {"stringValue": "text <&> \u{2028} \"q\" \\ \t\u{1} \u{e9}\u{1F600}"}},
        {"key": "empty", "value": {"stringValue": ""}},
        {"key": "yes", "value": {"boolValue": true}},
        {"key": "no", "value": {"boolValue": false}},
        {"key": "zero", "value": {"intValue": "0"}},
        {"key": "least", "value": {"intValue": "-9223372036854775808"}},
        {"key": "greatest", "value": {"intValue": "9223372036854775807"}},
        {"key": "double", "value": {"doubleValue": 0.1}},
        {"key": "small", "value": {"doubleValue": 1.5e-7}},
        {"key": "large", "value": {"doubleValue": 1e21}},
        {"key": "whole", "value": {"doubleValue": 3.0}},
        {"key": "minus zero", "value": {"doubleValue": -0.0}},
        {"key": "nan", "value": {"doubleValue": "NaN"}},
        {"key": "infinite", "value": {"doubleValue": "-Infinity"}},
        {"key": "bytes", "value": {"bytesValue": "AAEC/w=="}},
        {"key": "no bytes", "value": {"bytesValue": ""}},
        {"key": "list", "value": {"arrayValue": {"values": [
            {"stringValue": "a"}, {"intValue": "1"}, {"arrayValue": {"values": []}}, {}, {"boolValue": false}]}}},
        {"key": "map", "value": {"kvlistValue": {"values": [
            {"key": "b", "value": {"doubleValue": 2.5}}, {"key": "a", "value": {"kvlistValue": {"values": []}}}]}}},
        {"key": "nothing", "value": {}},
        {"key": "nothing"},
        {"key": "", "value": {"stringValue": "without a key"}},
        {"key": "twice", "value": {"intValue": "1"}},
        {"key": "twice", "value": {"intValue": "2"}}
    ])
}

fn resource() -> Value {
    let mut all = attributes();
    all.as_array_mut().expect("a list").push(json!({"key": "service.name", "value": {"stringValue": "shop"}}));
    json!({"attributes": all, "droppedAttributesCount": 3})
}

fn scope() -> Value {
    json!({"name": "lib", "version": "1.2", "attributes": attributes(), "droppedAttributesCount": 1})
}

const START: &str = "1700000000000000000";
const END: &str = "1700000000250000001";
const TRACE: &str = "5b8efff798038103d269b633813fc60c";
const SPAN: &str = "eee19b7ec3c1b174";

/// Spans: one with every field, one with nothing, kinds and states in and out of range.
pub fn spans() -> Value {
    let full = json!({
        "traceId": TRACE, "spanId": SPAN, "parentSpanId": "eee19b7ec3c1b173", "traceState": "a=b,ot=th:8", "flags": 257,
        "name": "full", "kind": 2, "startTimeUnixNano": START, "endTimeUnixNano": END, "attributes": attributes(),
        "droppedAttributesCount": 4_294_967_295_u32,
        "events": [{"timeUnixNano": START, "name": "e", "attributes": attributes(), "droppedAttributesCount": 2}, {}],
        "droppedEventsCount": 5,
        "links": [{"traceId": TRACE, "spanId": SPAN, "traceState": "x=y", "attributes": attributes(),
                   "droppedAttributesCount": 7, "flags": 1}, {}],
        "droppedLinksCount": 6,
        "status": {"message": "bad", "code": 2}
    });
    let kinds = (0..8).map(|kind| {
        json!({"traceId": TRACE, "spanId": SPAN, "name": format!("kind {kind}"), "kind": kind, "status": {"code": kind},
               "startTimeUnixNano": START, "endTimeUnixNano": END})
    });
    let spans: Vec<Value> = [full, json!({})].into_iter().chain(kinds).collect();
    json!({"resourceSpans": [
        {"resource": resource(), "schemaUrl": "https://one",
         "scopeSpans": [{"scope": scope(), "schemaUrl": "https://two", "spans": spans}, {"spans": [{"name": "bare"}]}]},
        {"scopeSpans": [{"scope": {"name": "other"}, "spans": [{"name": "no resource", "traceId": TRACE, "spanId": SPAN}]}]}
    ]})
}

fn exemplars() -> Value {
    json!([
        {"timeUnixNano": END, "asDouble": 0.5, "traceId": TRACE, "spanId": SPAN,
         "filteredAttributes": [{"key": "k", "value": {"intValue": "1"}}]},
        {"asInt": "-3"},
        {}
    ])
}

/// Metrics of all five kinds and of none, with every field of their points.
pub fn metrics() -> Value {
    let number = |value: (&str, Value)| {
        json!({"attributes": attributes(), "startTimeUnixNano": START, "timeUnixNano": END, value.0: value.1,
               "exemplars": exemplars(), "flags": 1})
    };
    let histogram = json!({
        "attributes": attributes(), "startTimeUnixNano": START, "timeUnixNano": END, "count": "6", "sum": 0.0,
        "bucketCounts": ["1", "2", "3"], "explicitBounds": [0.5, 1e9], "exemplars": exemplars(), "flags": 0,
        "min": -0.0, "max": "Infinity"
    });
    let exponential = json!({
        "attributes": attributes(), "startTimeUnixNano": START, "timeUnixNano": END, "count": "18446744073709551615",
        "sum": "NaN", "scale": -3, "zeroCount": "2", "positive": {"offset": -1, "bucketCounts": ["0", "1", "300"]},
        "negative": {"offset": 4, "bucketCounts": []}, "flags": 1, "exemplars": exemplars(), "min": 1, "max": 2,
        "zeroThreshold": 1e-9
    });
    let summary = json!({
        "attributes": attributes(), "startTimeUnixNano": START, "timeUnixNano": END, "count": "2", "sum": 1.5,
        "quantileValues": [{"quantile": 0.99, "value": 2}, {"quantile": 0, "value": "NaN"}, {}], "flags": 1
    });
    let metrics = json!([
        {"name": "ns:gauge:x", "description": "d", "unit": "By", "metadata": attributes(),
         "gauge": {"dataPoints": [number(("asInt", json!("-5"))), number(("asDouble", json!("Infinity"))), {}]}},
        {"name": "sum", "sum": {"aggregationTemporality": 2, "isMonotonic": true,
            "dataPoints": [number(("asInt", json!("0"))), number(("asDouble", json!(0))), {"asDouble": 1e-320}]}},
        {"name": "delta", "sum": {"aggregationTemporality": 1, "dataPoints": [{"asInt": 7}]}},
        {"name": "temporality", "sum": {"aggregationTemporality": 9, "dataPoints": [{"asInt": 7}]}},
        {"name": "histogram", "unit": "s",
         "histogram": {"aggregationTemporality": 2, "dataPoints": [histogram, {}, {"count": 4}]}},
        {"name": "exponential", "exponentialHistogram": {"aggregationTemporality": 1, "dataPoints": [exponential, {}]}},
        {"name": "summary", "summary": {"dataPoints": [summary, {}]}},
        {"name": "no points", "gauge": {}},
        {"name": "no points at all", "summary": {"dataPoints": []}},
        {"name": "nothing"},
        {}
    ]);
    json!({"resourceMetrics": [
        {"resource": resource(), "schemaUrl": "https://one",
         "scopeMetrics": [{"scope": scope(), "schemaUrl": "https://two", "metrics": metrics}]},
        {"scopeMetrics": [{"metrics": [{"name": "bare", "gauge": {"dataPoints": [{"asDouble": 1.25}]}}]}]}
    ]})
}

/// Log records: every type of body, every severity and beyond, every field.
pub fn logs() -> Value {
    let values = attributes();
    let bodies =
        values.as_array().expect("a list").iter().map(
            |attribute| json!({"body": attribute.get("value").cloned().unwrap_or(json!({})), "timeUnixNano": START}),
        );
    let severities = (0..27).map(|number| json!({"severityNumber": number, "severityText": format!("S{number}")}));
    let full = json!({
        "timeUnixNano": START, "observedTimeUnixNano": END, "severityNumber": 9, "severityText": "Info",
        "body": {"stringValue": "full"}, "attributes": attributes(), "droppedAttributesCount": 4, "flags": 1,
        "traceId": TRACE, "spanId": SPAN, "eventName": "named"
    });
    let records: Vec<Value> = bodies.chain(severities).chain([full, json!({})]).collect();
    json!({"resourceLogs": [
        {"resource": resource(), "schemaUrl": "https://one",
         "scopeLogs": [{"scope": scope(), "schemaUrl": "https://two", "logRecords": records}]},
        {"scopeLogs": [{"logRecords": [{"body": {"stringValue": "bare"}}]}]}
    ]})
}

/// The requests by signal.
pub fn all() -> [(Signal, Value); 3] {
    [(Signal::Traces, spans()), (Signal::Metrics, metrics()), (Signal::Logs, logs())]
}

/// As a JSON body.
pub fn json_body(request: &Value) -> Body {
    Body { content_type: "application/json", encoding: None, bytes: request.to_string().into_bytes() }
}

/// In wire form.
pub fn wire(signal: Signal, request: &Value) -> Vec<u8> {
    Payload::from_json(signal, request.to_string().as_bytes()).expect("OTLP").encode()
}

/// As a protobuf body.
pub fn wire_body(signal: Signal, request: &Value) -> Body {
    Body { content_type: "application/x-protobuf", encoding: None, bytes: wire(signal, request) }
}

/// The path of a signal.
pub fn path(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "/v1/traces",
        Signal::Metrics => "/v1/metrics",
        Signal::Logs => "/v1/logs",
    }
}
