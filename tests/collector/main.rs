//! `gymrun collector` as a process: configurations refused and run, data from OTLP to files and endpoints.

#![expect(clippy::disallowed_methods, reason = "tests start the program under test themselves")]

mod connections;
mod delivery;
mod export;
mod faults;
mod files;
#[path = "../harness/mod.rs"]
mod harness;
mod own;
mod polite;
mod reload;
mod rpc;
mod secure;
mod sizes;
mod start;
mod storage;
mod stored;
mod tls;
mod validate;

use serde_json::{Value, json};

/// Pipelines of all signals from OTLP/HTTP to one file; `PROCESSORS` and `EXPORTERS` are filled in.
#[must_use]
pub fn config(processors: &str, used: &str, exporters: &str, exporter_ids: &str) -> String {
    format!(
        "receivers:\n  otlp:\n    protocols:\n      http: {{endpoint: $HTTP}}\n\
         extensions:\n  health_check: {{endpoint: $HEALTH}}\n\
         processors:\n{processors}\n\
         exporters:\n  file: {{path: $OUT/x.jsonl, flush_interval: 50ms}}\n{exporters}\n\
         service:\n  extensions: [health_check]\n  pipelines:\n\
         \x20   traces: {{receivers: [otlp], processors: [{used}], exporters: [{exporter_ids}]}}\n\
         \x20   metrics: {{receivers: [otlp], processors: [{used}], exporters: [{exporter_ids}]}}\n\
         \x20   logs: {{receivers: [otlp], processors: [{used}], exporters: [{exporter_ids}]}}\n"
    )
}

/// Waits for a condition.
pub async fn eventually(what: &str, condition: impl Fn() -> bool) {
    harness::eventually_async(what, async || condition().then_some(())).await;
}

/// A request of `count` spans.
#[must_use]
pub fn spans(count: usize) -> Value {
    let span = |index: usize| {
        json!({"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": format!("s{index}"),
               "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000000250000000"})
    };
    let spans: Vec<Value> = (0..count).map(span).collect();
    json!({"resourceSpans": [{"resource": shop(), "scopeSpans": [{"scope": {"name": "lib"}, "spans": spans}]}]})
}

/// A request of one data point.
#[must_use]
pub fn point() -> Value {
    let metric =
        json!({"name": "a:b", "gauge": {"dataPoints": [{"asInt": "1", "timeUnixNano": "1700000000000000000"}]}});
    json!({"resourceMetrics": [{"resource": shop(), "scopeMetrics": [{"scope": {"name": "lib"}, "metrics": [metric]}]}]})
}

/// A request of one log record.
#[must_use]
pub fn log() -> Value {
    let record = json!({"body": {"stringValue": "hello"}});
    json!({"resourceLogs": [{"resource": shop(), "scopeLogs": [{"scope": {"name": "lib"}, "logRecords": [record]}]}]})
}

fn shop() -> Value {
    json!({"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]})
}

/// How many spans the lines have.
#[must_use]
pub fn span_count(lines: &[Value]) -> usize {
    let entries = lines.iter().filter_map(|line| line["resourceSpans"].as_array()).flatten();
    let scopes = entries.filter_map(|entry| entry["scopeSpans"].as_array()).flatten();
    scopes.map(|scope| scope["spans"].as_array().map_or(0, Vec::len)).sum()
}
