//! What both collectors say about themselves: names, kinds, labels, and the numbers that traffic decides.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::bed::{Case, both};
use super::requests::{json_body, path};
use super::rpc::export;
use super::side::Side;
use super::target::Page;

/// What the reference has beside: its Go runtime, its HTTP and gRPC libraries, its page, sizes and times that are not
/// measured here. `docs/collector.md` has the same list.
const ONLY_THERE: &[&str] = &[
    "http_client_",
    "http_server_",
    "rpc_",
    "promhttp_",
    "otelcol_process_runtime_",
    "otelcol_exporter_enqueue_size",
    "otelcol_exporter_queue_batch_send_size",
    "otelcol_processor_internal_duration",
];

/// What is only said here.
const ONLY_HERE: &str = "gym_collector_";

fn case(metrics: &str) -> Case {
    let accepted = Page { headers: vec![("content-type", "application/x-protobuf")], ..Page::default() };
    let slow = Page { delay: std::time::Duration::from_hours(1), ..Page::default() };
    let refused = Page { status: 400, ..Page::default() };
    Case::new(format!(
        "receivers: {{otlp: {{protocols: {{http: {{endpoint: $HTTP}}, grpc: {{endpoint: $GRPC}}}}}}, otlp/more: {{protocols: {{grpc: {{endpoint: \"127.0.0.1:0\"}}}}}}}}\n\
         processors:\n\
         \x20 batch: {{timeout: 50ms}}\n\
         \x20 memory_limiter: {{check_interval: 1s, limit_mib: 4000}}\n\
         \x20 filter/some: {{error_mode: ignore, traces: {{span: ['name == \"s0\"']}}, logs: {{log_record: ['body == \"x\"']}}}}\n\
         \x20 transform: {{error_mode: ignore, trace_statements: ['set(span.attributes[\"a\"], 1)']}}\n\
         \x20 attributes: {{actions: [{{key: a, action: upsert, value: 2}}]}}\n\
         \x20 resource/r: {{attributes: [{{key: a, action: upsert, value: 2}}]}}\n\
         exporters:\n\
         \x20 file: {{path: $OUT/x.jsonl, flush_interval: 50ms}}\n\
         \x20 debug: {{}}\n\
         \x20 nop: {{}}\n\
         \x20 otlp_http: {{endpoint: \"http://$TARGET\"}}\n\
         \x20 otlp_http/bad: {{endpoint: \"http://$TARGET/bad\"}}\n\
         \x20 otlp_http/full: {{endpoint: \"http://$TARGET/slow\", timeout: 0s, sending_queue: {{queue_size: 1, num_consumers: 1}}}}\n\
         \x20 otlp_http/straight: {{endpoint: \"http://$TARGET\", sending_queue: {{enabled: false}}}}\n\
         service:\n\
         \x20 telemetry:\n\
         \x20   resource: {{my.attribute: hello, service.name: same, service.version: \"1\", service.instance.id: one}}\n\
         \x20   metrics: {metrics}\n\
         \x20 pipelines:\n\
         \x20   traces: {{receivers: [otlp], processors: [memory_limiter, filter/some, transform, batch], exporters: [file, debug, nop, otlp_http, otlp_http/bad]}}\n\
         \x20   metrics: {{receivers: [otlp], processors: [attributes, resource/r, batch], exporters: [file, otlp_http/straight]}}\n\
         \x20   logs: {{receivers: [otlp], processors: [filter/some], exporters: [file, otlp_http/full]}}\n"
    ))
    .serve("/v1/traces", vec![accepted.clone()])
    .serve("/v1/metrics", vec![accepted])
    .serve("/bad/v1/traces", vec![refused])
    .serve("/slow/v1/logs", vec![slow])
}

