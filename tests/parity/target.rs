//! The HTTP server of one side: pages to scrape, and an endpoint that keeps what it is sent.

use std::collections::HashMap;
use std::io::Read as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::Response;
use gymrun::otlp::{Payload, Signal};
use serde_json::{Value, json};

/// One answer.
#[derive(Clone)]
pub struct Page {
    pub status: u16,
    pub headers: Vec<(&'static str, &'static str)>,
    pub body: Vec<u8>,
    pub delay: Duration,
}

impl Default for Page {
    fn default() -> Self {
        Self { status: 200, headers: Vec::new(), body: Vec::new(), delay: Duration::ZERO }
    }
}

/// A request as it came.
#[derive(Clone)]
pub struct Asked {
    pub method: String,
    pub path: String,
    /// What stands behind the `?`.
    pub query: Option<String>,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Asked {
    /// The body as a value: JSON as it is, OTLP protobuf as OTLP/JSON; null if there is none.
    pub fn message(&self) -> Value {
        let gzip = self.headers.get("content-encoding").is_some_and(|encoding| encoding == "gzip");
        let mut body = Vec::new();
        if gzip {
            flate2::read::GzDecoder::new(self.body.as_slice()).read_to_end(&mut body).expect("gzip");
        } else {
            body.clone_from(&self.body);
        }
        if body.is_empty() {
            return Value::Null;
        }
        if self.headers.get("content-type").is_some_and(|kind| kind == "application/x-protobuf") {
            let signal = Signal::ALL.into_iter().find(|signal| self.path.ends_with(signal.name())).expect("a signal");
            let mut text = Vec::new();
            Payload::decode(signal, body).expect("OTLP").write_json(&mut text);
            body = text;
        }
        serde_json::from_slice(&body).unwrap_or_else(|_| json!(String::from_utf8_lossy(&body)))
    }
}

#[derive(Default)]
struct Inner {
    pages: HashMap<&'static str, Vec<Page>>,
    seen: Mutex<Vec<Asked>>,
    /// How often each path was asked for.
    counts: Mutex<HashMap<String, usize>>,
}

/// The server.
#[derive(Clone, Default)]
pub struct Target {
    inner: Arc<Inner>,
}

impl Target {
    pub async fn serve(port: u16, pages: Vec<(&'static str, Vec<Page>)>) -> Self {
        let target = Self { inner: Arc::new(Inner { pages: pages.into_iter().collect(), ..Inner::default() }) };
        if !target.inner.pages.is_empty() {
            let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.expect("the port is free");
            let router = Router::new().fallback(answer).with_state(target.clone());
            tokio::spawn(async move { axum::serve(listener, router).await });
        }
        target
    }

    pub fn seen(&self) -> Vec<Asked> {
        self.inner.seen.lock().expect("lock").clone()
    }

    pub fn count(&self, path: &str) -> usize {
        self.inner.counts.lock().expect("lock").get(path).copied().unwrap_or_default()
    }
}

impl Target {
    /// How often the path was asked for before this time.
    fn next(&self, path: &str) -> usize {
        let mut counts = self.inner.counts.lock().expect("lock");
        let count = counts.entry(path.to_owned()).or_default();
        *count += 1;
        *count - 1
    }
}

async fn answer(State(target): State<Target>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 64 << 20).await.expect("a body").to_vec();
    let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = parts.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    let path = parts.uri.path().to_owned();
    let place = target.next(&path);
    let query = parts.uri.query().map(str::to_owned);
    let asked = Asked { method: parts.method.to_string(), path: path.clone(), query, headers, body };
    target.inner.seen.lock().expect("lock").push(asked);
    let pages = target.inner.pages.get(path.as_str());
    let Some(page) = pages.and_then(|pages| pages.get(place.min(pages.len() - 1))) else {
        return Response::builder().status(404).body(Body::empty()).expect("a response");
    };
    tokio::time::sleep(page.delay).await;
    let mut response = Response::builder().status(page.status);
    for (name, value) in &page.headers {
        response = response.header(*name, *value);
    }
    response.body(Body::from(page.body.clone())).expect("a response")
}
