//! The endpoint that collectors send to: it accepts all and counts what came.

use std::io::Read as _;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Uri, header};
use gymrun::otlp::wire::{Value, fields};

/// A sink on a thread of its own, for as long as the program runs.
#[derive(Clone)]
pub struct Sink {
    pub port: u16,
    state: Arc<Mutex<Received>>,
}

/// What came so far.
#[derive(Default)]
struct Received {
    /// Requests of spans that are not counted yet: that costs more than taking them.
    waiting: Vec<(bool, Bytes, Instant)>,
    totals: Totals,
    /// The largest request of metrics.
    metrics: (bool, Bytes),
}

/// Sums over the requests of spans.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub spans: u64,
    /// As they came.
    pub bytes: u64,
    /// Decompressed.
    pub plain_bytes: u64,
    /// When the newest one came.
    pub newest: Option<Instant>,
    /// How many spans had come before the newest one, and when the last of them came.
    pub before_newest: Option<(u64, Instant)>,
}

impl Sink {
    pub fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("non-blocking");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::<Mutex<Received>>::default();
        let router = Router::new().fallback(take).layer(DefaultBodyLimit::disable()).with_state(Arc::clone(&state));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        std::thread::spawn(move || {
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                axum::serve(listener, router).await.expect("serves");
            });
        });
        Self { port, state }
    }

    /// Sums of all that came.
    pub fn totals(&self) -> Totals {
        let waiting = std::mem::take(&mut self.state.lock().expect("lock").waiting);
        let mut totals = self.state.lock().expect("lock").totals;
        for (compressed, body, came) in waiting {
            let plain = decompress(compressed, &body);
            totals.before_newest = totals.newest.map(|before| (totals.spans, before));
            totals.newest = Some(came);
            totals.spans += spans_in(&plain);
            totals.bytes += body.len() as u64;
            totals.plain_bytes += plain.len() as u64;
        }
        self.state.lock().expect("lock").totals = totals;
        totals
    }

    /// The largest request of metrics, decompressed.
    pub fn metrics(&self) -> Vec<u8> {
        let (compressed, body) = self.state.lock().expect("lock").metrics.clone();
        decompress(compressed, &body)
    }
}

fn decompress(compressed: bool, body: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    if compressed {
        flate2::read::GzDecoder::new(body).read_to_end(&mut plain).expect("whole gzip");
    } else {
        plain.extend_from_slice(body);
    }
    plain
}

async fn take(State(state): State<Arc<Mutex<Received>>>, uri: Uri, headers: HeaderMap, body: Bytes) -> HeaderMap {
    let compressed = headers.get(header::CONTENT_ENCODING).is_some_and(|name| name == "gzip");
    let mut state = state.lock().expect("lock");
    if uri.path().ends_with("/v1/traces") {
        state.waiting.push((compressed, body, Instant::now()));
    } else if uri.path().ends_with("/v1/metrics") && body.len() > state.metrics.1.len() {
        state.metrics = (compressed, body);
    }
    [(header::CONTENT_TYPE, "application/x-protobuf".parse().expect("a value"))].into_iter().collect()
}

/// How many spans a request has: resources (1), their scopes (2), their spans (2).
fn spans_in(request: &[u8]) -> u64 {
    let inside = |message, wanted| {
        fields(message).filter_map(move |(number, value)| match value {
            Value::Bytes(bytes) if number == wanted => Some(bytes),
            _ => None,
        })
    };
    let scopes = inside(request, 1).flat_map(|resource| inside(resource, 2));
    scopes.flat_map(|scope| inside(scope, 2)).count() as u64
}
