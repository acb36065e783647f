//! The `otlp_grpc` exporter, plain and with TLS.

use std::path::PathBuf;
use std::time::Duration;

use data_encoding::BASE64_NOPAD;
use gymrun::otlp::wire::Writer;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;
use serde_json::json;

use crate::harness::Collector;
use crate::rpc::{Reply, RpcSink, Secure, TAKEN};
use crate::{config, eventually, log, point, span_count, spans};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/collector/tls").join(name)
}

fn pem(name: &str) -> Vec<u8> {
    std::fs::read(data(name)).expect("a certificate of the tests")
}

/// For `sink.test`; the client has to show one of the same authority.
async fn secure(replies: Vec<Reply>) -> RpcSink {
    let authority = Some(pem("ca.pem"));
    RpcSink::start(replies, Some(Secure { certificate: pem("cert.pem"), key: pem("key.pem"), authority })).await
}

fn to(endpoint: &str, more: &str) -> String {
    let exporter = format!(
        "  otlp_grpc:\n    endpoint: {endpoint}\n    headers: {{Authorization: \"Bearer ${{env:TOKEN}}\"}}\n{more}\n"
    );
    config("  batch: {timeout: 10ms}", "batch", &exporter, "file, otlp_grpc")
}

#[tokio::test]
async fn each_signal_goes_to_its_service_with_the_token() {
    let sink = RpcSink::start(vec![TAKEN], None).await;
    let endpoint = format!("127.0.0.1:{}", sink.port);
    let mut collector =
        Collector::start(&to(&endpoint, "    tls: {insecure: true}"), &[("TOKEN", "ab$$cd$$$$e")]).await;
    for (path, request) in [("/v1/traces", spans(3)), ("/v1/metrics", point()), ("/v1/logs", log())] {
        assert_eq!(collector.post(path, &request).await.0, 200);
    }
    assert_eq!(collector.stop().await, 0);
    let mut calls = sink.calls();
    calls.sort_by(|one, two| one.path.cmp(&two.path));
    let paths: Vec<&str> = calls.iter().map(|call| call.path.as_str()).collect();
    let service = |name| format!("/opentelemetry.proto.collector.{name}/Export");
    let services = ["logs.v1.LogsService", "metrics.v1.MetricsService", "trace.v1.TraceService"].map(service);
    assert_eq!(paths, services);
    for call in &calls {
        assert_eq!(call.headers["authorization"], "Bearer ab$cd$$e");
        assert_eq!(call.headers["grpc-encoding"], "gzip");
    }
    let request = ExportTraceServiceRequest::decode(calls[2].message.as_slice()).expect("protobuf");
    assert_eq!(request.resource_spans[0].scope_spans[0].spans.len(), 3);
    let delivery = collector.delivery();
    for (signal, count) in [("traces", 3), ("metrics", 1), ("logs", 1)] {
        assert_eq!(delivery[signal]["sent"], json!(count), "{delivery}");
    }
}

/// A partial success of three items with words of this length.
fn long(words: usize) -> Reply {
    let mut partial = Writer::new();
    partial.message_field(1, |partial| {
        partial.varint_field(1, 3);
        partial.bytes_field(2, &vec![b'x'; words]);
    });
    Reply::Give(0, "", None, partial.into_vec().leak())
}

/// What does not speak gRPC (a proxy, another server) is understood as grpc-go does it.
#[tokio::test]
async fn http_statuses_of_an_endpoint_are_tried_again_where_that_helps() {
    for (status, is_tried_again) in [
        (400, false),
        (401, false),
        (403, false),
        (404, false),
        (405, false),
        (500, false),
        (301, false),
        (429, true),
        (502, true),
        (503, true),
        (504, true),
    ] {
        let sink = RpcSink::start(vec![Reply::Http(status, "text/plain"), TAKEN], None).await;
        let retry = "    tls: {insecure: true}\n    retry_on_failure: {initial_interval: 10ms, max_interval: 50ms}";
        let text = to(&format!("127.0.0.1:{}", sink.port), retry);
        let mut collector = Collector::start(&text, &[("TOKEN", "t")]).await;
        assert_eq!(collector.post("/v1/traces", &spans(5)).await.0, 200);
        let calls = 1 + usize::from(is_tried_again);
        eventually("all calls", || sink.calls().len() == calls).await;
        assert_eq!(collector.stop().await, 0);
        assert_eq!(sink.calls().len(), calls, "{status}");
        let traces = &collector.delivery()["traces"];
        let wanted = if is_tried_again { json!([5, {}]) } else { json!([0, {format!("http_{status}"): 5}]) };
        assert_eq!(json!([traces["sent"], traces["dropped"]]), wanted, "{status}");
    }
}

