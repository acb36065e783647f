//! What the collector says about itself: pushed metrics, the report at the end, its log.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::harness::{Answer, Collector, Sink, eventually_async, free_port};
use crate::{config, point, span_count, spans};

/// Pipelines of all signals to one file, with this under `service.telemetry`.
fn with_telemetry(telemetry: &str, exporters: &str, ids: &str) -> String {
    config("  batch: {timeout: 10ms}", "batch", exporters, ids)
        .replace("service:\n", &format!("service:\n  telemetry: {telemetry}\n"))
}

/// Every point of a metric: its labels (as `name=value`) and its number.
fn points(message: &Value, name: &str) -> BTreeMap<String, i64> {
    let scopes =
        message["resourceMetrics"].as_array().into_iter().flatten().filter_map(|r| r["scopeMetrics"].as_array());
    let metrics = scopes.flatten().filter_map(|scope| scope["metrics"].as_array()).flatten();
    let mut found = BTreeMap::new();
    for metric in metrics.filter(|metric| metric["name"] == name) {
        let data = ["sum", "gauge"].into_iter().find_map(|kind| metric.get(kind)).expect("numbers");
        for point in data["dataPoints"].as_array().expect("points") {
            let attributes = point["attributes"].as_array().cloned().unwrap_or_default();
            let label = |a: &Value| format!("{}={}", a["key"].as_str().unwrap_or_default(), any_text(&a["value"]));
            let labels: Vec<String> = attributes.iter().map(label).collect();
            let number = point["asInt"].as_str().and_then(|text| text.parse().ok()).expect("a whole number");
            found.insert(labels.join(" "), number);
        }
    }
    found
}

fn any_text(value: &Value) -> String {
    let value = value.as_object().and_then(|value| value.values().next()).cloned().unwrap_or_default();
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn decoded(body: &[u8]) -> Value {
    let mut text = Vec::new();
    gymrun::otlp::Payload::decode(gymrun::otlp::Signal::Metrics, body.to_vec()).expect("OTLP").write_json(&mut text);
    serde_json::from_slice(&text).expect("JSON")
}

#[tokio::test]
async fn metrics_are_pushed_and_once_more_at_the_end_with_everything() {
    let good = Answer::Give(200, vec![("content-type", "application/x-protobuf")], b"");
    let sink = Sink::start(vec![good]).await;
    let telemetry = format!(
        "{{resource: {{attributes: [{{name: job, value: \"j-7\"}}]}}, metrics: {{readers: [{{periodic: {{interval: 50, exporter: \
         {{otlp: {{protocol: http/protobuf, endpoint: \"http://127.0.0.1:{}\", headers: [{{name: x-key, value: \"${{env:KEY}}\"}}]}}}}}}}}]}}}}",
        sink.port
    );
    let mut collector = Collector::start(&with_telemetry(&telemetry, "", "file"), &[("KEY", "s3cret-k3y")]).await;
    assert_eq!(collector.post("/v1/traces", &spans(3)).await.0, 200);
    sink.wait(2).await;
    assert_eq!(collector.stop().await, 0);
    let seen = sink.seen();
    assert!(seen.iter().all(|request| request.path == "/v1/metrics" && request.headers["x-key"] == "s3cret-k3y"));
    let last = decoded(&seen.last().expect("a request").body);
    let resource = last["resourceMetrics"][0]["resource"]["attributes"].as_array().expect("attributes").clone();
    for attribute in [("job", "j-7"), ("service.name", "gymrun")] {
        assert!(resource.contains(&json!({"key": attribute.0, "value": {"stringValue": attribute.1}})), "{resource:?}");
    }
    let accepted = points(&last, "otelcol_receiver_accepted_spans");
    assert_eq!(accepted, BTreeMap::from([("receiver=otlp transport=http".to_owned(), 3)]));
    assert_eq!(points(&last, "otelcol_exporter_sent_spans"), BTreeMap::from([("exporter=file".to_owned(), 3)]));
    assert_eq!(points(&last, "gym.collector.written").values().sum::<i64>(), 3);
    // They are no data of the pipelines.
    assert_eq!(collector.delivery()["metrics"]["received"], 0);
    assert!(!collector.stderr().contains("s3cret"), "{}", collector.stderr());
}

/// The counts of `delivery.json` are the last points of the file of metrics.
#[tokio::test]
async fn the_report_is_in_the_file_of_metrics_when_all_is_decided() {
    let sink = Sink::start(vec![Answer::Give(400, Vec::new(), b"no")]).await;
    let exporter = format!("  otlp_http:\n    endpoint: http://127.0.0.1:{}\n", sink.port);
    let telemetry = "{metrics: {level: none, report: [file]}}";
    let mut collector = Collector::start(&with_telemetry(telemetry, &exporter, "file, otlp_http"), &[]).await;
    assert_eq!(collector.post("/v1/traces", &spans(4)).await.0, 200);
    assert_eq!(collector.post("/v1/metrics", &point()).await.0, 200);
    assert_eq!(collector.stop().await, 0);
    let lines = collector.lines("x.jsonl");
    let report = lines.last().expect("a line");
    let of = |name: &str| points(report, &format!("gym.collector.{name}"));
    assert_eq!(of("received")["component=receivers/otlp signal=traces"], 4);
    assert_eq!(of("written")["component=exporters/file signal=traces"], 4);
    assert_eq!(of("dropped")["component=exporters/otlp_http reason=http_400 signal=traces"], 4);
    assert_eq!(of("dropped")["component=exporters/otlp_http reason=http_400 signal=metrics"], 1);
    let delivery = collector.delivery();
    assert_eq!(delivery["traces"]["dropped"], json!({"http_400": 4}));
    // The report's own points are no data.
    let metrics = &delivery["metrics"];
    assert_eq!((&metrics["received"], &metrics["written"]), (&json!(1), &json!(1)), "{delivery}");
}

#[tokio::test]
async fn a_page_s_port_that_is_taken_ends_the_start_and_the_log_is_json_where_it_is_wanted() {
    let port = free_port();
    let holder = std::net::TcpListener::bind(("127.0.0.1", port)).expect("binds");
    let telemetry = |level: &str| {
        format!(
            "{{logs: {{encoding: json, output_paths: [stderr, $OUT/log.txt], initial_fields: {{job: j}}}}, metrics: {{level: {level}, \
             readers: [{{pull: {{exporter: {{prometheus: {{host: localhost, port: {port}}}}}}}}}]}}}}"
        )
    };
    let mut collector = Collector::spawn(&with_telemetry(&telemetry("basic"), "", "file"), &[]);
    assert_eq!(collector.ended().await, 1);
    assert!(collector.stderr().contains(&format!("localhost:{port}")), "{}", collector.stderr());
    // Without metrics there is no page.
    let mut collector = Collector::start(&with_telemetry(&telemetry("none"), "", "file"), &[]).await;
    assert_eq!(collector.stop().await, 0);
    let (lines, stderr) = (collector.lines("log.txt"), collector.stderr());
    assert!(lines.iter().any(|line| line["msg"] == "everything is ready" && line["job"] == "j"), "{lines:?}");
    assert_eq!(lines.len(), stderr.lines().count());
    drop(holder);
    let mut collector = Collector::start(&with_telemetry(&telemetry("basic"), "", "file"), &[]).await;
    let url = format!("http://localhost:{port}/metrics");
    let page = eventually_async("the page", async || reqwest::get(&url).await.ok()).await.text().await.expect("a page");
    assert!(page.contains("\notelcol_process_uptime "), "{page}");
    assert_eq!(collector.stop().await, 0);
}

/// The last numbers have one try, and so has what is under way.
#[tokio::test]
async fn an_endpoint_that_is_gone_does_not_hold_the_end() {
    let telemetry = format!(
        "{{metrics: {{readers: [{{periodic: {{interval: 50, exporter: {{otlp: {{protocol: http/protobuf, \
         endpoint: \"http://127.0.0.1:{}\"}}}}}}}}]}}}}",
        free_port()
    );
    let mut collector = Collector::start(&with_telemetry(&telemetry, "", "file"), &[]).await;
    let tried = async || collector.stderr().contains(" again in ").then_some(());
    eventually_async("a try", tried).await;
    assert_eq!(collector.stop().await, 0);
    let stderr = collector.stderr();
    assert!(stderr.contains("own metrics were not sent: cannot connect"), "{stderr}");
    assert!(!stderr.contains("not sent in time"), "{stderr}");
}

/// On stderr, and on a pipe of the file system that nobody has opened.
#[tokio::test]
async fn a_log_that_nobody_reads_costs_lines_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pipe");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let path = path.display().to_string();
    for output in ["stderr", &path] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let telemetry = format!("{{logs: {{output_paths: [\"{output}\"]}}}}");
        let text = with_telemetry(&telemetry, "  debug: {verbosity: detailed}\n", "file, debug");
        let mut collector = Collector::spawn_with(&text, &[], Some(writer.into()));
        collector.ready().await;
        for _ in 0..8 {
            assert_eq!(collector.post("/v1/traces", &spans(2000)).await.0, 200, "{output}");
        }
        assert_eq!(collector.status().await, Some(200), "{output}");
        assert_eq!(collector.stop().await, 0, "{output}");
        assert_eq!(span_count(&collector.lines("x.jsonl")), 16_000, "{output}");
        drop(reader);
    }
}

