//! An OTLP/HTTP endpoint on loopback that keeps what it is sent and answers as the test wants.

use std::collections::{BTreeSet, HashMap};
use std::io::Read as _;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::Response;
use opentelemetry_proto::tonic::collector::{
    logs::v1::ExportLogsServiceRequest, metrics::v1::ExportMetricsServiceRequest, trace::v1::ExportTraceServiceRequest,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use super::wait::eventually_async;

/// One answer.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A status with headers and a body.
    Give(u16, Vec<(&'static str, &'static str)>, &'static [u8]),
    /// A status with what the request said of who sent it, in words of its own, and with its body.
    Quote(u16),
    /// Never.
    Hang,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: Instant,
    pub path: String,
    pub headers: HashMap<String, String>,
    /// Decompressed.
    pub body: Vec<u8>,
}

/// The endpoint.
#[derive(Clone)]
pub struct Sink {
    pub port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    answers: Arc<Vec<Answer>>,
    /// Of one that was started where there is no other.
    _runtime: Option<Arc<Runtime>>,
}

pub const GOOD: Answer = Answer::Give(200, Vec::new(), b"");

impl Sink {
    /// Gives the answers in order, the last one again and again.
    pub async fn start(answers: Vec<Answer>) -> Self {
        Self::start_at(0, answers).await
    }

    /// The same on a port that was dead so far.
    pub async fn start_at(port: u16, answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let sink = Self { port, seen: Arc::default(), answers: Arc::new(answers), _runtime: None };
        let router = Router::new().fallback(take).with_state(sink.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        sink
    }

    /// The same for a test that is no task.
    pub fn start_alone(answers: Vec<Answer>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let sink = runtime.block_on(Self::start(answers));
        Self { _runtime: Some(Arc::new(runtime)), ..sink }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("lock").clone()
    }

    /// Waits until `count` requests came.
    pub async fn wait(&self, count: usize) -> Vec<Seen> {
        let enough = async || Some(self.seen()).filter(|seen| seen.len() >= count);
        eventually_async(&format!("{count} requests"), enough).await
    }
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// For each of its resources: the attributes with text values.
    pub fn resource_attributes(&self) -> Vec<BTreeSet<(String, String)>> {
        let of_resource = |resource: Resource| {
            let text = |pair: opentelemetry_proto::tonic::common::v1::KeyValue| match pair.value?.value? {
                Value::StringValue(text) => Some((pair.key, text)),
                _ => None,
            };
            resource.attributes.into_iter().filter_map(text).collect()
        };
        self.resources().into_iter().map(of_resource).collect()
    }

    fn resources(&self) -> Vec<Resource> {
        let body = self.body.as_slice();
        if self.path.ends_with("/v1/traces") {
            let request = ExportTraceServiceRequest::decode(body).expect("OTLP");
            request.resource_spans.into_iter().filter_map(|item| item.resource).collect()
        } else if self.path.ends_with("/v1/metrics") {
            let request = ExportMetricsServiceRequest::decode(body).expect("OTLP");
            request.resource_metrics.into_iter().filter_map(|item| item.resource).collect()
        } else {
            let request = ExportLogsServiceRequest::decode(body).expect("OTLP");
            request.resource_logs.into_iter().filter_map(|item| item.resource).collect()
        }
    }
}

async fn take(State(sink): State<Sink>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let raw = to_bytes(body, 64 << 20).await.expect("a body");
    let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers: HashMap<String, String> =
        parts.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    let body = if headers.get("content-encoding").is_some_and(|encoding| encoding == "gzip") {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(raw.as_ref()).read_to_end(&mut plain).expect("gzip");
        plain
    } else {
        raw.to_vec()
    };
    let quote = headers.get("authorization").cloned().unwrap_or_default();
    let request = Seen { at: Instant::now(), path: parts.uri.path().to_owned(), headers, body };
    let body = String::from_utf8_lossy(&request.body).into_owned();
    let place = {
        let mut seen = sink.seen.lock().expect("lock");
        seen.push(request);
        seen.len() - 1
    };
    match &sink.answers[place.min(sink.answers.len() - 1)] {
        Answer::Hang => std::future::pending().await,
        Answer::Quote(status) => {
            // Messages are cut after 200 bytes: within the second mention.
            let body = format!("invalid credentials: {quote} {}{quote} {body}", "x".repeat(200 - 35 - quote.len()));
            Response::builder().status(*status).body(Body::from(body)).expect("a response")
        }
        Answer::Give(status, headers, body) => {
            let mut response = Response::builder().status(*status);
            for (name, value) in headers {
                response = response.header(*name, *value);
            }
            response.body(Body::from(*body)).expect("a response")
        }
    }
}
