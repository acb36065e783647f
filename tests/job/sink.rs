//! An OTLP/HTTP endpoint on loopback that keeps what it is sent.

use std::collections::BTreeSet;
use std::io::Read;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use opentelemetry_proto::tonic::collector::{
    logs::v1::ExportLogsServiceRequest, metrics::v1::ExportMetricsServiceRequest, trace::v1::ExportTraceServiceRequest,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

/// What has come so far.
#[derive(Default)]
struct Received {
    signals: BTreeSet<String>,
    authorizations: BTreeSet<Option<String>>,
    attributes: Vec<BTreeSet<(String, String)>>,
}

/// The endpoint; ends with the test.
pub struct Sink {
    /// Base URL.
    pub url: String,
    received: Arc<Mutex<Received>>,
    _runtime: tokio::runtime::Runtime,
}

impl Sink {
    /// Starts to listen on a free port.
    pub fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let received = Arc::new(Mutex::new(Received::default()));
        let app = Router::new().fallback(take).with_state(Arc::clone(&received));
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self { url, received, _runtime: runtime }
    }

    /// Paths that were posted to.
    pub fn signals(&self) -> BTreeSet<String> {
        self.received.lock().expect("no handler panics").signals.clone()
    }

    /// Every `Authorization` header that came; `None` is a request without one.
    pub fn authorizations(&self) -> BTreeSet<Option<String>> {
        self.received.lock().expect("no handler panics").authorizations.clone()
    }

    /// For each resource received: its attributes with text values.
    pub fn resource_attributes(&self) -> Vec<BTreeSet<(String, String)>> {
        self.received.lock().expect("no handler panics").attributes.clone()
    }
}

async fn take(State(received): State<Arc<Mutex<Received>>>, uri: Uri, headers: HeaderMap, body: Bytes) -> StatusCode {
    let mut plain = Vec::new();
    if headers.get("content-encoding").is_some_and(|encoding| encoding == "gzip") {
        if flate2::read::GzDecoder::new(&body[..]).read_to_end(&mut plain).is_err() {
            return StatusCode::BAD_REQUEST;
        }
    } else {
        plain.extend_from_slice(&body);
    }
    let Some(resources) = resources(uri.path(), &plain) else { return StatusCode::BAD_REQUEST };
    let mut received = received.lock().expect("no handler panics");
    received.signals.insert(uri.path().to_owned());
    received
        .authorizations
        .insert(headers.get("authorization").map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()));
    for resource in resources {
        received.attributes.push(
            resource
                .attributes
                .into_iter()
                .filter_map(|pair| match pair.value?.value? {
                    Value::StringValue(text) => Some((pair.key, text)),
                    _ => None,
                })
                .collect(),
        );
    }
    StatusCode::OK
}

fn resources(path: &str, body: &[u8]) -> Option<Vec<Resource>> {
    Some(match path {
        "/v1/traces" => ExportTraceServiceRequest::decode(body)
            .ok()?
            .resource_spans
            .into_iter()
            .filter_map(|item| item.resource)
            .collect(),
        "/v1/metrics" => ExportMetricsServiceRequest::decode(body)
            .ok()?
            .resource_metrics
            .into_iter()
            .filter_map(|item| item.resource)
            .collect(),
        "/v1/logs" => ExportLogsServiceRequest::decode(body)
            .ok()?
            .resource_logs
            .into_iter()
            .filter_map(|item| item.resource)
            .collect(),
        _ => return None,
    })
}
