//! An endpoint that keeps what it is sent and answers as the test wants.

use std::collections::HashMap;
use std::io::Read as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::Response;

/// One answer.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A status with headers and a body.
    Give(u16, Vec<(&'static str, &'static str)>, &'static [u8]),
    /// A status with what the request said of who sent it, in words of its own.
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

#[derive(Clone)]
pub struct Sink {
    pub port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    answers: Arc<Vec<Answer>>,
}

pub const GOOD: Answer = Answer::Give(200, Vec::new(), b"");

impl Sink {
    /// Gives the answers in order, the last one again and again.
    pub async fn start(answers: Vec<Answer>) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let sink = Self { port, seen: Arc::default(), answers: Arc::new(answers) };
        let router = Router::new().fallback(take).with_state(sink.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        sink
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("lock").clone()
    }

    /// Waits until `count` requests came.
    pub async fn wait(&self, count: usize) -> Vec<Seen> {
        let begin = Instant::now();
        while self.seen().len() < count {
            assert!(begin.elapsed() < super::process::PATIENCE, "{} of {count} requests came", self.seen().len());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.seen()
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
    let place = {
        let mut seen = sink.seen.lock().expect("lock");
        seen.push(Seen { at: Instant::now(), path: parts.uri.path().to_owned(), headers, body });
        seen.len() - 1
    };
    match &sink.answers[place.min(sink.answers.len() - 1)] {
        Answer::Hang => std::future::pending().await,
        Answer::Quote(status) => {
            let body = format!("invalid credentials: {quote} {}{quote}", "x".repeat(200 - 35 - quote.len()));
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
