//! A pull reader: the page at `/metrics`.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::gather::Gatherer;
use super::page::{Style, render};
use crate::collector::component::Context;
use crate::collector::net::accept::Connections;
use crate::collector::net::http_server::{self, Patience};
use crate::collector::net::listen::listen;
use crate::diag::Problem;

/// Where the page is and how it looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pull {
    /// `host:port`.
    pub endpoint: String,
    /// The line of the port in the configuration.
    pub line: u32,
    /// Names and labels.
    pub style: Style,
}

struct Served {
    gatherer: Arc<Gatherer>,
    style: Style,
}

/// Begins to answer; the task is aborted to end it.
pub async fn serve(
    pull: &Pull,
    gatherer: Arc<Gatherer>,
    context: &Context,
) -> Result<(JoinHandle<()>, std::net::SocketAddr), Problem> {
    let (listener, address) = listen(&pull.endpoint).await?;
    let served = Arc::new(Served { gatherer, style: pull.style.clone() });
    let missing = || async { (StatusCode::NOT_FOUND, "404 page not found\n") };
    let router = Router::new().route("/metrics", get(page)).fallback(missing).with_state(served);
    let connections = Connections::new(listener, address, context.clone());
    let task = tokio::spawn(http_server::serve(connections, router, Patience::default(), CancellationToken::new()));
    Ok((task, address))
}

async fn page(State(served): State<Arc<Served>>, headers: HeaderMap) -> impl IntoResponse {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let any_names = accept.contains("escaping=allow-utf-8");
    let escaping = if any_names { "allow-utf-8" } else { "underscores" };
    let content_type = format!("text/plain; version=0.0.4; charset=utf-8; escaping={escaping}");
    let gatherer = &served.gatherer;
    let text = render(&gatherer.all(), gatherer.resource().all(), &served.style, any_names);
    ([(CONTENT_TYPE, HeaderValue::try_from(content_type).unwrap_or(HeaderValue::from_static("text/plain")))], text)
}