#[tokio::test]
async fn what_telemetry_cannot_be_is_said_at_once_with_its_line() {
    let telemetry = "\n    logs: {level: loud, encoding: zz, processors: []}\n    traces: {processors: [{batch: {}}]}\n\
                     \x20   resource: {a: 7}\n    metrics:\n      level: everything\n      address: localhost:8888\n      views: []\n      report: [otlp_http, nope]\n      readers:\n\
                     \x20     - {pull: {exporter: {prometheus: {host: x, port: 99999}}}}\n\
                     \x20     - {periodic: {exporter: {console: {}}}}\n\
                     \x20     - {periodic: {exporter: {otlp: {protocol: http/json, endpoint: x, temporality_preference: delta}}}}\n\
                     \x20     - {pull: {exporter: {}}, periodic: {}}";
    let mut collector =
        Collector::spawn(&with_telemetry(telemetry, "  otlp_http: {endpoint: http://x:1}", "file, otlp_http"), &[]);
    assert_eq!(collector.ended().await, 1);
    let stderr = collector.stderr();
    for words in [
        "`loud` is no level",
        "`zz` is not a value of `encoding`",
        "unknown key `address`",
        "`processors` is not supported",
        "`traces` has no effect",
        "expected text, found an integer",
        "`everything` is not a value of `level`",
        "`views` is not supported",
        "`otlp_http` cannot write the report",
        "`nope` cannot write the report",
        "`port` is not between 0 and 65535",
        "`console` is not supported",
        "`http/json` is not a value of `protocol`",
        "as `cumulative` only",
        "a reader is one of `pull` and `periodic`",
        "`prometheus` is missing",
    ] {
        assert!(stderr.contains(words), "{words}: {stderr}");
    }
}