/// `RESOURCE_EXHAUSTED` is for good unless it says when to come again.
#[tokio::test]
async fn statuses_are_obeyed_and_counted() {
    // google.rpc.Status {8, details: [RetryInfo {retry_delay: 1 s}]}
    let mut info = vec![10, 40];
    info.extend_from_slice(b"type.googleapis.com/google.rpc.RetryInfo");
    info.extend_from_slice(&[18, 4, 10, 2, 8, 1]);
    let mut status = vec![8, 8, 26, u8::try_from(info.len()).expect("small")];
    status.extend_from_slice(&info);
    let wait = Reply::Give(8, "slow down", Some(BASE64_NOPAD.encode(&status)), b"");
    let later = Reply::Give(14, "not now", None, b"");
    let partial = Reply::Give(0, "", None, &[10, 7, 8, 2, 18, 3, b'b', b'a', b'd']);
    for (replies, calls, counts) in [
        (vec![later.clone(), wait, TAKEN], 3, json!([5, 0, {}])),
        (vec![partial], 1, json!([3, 2, {}])),
        (vec![Reply::Give(8, "too much", None, b"")], 1, json!([0, 0, {"grpc_8": 5}])),
        (vec![Reply::Give(16, "who are you", None, b"")], 1, json!([0, 0, {"grpc_16": 5}])),
        (vec![Reply::Give(3, "bad", None, b"")], 1, json!([0, 0, {"grpc_3": 5}])),
        // However long the answer is, the status says that the data was taken.
        (vec![long(70_000)], 1, json!([2, 3, {}])),
        (vec![long(5 << 20)], 1, json!([5, 0, {}])),
    ] {
        let sink = RpcSink::start(replies, None).await;
        let retry = "    tls: {insecure: true}\n    retry_on_failure: {initial_interval: 10ms, max_interval: 50ms}";
        let text = to(&format!("127.0.0.1:{}", sink.port), retry);
        let mut collector = Collector::start(&text, &[("TOKEN", "t")]).await;
        assert_eq!(collector.post("/v1/traces", &spans(5)).await.0, 200);
        eventually("all calls", || sink.calls().len() == calls).await;
        assert_eq!(collector.stop().await, 0);
        let seen = sink.calls();
        assert_eq!(seen.len(), calls, "{}", collector.stderr());
        if calls == 3 {
            assert!(seen[2].at - seen[1].at >= Duration::from_millis(950), "came before the endpoint asked for it");
        }
        let traces = &collector.delivery()["traces"];
        assert_eq!(json!([traces["sent"], traces["rejected"], traces["dropped"]]), counts);
        assert_eq!(span_count(&collector.lines("x.jsonl")), 5);
    }
    let sink = RpcSink::start(vec![Reply::Hang], None).await;
    let text = to(&format!("127.0.0.1:{}", sink.port), "    tls: {insecure: true}\n    timeout: 1h");
    let mut collector = Collector::start(&text, &[("TOKEN", "t")]).await;
    assert_eq!(collector.post("/v1/traces", &spans(5)).await.0, 200);
    eventually("a call", || sink.calls().len() == 1).await;
    assert_eq!(collector.admin("/-/stop?seconds=2").await.0, 200);
    assert_eq!(collector.stop().await, 0);
    assert_eq!(collector.delivery()["traces"]["dropped"], json!({"shutdown": 5}));
}

#[tokio::test]
async fn over_tls_both_sides_show_who_they_are() {
    let sink = secure(vec![TAKEN]).await;
    let own = format!("cert_file: {}, key_file: {}", data("cert.pem").display(), data("key.pem").display());
    let ca = format!("ca_file: {}", data("ca.pem").display());
    let named = "server_name_override: sink.test";
    let endpoint = format!("127.0.0.1:{}", sink.port);
    for (tls, sent) in [
        (format!("{ca}, {own}, {named}"), 4),
        // Not the endpoint's name; nobody's authority; no certificate of our own; no TLS at all.
        (format!("{ca}, {own}"), 0),
        (format!("{own}, {named}"), 0),
        (format!("{ca}, {named}"), 0),
        ("insecure: true".to_owned(), 0),
    ] {
        let more = format!("    tls: {{{tls}}}\n    retry_on_failure: {{enabled: false}}");
        let mut collector = Collector::start(&to(&endpoint, &more), &[("TOKEN", "t")]).await;
        assert_eq!(collector.post("/v1/traces", &spans(4)).await.0, 200);
        assert_eq!(collector.stop().await, 0);
        let traces = &collector.delivery()["traces"];
        assert_eq!(traces["sent"], json!(sent), "{tls}: {}", collector.stderr());
        assert_eq!(traces["dropped"], if sent == 4 { json!({}) } else { json!({"connection": 4}) }, "{tls}");
    }
    assert_eq!(sink.calls().len(), 1);
}

/// As over HTTP: trusted as they are, name and dates checked.
#[tokio::test]
async fn a_certificate_may_be_its_own_authority() {
    for (own, wrong) in [
        ("own-authority.pem", None),
        ("own-plain.pem", None),
        ("own-expired.pem", Some("its certificate expired on 2021-01-01")),
        ("own-other.pem", Some("its certificate is for `other.test`, not for `127.0.0.1`")),
        ("chains/own-for-clients.pem", Some("it is not for servers (extended key usage)")),
    ] {
        let secure = Secure { certificate: pem(own), key: pem("own-key.pem"), authority: None };
        let sink = RpcSink::start(vec![TAKEN], Some(secure)).await;
        let more = format!("    tls: {{ca_file: {}}}\n    retry_on_failure: {{enabled: false}}", data(own).display());
        let text = to(&format!("127.0.0.1:{}", sink.port), &more);
        let mut collector = Collector::start(&text, &[("TOKEN", "t")]).await;
        assert_eq!(collector.post("/v1/traces", &spans(4)).await.0, 200);
        assert_eq!(collector.stop().await, 0);
        let (sent, stderr) = (collector.delivery()["traces"]["sent"].clone(), collector.stderr());
        assert_eq!(sent, json!(if wrong.is_none() { 4 } else { 0 }), "{own}: {stderr}");
        assert!(stderr.contains(wrong.unwrap_or_default()), "{own}: {stderr}");
    }
}