/// A span that stays and one that is filtered, over both protocols; points; a log that fits into the queue, and one that
/// does not; a request that nobody can read.
async fn traffic(side: &mut Side) {
    let span =
        |name: &str| json!({"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": name});
    let spans = json!({"resourceSpans": [{"scopeSpans": [{"spans": [span("s0"), span("s1"), span("s2")]}]}]});
    let point = json!({"asInt": "1"});
    let points = json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": [
        {"name": "a", "gauge": {"dataPoints": [point, point]}}]}]}]});
    let logs = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [
        {"body": {"stringValue": "x"}}, {"body": {"stringValue": "y"}}]}]}]});
    side.post(path(gymrun::otlp::Signal::Traces), json_body(&spans)).await;
    side.wait_lines("x.jsonl", 1, "resourceSpans").await;
    side.post(path(gymrun::otlp::Signal::Metrics), json_body(&points)).await;
    let signal = gymrun::otlp::Signal::Traces;
    side.call(export(signal), super::requests::wire(signal, &spans), false).await;
    side.wait_lines("x.jsonl", 2, "resourceSpans").await;
    side.post(path(gymrun::otlp::Signal::Logs), json_body(&logs)).await;
    side.wait_asked("/slow/v1/logs", 1).await;
    side.post_for_code(path(gymrun::otlp::Signal::Logs), json_body(&logs)).await;
    side.post_for_code(path(gymrun::otlp::Signal::Logs), json_body(&json!({"resourceLogs": 7}))).await;
}

/// The lines that can be the same, without numbers of the process and without what one of them has alone.
fn comparable(page: &str) -> Vec<String> {
    let alone = |name: &str| name.starts_with(ONLY_HERE) || ONLY_THERE.iter().any(|prefix| name.starts_with(prefix));
    let mut rows = BTreeSet::new();
    let port = regex::Regex::new("(server_port=)\"[0-9]+\"").expect("a pattern");
    for line in page.lines() {
        let line = &*port.replace(line, "$1\"PORT\"");
        let words = line.strip_prefix("# HELP ").or(line.strip_prefix("# TYPE ")).unwrap_or(line);
        if alone(words.trim_start_matches(['{', '"'])) {
            continue;
        }
        let of_process =
            words.starts_with("otelcol_process_") || words.contains("_bytes_bucket") || words.contains("_bytes_sum");
        match line.rsplit_once(' ') {
            Some((series, _)) if !line.starts_with('#') && of_process => rows.insert(series.to_owned()),
            _ => rows.insert(line.to_owned()),
        };
    }
    rows.into_iter().collect()
}

/// What the traffic comes to, at the latest of all: in the name, among the labels, at the end.
const LAST: &[(&str, &str, &str)] = &[
    ("sent_spans", "exporter=\"file\"", " 4"),
    ("sent_metric_points", "exporter=\"file\"", " 2"),
    ("sent_log_records", "exporter=\"file\"", " 2"),
    ("sent_spans", "exporter=\"otlp_http\"", " 4"),
    ("send_failed_spans", "exporter=\"otlp_http/bad\"", " 4"),
];

fn has_rows(page: &str, wanted: &[(&str, &str, &str)]) -> bool {
    let has = |(name, label, value): &(&str, &str, &str)| {
        let is_it = |row: &&str| row.contains(name) && row.contains(label) && row.ends_with(value);
        page.lines().any(|row| is_it(&row))
    };
    wanted.iter().all(has)
}

async fn compare(metrics: &str) {
    both(case(metrics), async |side| {
        traffic(side).await;
        let page = side.own_metrics(|page| has_rows(page, LAST)).await;
        let rows = comparable(&page).into_iter().map(|row| (row, Value::from(true)));
        side.row(Value::Object(rows.collect()));
    })
    .await;
}

