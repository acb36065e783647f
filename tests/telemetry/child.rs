//! What the processes of the jobs do.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;

use axum::http::uri::PathAndQuery;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::{
    Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric, number_data_point,
};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use tonic::client::Grpc;
use tonic::transport::Endpoint;

use crate::harness::Raw;

/// One item of each signal: traces and metrics by HTTP to the endpoint for all, logs by gRPC to their own, as an SDK does.
pub fn send_all() {
    send_span("of the child");
    let point = NumberDataPoint { value: Some(number_data_point::Value::AsInt(7)), ..NumberDataPoint::default() };
    let gauge = metric::Data::Gauge(Gauge { data_points: vec![point] });
    let metric = Metric { name: "of_the_child".into(), data: Some(gauge), ..Metric::default() };
    let scope = ScopeMetrics { metrics: vec![metric], ..ScopeMetrics::default() };
    let entry = ResourceMetrics { scope_metrics: vec![scope], ..ResourceMetrics::default() };
    post("metrics", &ExportMetricsServiceRequest { resource_metrics: vec![entry] });
    let record = LogRecord { severity_text: "of the child".into(), ..LogRecord::default() };
    let scope = ScopeLogs { log_records: vec![record], ..ScopeLogs::default() };
    let entry = ResourceLogs { scope_logs: vec![scope], ..ResourceLogs::default() };
    call(&ExportLogsServiceRequest { resource_logs: vec![entry] });
}

/// One span.
pub fn send_span(name: &str) {
    let span = Span { trace_id: vec![7; 16], span_id: vec![7; 8], name: name.into(), ..Span::default() };
    let scope = ScopeSpans { spans: vec![span], ..ScopeSpans::default() };
    let entry = ResourceSpans { scope_spans: vec![scope], ..ResourceSpans::default() };
    post("traces", &ExportTraceServiceRequest { resource_spans: vec![entry] });
}

fn post(signal: &str, message: &impl Message) {
    let endpoint = variable("OTEL_EXPORTER_OTLP_ENDPOINT");
    let address = endpoint.strip_prefix("http://").expect("an address of this host").trim_end_matches('/');
    let body = message.encode_to_vec();
    let mut stream = TcpStream::connect(address).expect("a connection");
    let head = format!(
        "POST /v1/{signal} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/x-protobuf\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), &body].concat()).expect("sends");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
}

fn call(message: &impl Message) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let message = message.encode_to_vec();
    runtime.block_on(async {
        let endpoint = Endpoint::from_shared(variable("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT")).expect("an address");
        let mut client = Grpc::new(endpoint.connect().await.expect("a connection"));
        client.ready().await.expect("ready");
        let path = PathAndQuery::from_static("/opentelemetry.proto.collector.logs.v1.LogsService/Export");
        client.unary(tonic::Request::new(message.into()), path, Raw).await.expect("taken");
    });
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is set"))
}

/// A metric page with the counter that stands in a file.
pub fn show_counter() {
    let listener = TcpListener::bind(format!("127.0.0.1:{}", variable("GYMRUN_PORT"))).expect("its port");
    let file = PathBuf::from(variable("COUNTER"));
    for mut stream in listener.incoming().flatten() {
        let mut line = String::new();
        let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
        while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
            line.clear();
        }
        let count = fs::read_to_string(&file).unwrap_or_else(|_| "1".into());
        let page = format!("# TYPE done_total counter\ndone_total {}\n", count.trim());
        let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", page.len());
        let _ = stream.write_all((head + &page).as_bytes());
    }
}
