//! Large requests by both ways in: up to the limit they are taken, above it they are refused without being kept.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;
use serde_json::json;
use tonic::Code;

use crate::harness::{Collector, free_port};
use crate::rpc::send_spans;
use crate::{span_count, spans};

const MEBIBYTE: usize = 1 << 20;

/// A request of about `size` bytes, in spans of one KiB.
fn request(size: usize) -> Vec<u8> {
    let span = Span { trace_id: vec![1; 16], span_id: vec![2; 8], name: "x".repeat(990), ..Span::default() };
    let scope = ScopeSpans { spans: vec![span; size / 1024], ..ScopeSpans::default() };
    let entry = ResourceSpans { scope_spans: vec![scope], ..ResourceSpans::default() };
    ExportTraceServiceRequest { resource_spans: vec![entry] }.encode_to_vec()
}

#[tokio::test]
async fn large_requests_are_taken_and_huge_ones_refused_in_bounded_memory() {
    let grpc = free_port();
    let text = format!(
        "receivers: {{otlp: {{protocols: {{http: {{endpoint: $HTTP}}, grpc: {{endpoint: 127.0.0.1:{grpc}, max_recv_msg_size_mib: 20}}}}}}}}\n\
         extensions: {{health_check: {{endpoint: $HEALTH}}}}\nprocessors: {{batch: }}\nexporters: {{file: {{path: $OUT/x.jsonl}}}}\n\
         service: {{extensions: [health_check], pipelines: {{traces: {{receivers: [otlp], processors: [batch], exporters: [file]}}}}}}\n"
    );
    let mut collector = Collector::start(&text, &[]).await;
    let url = format!("http://127.0.0.1:{}/v1/traces", collector.http);
    let post = async |body: Vec<u8>| {
        let request = reqwest::Client::new().post(&url).header("content-type", "application/x-protobuf");
        // Whoever is refused in the middle may find the connection closed.
        request.body(body).send().await.map(|answer| answer.status().as_u16())
    };
    let large = request(10 * MEBIBYTE);
    let count = 10 * MEBIBYTE / 1024;
    assert_eq!(post(large.clone()).await.expect("an answer"), 200);
    send_spans(grpc, large).await.expect("taken");
    let before = collector.peak_memory();
    let huge = request(200 * MEBIBYTE);
    for _ in 0..2 {
        let answer = post(huge.clone()).await;
        assert!(answer.as_ref().is_ok_and(|status| *status == 400) || answer.is_err(), "{answer:?}");
        let refused = send_spans(grpc, huge.clone()).await.expect_err("refused");
        assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    }
    // The kernel sums its counters for each reading, so that a peak may seem to fall by some pages.
    let grown = collector.peak_memory().saturating_sub(before);
    assert!(grown < 60 << 20, "{} MiB more for what was refused", grown >> 20);
    assert_eq!(collector.post("/v1/traces", &spans(3)).await.0, 200);
    send_spans(grpc, request(MEBIBYTE)).await.expect("taken");
    assert_eq!(collector.stop().await, 0);
    let all = 2 * count + 3 + 1024;
    assert_eq!(span_count(&collector.lines("x.jsonl")), all);
    assert_eq!(collector.delivery()["traces"]["received"], json!(all));
}