/// What a queue does not take is counted at each exporter that did not, however many stand behind one batch.
#[tokio::test]
async fn the_same_counts_of_what_queues_refuse() {
    let slow = Page { delay: std::time::Duration::from_hours(1), ..Page::default() };
    let accepted = Page { headers: vec![("content-type", "application/x-protobuf")], ..Page::default() };
    let exporter = |name: &str, path: &str, queue: &str| {
        format!("  otlp_http/{name}: {{endpoint: \"http://$TARGET/{path}\", timeout: 0s, sending_queue: {queue}}}\n")
    };
    let case = Case::new(format!(
        "receivers: {{otlp: {{protocols: {{http: {{endpoint: $HTTP}}}}}}}}\n\
         processors: {{batch: {{timeout: 10ms}}}}\n\
         exporters:\n  file: {{path: $OUT/x.jsonl, flush_interval: 50ms}}\n{}{}{}{}{}\
         service:\n\
         \x20 telemetry:\n    resource: {{service.name: same, service.version: \"1\", service.instance.id: one}}\n\
         \x20   metrics: {{readers: [{{pull: {{exporter: {{prometheus: {READER}}}}}}}}}]}}\n\
         \x20 pipelines:\n\
         \x20   traces: {{receivers: [otlp], processors: [batch], exporters: [file, otlp_http/one, otlp_http/two, otlp_http/small, otlp_http/good]}}\n\
         \x20   logs: {{receivers: [otlp], exporters: [otlp_http/waiting]}}\n",
        exporter("one", "slow/1", "{queue_size: 1, num_consumers: 1}"),
        exporter("two", "slow/2", "{queue_size: 1, num_consumers: 1}"),
        exporter("small", "good", "{queue_size: 1, sizer: items}"),
        exporter("good", "good", "{}"),
        exporter("waiting", "bad", "{wait_for_result: true}"),
    ))
    .serve("/slow/1/v1/traces", vec![slow.clone()])
    .serve("/slow/2/v1/traces", vec![slow])
    .serve("/good/v1/traces", vec![accepted])
    .serve("/bad/v1/logs", vec![Page { status: 400, ..Page::default() }]);
    both(case, async |side| {
        let span = json!({"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174"});
        let spans = json!({"resourceSpans": [{"scopeSpans": [{"spans": [span, span]}]}]});
        let logs = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": "x"}}]}]}]});
        side.post_for_code("/v1/logs", json_body(&logs)).await;
        side.post("/v1/traces", json_body(&spans)).await;
        side.wait_asked("/slow/1/v1/traces", 1).await;
        side.wait_asked("/slow/2/v1/traces", 1).await;
        side.post("/v1/traces", json_body(&spans)).await;
        let wanted = [
            ("enqueue_failed_spans", "exporter=\"otlp_http/one\"", " 2"),
            ("enqueue_failed_spans", "exporter=\"otlp_http/two\"", " 2"),
            ("enqueue_failed_spans", "exporter=\"otlp_http/small\"", " 4"),
            ("sent_spans", "exporter=\"otlp_http/good\"", " 4"),
            ("sent_spans", "exporter=\"file\"", " 4"),
        ];
        let page = side.own_metrics(|page| has_rows(page, &wanted)).await;
        let rows = comparable(&page).into_iter().map(|row| (row, Value::from(true)));
        side.row(Value::Object(rows.collect()));
    })
    .await;
}

const READER: &str = "{host: 127.0.0.1, port: $OWNPORT";

#[tokio::test]
async fn the_same_page_at_every_level() {
    for level in ["basic", "normal"] {
        let metrics = format!("{{level: {level}, readers: [{{pull: {{exporter: {{prometheus: {READER}}}}}}}}}]}}");
        compare(&metrics).await;
    }
}

#[tokio::test]
async fn the_same_page_with_suffixes_scopes_and_constant_labels() {
    let metrics = format!(
        "{{readers: [{{pull: {{exporter: {{prometheus: {READER}, without_type_suffix: false, without_scope_info: false, \
         with_resource_constant_labels: {{included: [service.name]}}}}}}}}}}]}}"
    );
    compare(&metrics).await;
}
