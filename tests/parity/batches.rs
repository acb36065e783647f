//! The `batch` and `memory_limiter` processors.

use std::fmt::Write as _;

use gymrun::otlp::Signal;

use super::bed::{Case, both};
use super::requests::{all, json_body, path, wire};
use super::rpc::export;

/// A pipeline of each signal with this processor, each with a file of its own.
fn case(processor: &str) -> Case {
    let (mut exporters, mut pipelines) = (String::new(), String::new());
    for signal in Signal::ALL.map(Signal::name) {
        writeln!(exporters, "  file/{signal}: {{path: $OUT/{signal}.jsonl}}").expect("memory");
        writeln!(
            pipelines,
            "    {signal}: {{receivers: [otlp], processors: [under/test], exporters: [file/{signal}]}}"
        )
        .expect("memory");
    }
    let (kind, settings) = processor.split_once(' ').expect(processor);
    let text = format!(
        "receivers: {{otlp: {{protocols: {{http: {{endpoint: $HTTP}}, grpc: {{endpoint: $GRPC}}}}}}}}\n\
         processors: {{{kind}/test: {settings}}}\nexporters:\n{exporters}service:\n  telemetry: {{metrics: {{level: none}}}}\n\
         \x20 pipelines:\n{pipelines}"
    );
    Case::new(text.replace("under/test", &format!("{kind}/test")))
}

/// Whole batches in their order: by size, split, at once, and what is left at the stop.
#[tokio::test]
async fn batches_by_size() {
    for settings in [
        "{send_batch_size: 5, timeout: 1h}",
        "{send_batch_size: 1, send_batch_max_size: 1, timeout: 1h}",
        "{send_batch_size: 3, send_batch_max_size: 4, timeout: 1h}",
        "{send_batch_size: 13, send_batch_max_size: 13, timeout: 1h}",
        "{send_batch_size: 0, send_batch_max_size: 5, timeout: 1h}",
        "{send_batch_size: 4, send_batch_max_size: 4, timeout: 0s}",
        "{send_batch_size: 1000, timeout: 0s}",
        "{send_batch_size: 1000, timeout: 1h}",
    ] {
        both(case(&format!("batch {settings}")), async |side| {
            for (signal, request) in all() {
                side.post(path(signal), json_body(&request)).await;
                side.call(export(signal), wire(signal, &request), false).await;
                side.post(path(signal), json_body(&serde_json::json!({}))).await;
            }
            side.stop().await;
            for signal in Signal::ALL.map(Signal::name) {
                side.output_without_metadata(&format!("{signal}.jsonl"));
            }
        })
        .await;
    }
}

/// Without any memory left all is refused, but for what holds nothing.
#[tokio::test]
async fn memory_that_is_used_up() {
    both(case("memory_limiter {check_interval: 10ms, limit_mib: 1}"), async |side| {
        for (signal, request) in all() {
            side.post_until(path(signal), json_body(&request), 503).await;
            side.post(path(signal), json_body(&request)).await;
            side.call(export(signal), wire(signal, &request), false).await;
            side.post(path(signal), json_body(&serde_json::json!({}))).await;
            side.call(export(signal), Vec::new(), false).await;
        }
        side.stop().await;
    })
    .await;
}
