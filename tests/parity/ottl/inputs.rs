//! Telemetry with a value of every kind, small enough to be copied for each statement.

use serde_json::{Value, json};

fn text(text: &str) -> Value {
    json!({"stringValue": text})
}

fn int(value: i64) -> Value {
    json!({"intValue": value.to_string()})
}

fn double(value: impl Into<Value>) -> Value {
    json!({"doubleValue": value.into()})
}

fn list(values: &[Value]) -> Value {
    json!({"arrayValue": {"values": values}})
}

fn map(entries: &[(&str, Value)]) -> Value {
    json!({"kvlistValue": {"values": attributes(entries)}})
}

fn bytes(base64: &str) -> Value {
    json!({"bytesValue": base64})
}

/// A list of attributes.
pub fn attributes(entries: &[(&str, Value)]) -> Value {
    entries.iter().map(|(key, value)| json!({"key": key, "value": value})).collect()
}

/// The attributes that the statements of the tables know.
pub fn known() -> Value {
    let inner = map(&[("x", text("y")), ("l", list(&[text("p"), text("q")]))]);
    attributes(&[
        ("s", text("text value")),
        ("empty", text("")),
        ("i", int(5)),
        ("zero", int(0)),
        ("big", int(9_007_199_254_740_993)),
        ("greatest", int(i64::MAX)),
        ("least", int(i64::MIN)),
        ("d", double(2.5)),
        ("one", double(1.0)),
        ("large", double(1e21)),
        ("precise", double(9_007_199_254_740_992.0)),
        ("minus", double(-0.0)),
        ("nan", double("NaN")),
        ("inf", double("Infinity")),
        ("b", json!({"boolValue": true})),
        ("f", json!({"boolValue": false})),
        (
            "list",
            list(&[
                text("a"),
                int(1),
                double(1.5),
                json!({"boolValue": false}),
                json!({}),
                map(&[("k", text("v"))]),
                list(&[int(1)]),
            ]),
        ),
        ("texts", list(&[text("a"), text("b")])),
        ("no list", list(&[])),
        ("map", map(&[("k", text("v")), ("n", int(1)), ("inner", inner)])),
        ("no map", map(&[])),
        ("bytes", bytes("AQL/")),
        ("no bytes", bytes("")),
        ("none", json!({})),
        ("num", text("12")),
        ("flt", text("1.5")),
        ("bad", text("x1")),
        ("json", text(r#"{"a":[1,2.5,null],"b":{"c":"d"},"t":true}"#)),
        ("uni", text("n\u{e9}e <&> \u{2028} \u{df}\u{130}")),
        ("tru", text("true")),
        ("url", text("http://h/p?token=abc&x=1")),
        ("camelCase", text("HTTPServerName2Go")),
        ("", text("no key")),
    ])
}

/// The resource of the copy with this number.
fn resource(number: usize) -> Value {
    json!({"droppedAttributesCount": 1, "attributes": attributes(&[
        ("service.name", text("shop")),
        ("host", text("h1")),
        ("n", int(7)),
        ("idx", json!({"intValue": number.to_string()})),
    ])})
}

fn scope() -> Value {
    json!({"name": "lib", "version": "1.2", "attributes": attributes(&[("sa", text("sv"))]), "droppedAttributesCount": 3})
}

const TRACE: &str = "5b8efff798038103d269b633813fc60c";

/// Resources with a span of everything and a root span, one resource for each number.
pub fn traces(copies: usize) -> Value {
    let span = json!({
        "traceId": TRACE, "spanId": "eee19b7ec3c1b174", "parentSpanId": "eee19b7ec3c1b173", "traceState": "a=1,b=2",
        "name": "GET /users/42", "kind": 2, "startTimeUnixNano": "1700000000000000000",
        "endTimeUnixNano": "1700000000250000000", "attributes": known(), "droppedAttributesCount": 2, "flags": 257,
        "events": [
            {"timeUnixNano": "1700000000100000000", "name": "ev1", "droppedAttributesCount": 1,
             "attributes": attributes(&[("ea", text("x")), ("m", map(&[("a", int(1))]))])},
            {"timeUnixNano": "1700000000200000000", "name": "ev2"}
        ],
        "links": [{"traceId": "5b8efff798038103d269b633813fc60d", "spanId": "eee19b7ec3c1b175"}],
        "status": {"code": 2, "message": "bad"}, "droppedEventsCount": 4, "droppedLinksCount": 5
    });
    let root = json!({"traceId": TRACE, "spanId": "eee19b7ec3c1b173", "name": "root", "startTimeUnixNano": "1",
                      "endTimeUnixNano": "2"});
    let resources = (0..copies).map(|number| {
        json!({"resource": resource(number), "schemaUrl": "http://rs", "scopeSpans": [
            {"scope": scope(), "schemaUrl": "http://ss", "spans": [span]},
            {"scope": {"name": "lib2"}, "spans": [root]}
        ]})
    });
    json!({"resourceSpans": resources.collect::<Vec<_>>()})
}

/// Resources with metrics of all kinds.
pub fn metrics(copies: usize) -> Value {
    let point = |more: Value| {
        let mut point = json!({"startTimeUnixNano": "1700000000000000000", "timeUnixNano": "1700000001000000000"});
        let fields = point.as_object_mut().expect("an object");
        fields.extend(more.as_object().expect("an object").clone());
        point
    };
    let p = |value: &str| attributes(&[("p", text(value))]);
    let metrics = json!([
        {"name": "a:b", "description": "desc", "unit": "s", "metadata": attributes(&[("md", text("mv"))]),
         "gauge": {"dataPoints": [
            point(json!({"asDouble": 1.5, "flags": 1, "attributes": attributes(&[("p", text("x")), ("q", int(1))])})),
            point(json!({"asInt": "3", "attributes": p("y"), "exemplars": [
                {"asDouble": 1, "timeUnixNano": "5", "filteredAttributes": attributes(&[("ex", text("1"))])}]})),
            point(json!({"attributes": p("none")}))]}},
        {"name": "c", "sum": {"aggregationTemporality": 2, "isMonotonic": true,
            "dataPoints": [point(json!({"asInt": "10", "attributes": p("x")}))]}},
        {"name": "h", "unit": "ms", "histogram": {"aggregationTemporality": 1, "dataPoints": [
            point(json!({"count": "3", "sum": 6, "bucketCounts": ["1", "2"], "explicitBounds": [1], "min": 0.5, "max": 4,
                         "attributes": p("x")})),
            point(json!({"count": "0", "bucketCounts": ["0", "0"], "explicitBounds": [1]}))]}},
        {"name": "e", "exponentialHistogram": {"aggregationTemporality": 2, "dataPoints": [
            point(json!({"count": "5", "sum": 1.5, "scale": -1, "zeroCount": "1", "zeroThreshold": 0.25, "min": 0,
                         "positive": {"offset": -2, "bucketCounts": ["1", "2"]},
                         "negative": {"offset": 3, "bucketCounts": ["1"]}, "attributes": p("x")}))]}},
        {"name": "y", "summary": {"dataPoints": [
            point(json!({"count": "4", "sum": 9, "quantileValues": [{"quantile": 0.5, "value": 2}],
                         "attributes": p("x")}))]}},
        {"name": "none"},
        {"name": "g0", "gauge": {}}
    ]);
    let resources = (0..copies).map(|number| {
        json!({"resource": resource(number), "schemaUrl": "http://rs",
               "scopeMetrics": [{"scope": scope(), "schemaUrl": "http://ss", "metrics": metrics}]})
    });
    json!({"resourceMetrics": resources.collect::<Vec<_>>()})
}

/// Resources with log records of every body.
pub fn logs(copies: usize) -> Value {
    let records = json!([
        {"timeUnixNano": "1700000000000000000", "observedTimeUnixNano": "1700000000500000000", "severityNumber": 9,
         "severityText": "Info", "body": text("hello world"), "attributes": known(), "traceId": TRACE,
         "spanId": "eee19b7ec3c1b174", "flags": 1, "eventName": "ev", "droppedAttributesCount": 2},
        {"body": map(&[("a", text("b")), ("l", list(&[int(1), int(2)]))]), "attributes": attributes(&[("s", text("m"))])},
        {"body": list(&[text("x"), map(&[("k", int(1))])])},
        {"body": int(5), "severityNumber": 17},
        {"body": double(2.5)},
        {"body": {"boolValue": true}},
        {"body": bytes("AQ==")},
        {"body": text("")},
        {}
    ]);
    let resources = (0..copies).map(|number| {
        json!({"resource": resource(number), "schemaUrl": "http://rs",
               "scopeLogs": [{"scope": scope(), "schemaUrl": "http://ss", "logRecords": records}]})
    });
    json!({"resourceLogs": resources.collect::<Vec<_>>()})
}
