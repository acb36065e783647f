//! OTLP in: both protocols, both forms, through the rendered pipelines and as they are.

use super::bed::{Case, both};
use super::requests::{all, json_body, path, wire, wire_body};
use super::rpc::export;
use super::target::Page;

/// One pipeline of each signal from OTLP into a file, without processors.
pub fn plain() -> Case {
    Case::new(
        "receivers: {otlp: {protocols: {http: {endpoint: $HTTP}, grpc: {endpoint: $GRPC}}}}\n\
         exporters: {file: {path: $OUT/x.jsonl}}\n\
         service:\n  telemetry: {metrics: {level: none}}\n  pipelines:\n\
         \x20   traces: {receivers: [otlp], exporters: [file]}\n\
         \x20   metrics: {receivers: [otlp], exporters: [file]}\n\
         \x20   logs: {receivers: [otlp], exporters: [file]}\n",
    )
}

#[tokio::test]
async fn every_value_in_both_forms_to_the_exact_bytes() {
    both(plain(), async |side| {
        for (signal, request) in all() {
            side.post(path(signal), json_body(&request)).await;
            side.post(path(signal), wire_body(signal, &request)).await;
        }
        side.stop().await;
        side.raw_output("x.jsonl");
    })
    .await;
}

#[tokio::test]
async fn every_value_over_grpc_with_and_without_gzip() {
    both(plain(), async |side| {
        for (signal, request) in all() {
            side.call(export(signal), wire(signal, &request), false).await;
            side.call(export(signal), wire(signal, &request), true).await;
            side.call(export(signal), Vec::new(), false).await;
            side.call(export(signal), b"\xff\xff".to_vec(), false).await;
        }
        side.call("/opentelemetry.proto.collector.trace.v1.TraceService/Nope", Vec::new(), false).await;
        side.call("/grpc.health.v1.Health/Check", Vec::new(), false).await;
        side.stop().await;
        side.raw_output("x.jsonl");
    })
    .await;
}

/// The configuration that the shipped policy renders: stamped, renamed, batched, span metrics, files and endpoint.
#[tokio::test]
async fn the_rendered_configuration() {
    let accepted = Page { headers: vec![("content-type", "application/x-protobuf")], ..Page::default() };
    let config = include_str!("../data/collector/rendered.json")
        .replace("0.0.0.0:13133", "$HEALTH")
        .replace("0.0.0.0:4317", "$GRPC")
        .replace("0.0.0.0:4318", "$HTTP")
        .replace("https://ingest.example/otlp", "http://$TARGET/otlp")
        .replace("/lustre/out/gym-job-20260101_000000/arith/otel/", "$OUT/")
        .replace("\"metrics_flush_interval\":\"15s\"", "\"metrics_flush_interval\":\"1h\"");
    let config = without_own_metrics(&config);
    let mut case = Case::new(config).variable("OTEL_TOKEN", "s3cr3t").variable("SLURM_JOB_ID", "0042");
    for path in ["/otlp/v1/traces", "/otlp/v1/metrics", "/otlp/v1/logs"] {
        case = case.serve(path, vec![accepted.clone()]);
    }
    both(case, async |side| {
        for (signal, request) in all() {
            side.post(path(signal), json_body(&request)).await;
            side.call(export(signal), wire(signal, &request), true).await;
        }
        for name in ["traces", "metrics", "logs"] {
            side.wait_asked(&format!("/otlp/v1/{name}"), 1).await;
        }
        side.stop().await;
        for name in ["traces.jsonl", "logs.jsonl"] {
            side.merged_output(name);
        }
    })
    .await;
}

/// The reference's own metrics would need a port; scraping has cases of its own.
fn without_own_metrics(config: &str) -> String {
    let mut config: serde_json::Value = serde_json::from_str(config).expect("JSON");
    config["service"]["telemetry"]["metrics"] = serde_json::json!({"level": "none"});
    config["receivers"].as_object_mut().expect("a map").shift_remove("prometheus");
    for (_, pipeline) in config["service"]["pipelines"].as_object_mut().expect("a map") {
        pipeline["receivers"].as_array_mut().expect("a list").retain(|id| id != "prometheus");
    }
    config.to_string()
}
