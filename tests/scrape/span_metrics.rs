//! Span metrics of the running collector.

use serde_json::{Value, json};

use crate::harness::{Collector, eventually_async};

fn config(interval: &str) -> String {
    format!(
        "receivers:\n  otlp:\n    protocols:\n      http: {{endpoint: $HTTP}}\n\
         connectors:\n  span_metrics:\n    metrics_flush_interval: {interval}\n    exclude_dimensions: [collector.instance.id]\n\
         processors:\n  resource:\n    attributes:\n      - {{key: service.name, value: evals, action: upsert}}\n\
         \x20     - {{key: process.pid, action: delete}}\n\
         extensions:\n  health_check: {{endpoint: $HEALTH}}\n\
         exporters:\n  file: {{path: $OUT/x.jsonl, flush_interval: 20ms}}\n\
         service:\n  extensions: [health_check]\n  pipelines:\n\
         \x20   traces: {{receivers: [otlp], processors: [resource], exporters: [span_metrics]}}\n\
         \x20   metrics: {{receivers: [span_metrics], exporters: [file]}}\n"
    )
}

/// Ten spans of a producer that calls itself `name` and has this process id.
fn spans(name: &str, pid: u32) -> Value {
    let span = json!({"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": "s",
                      "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000000250000000"});
    let attributes = json!([{"key": "service.name", "value": {"stringValue": name}},
                            {"key": "process.pid", "value": {"intValue": pid}}]);
    json!({"resourceSpans": [{"resource": {"attributes": attributes},
                              "scopeSpans": [{"scope": {}, "spans": vec![span; 10]}]}]})
}

/// Value and start of the points of `calls`, line by line.
fn calls(lines: &[Value]) -> Vec<Vec<(u64, String)>> {
    let points = |line: &Value| -> Vec<(u64, String)> {
        let resources = line["resourceMetrics"].as_array().into_iter().flatten();
        let metrics = resources.filter_map(|resource| resource["scopeMetrics"][0]["metrics"].as_array()).flatten();
        let calls = metrics.filter(|metric| metric["name"] == "traces.span.metrics.calls");
        let points = calls.filter_map(|metric| metric["sum"]["dataPoints"].as_array()).flatten();
        let read = |point: &Value| {
            let value = point["asInt"].as_str().and_then(|text| text.parse().ok()).expect("a count");
            (value, point["startTimeUnixNano"].as_str().expect("a start").to_owned())
        };
        points.map(read).collect()
    };
    lines.iter().map(points).filter(|points| !points.is_empty()).collect()
}

/// Producers whose stamped resources are equal are added up: one series that never falls, with one start.
#[tokio::test]
async fn producers_that_look_alike_after_stamping_are_one_series() {
    let mut collector = Collector::start(&config("100ms"), &[]).await;
    for round in 1..=3_u64 {
        for pid in 0..3 {
            let name = if pid == 0 { "agent" } else { "model" };
            assert_eq!(collector.post("/v1/traces", &spans(name, pid)).await.0, 200);
        }
        eventually_async("the round is counted", async || {
            let counted = calls(&collector.lines_so_far("x.jsonl"));
            counted.last().is_some_and(|points| points[0].0 >= round * 30).then_some(())
        })
        .await;
    }
    assert_eq!(collector.stop().await, 0);
    let flushed = calls(&collector.lines("x.jsonl"));
    assert!(flushed.iter().all(|points| points.len() == 1 && points[0].1 == flushed[0][0].1), "{flushed:?}");
    assert!(flushed.windows(2).all(|pair| pair[0][0].0 <= pair[1][0].0), "{flushed:?}");
    assert_eq!(flushed.last().expect("a flush")[0].0, 90);
}

#[tokio::test]
async fn spans_since_the_last_flush_are_counted_at_the_stop() {
    let mut collector = Collector::start(&config("60s"), &[]).await;
    assert_eq!(collector.post("/v1/traces", &spans("agent", 1)).await.0, 200);
    assert_eq!(collector.stop().await, 0);
    let flushed = calls(&collector.lines("x.jsonl"));
    assert_eq!(flushed.iter().map(|points| points[0].0).collect::<Vec<_>>(), [10]);
}
