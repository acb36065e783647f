//! A target: an HTTP server on loopback that gives pages in order, the last one again and again.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;
use tokio::net::TcpListener;

use crate::harness::eventually_async;

/// One page.
#[derive(Clone)]
pub struct Page {
    text: String,
    content_type: Option<String>,
    packed: bool,
    redirected: bool,
}

impl Page {
    /// A page of text 0.0.4.
    pub fn text(text: &str) -> Self {
        let content_type = Some("text/plain; version=0.0.4".to_owned());
        Self { text: text.to_owned(), content_type, packed: false, redirected: false }
    }

    /// With another `Content-Type`, or none.
    pub fn typed(mut self, content_type: Option<&str>) -> Self {
        self.content_type = content_type.map(str::to_owned);
        self
    }

    /// Compressed where the client asks for it.
    pub fn packed(mut self) -> Self {
        self.packed = true;
        self
    }

    /// At `/metrics/`, with a redirect at `/metrics`.
    pub fn redirected(mut self) -> Self {
        self.redirected = true;
        self
    }
}

/// The server.
#[derive(Clone)]
pub struct Pages {
    port: u16,
    list: Arc<Vec<Page>>,
    given: Arc<AtomicUsize>,
}

impl Pages {
    /// Serves on a free port.
    pub async fn serve(pages: Vec<Page>) -> Self {
        Self::serve_on(0, pages).await
    }

    /// Serves on this port.
    pub async fn serve_on(port: u16, pages: Vec<Page>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("binds");
        let port = listener.local_addr().expect("an address").port();
        let served = Self { port, list: Arc::new(pages), given: Arc::default() };
        let router = Router::new().fallback(give).with_state(served.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        served
    }

    /// `host:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// How many pages were given.
    pub fn seen(&self) -> usize {
        self.given.load(Ordering::SeqCst)
    }

    /// Waits until `count` pages were given.
    pub async fn wait(&self, count: usize) {
        eventually_async(&format!("{count} scrapes"), async || (self.seen() >= count).then_some(())).await;
    }
}

async fn give(State(pages): State<Pages>, request: Request) -> Response<Body> {
    let place = pages.given.load(Ordering::SeqCst).min(pages.list.len() - 1);
    let page = &pages.list[place];
    if page.redirected && request.uri().path() == "/metrics" {
        let response = Response::builder().status(307).header("location", "/metrics/");
        return response.body(Body::empty()).expect("a response");
    }
    let mut response = Response::builder();
    if let Some(content_type) = &page.content_type {
        response = response.header("content-type", content_type);
    }
    let asked = request.headers().get("accept-encoding").is_some_and(|encoding| encoding == "gzip");
    let body = if page.packed && asked {
        response = response.header("content-encoding", "gzip");
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(page.text.as_bytes()).expect("packs");
        encoder.finish().expect("packs")
    } else {
        page.text.clone().into_bytes()
    };
    pages.given.fetch_add(1, Ordering::SeqCst);
    response.body(Body::from(body)).expect("a response")
}
