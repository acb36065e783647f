//! The answers.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State as Shared};
use axum::http::header::{CONTENT_TYPE, ORIGIN};
use axum::http::{Method, Response, StatusCode};
use futures_util::future::BoxFuture;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::config::Settings;
use crate::collector::component::{Context, Extension, Running};
use crate::collector::config::duration::go_text;
use crate::collector::controls::{Controls, State};
use crate::collector::deadline::Deadline;
use crate::collector::net::accept::Connections;
use crate::collector::net::http_server::{add_headers, serve};
use crate::collector::net::listen::listen;
use crate::collector::tasks::{ended, until};
use crate::diag::Problem;
use crate::procfs::Proc;

/// The longest limit that a stop may be given.
const LONGEST_STOP: f64 = 3600.0;

impl Extension for Settings {
    fn endpoints(&self) -> Vec<(&'static str, &str)> {
        vec![("endpoint", &self.endpoint)]
    }

    fn start(self: Box<Self>, context: Context) -> BoxFuture<'static, Result<Box<dyn Running>, Problem>> {
        Box::pin(async move {
            let (listener, address) = listen(&self.endpoint).await?;
            context.log.info(&format!("listening on {address}"));
            let (patience, controls) = (self.patience, context.controls.clone());
            let router = Router::new().fallback(answer).with_state(Arc::new(Health {
                settings: *self,
                controls,
                port: address.port(),
            }));
            let stop = CancellationToken::new();
            let connections = Connections::new(listener, address, context);
            let task = tokio::spawn(serve(connections, router, patience, stop.clone()));
            Ok(Box::new(Server { stop, task }) as Box<dyn Running>)
        })
    }
}

struct Server {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running for Server {
    fn shutdown(self: Box<Self>, _deadline: Deadline) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.stop.cancel();
            // A client that keeps its connection open must not keep the collector.
            let mut task = self.task;
            if until(Instant::now() + Duration::from_millis(100), &mut task).await.is_none() {
                ended(task).await;
            }
        })
    }
}

struct Health {
    settings: Settings,
    controls: Arc<Controls>,
    /// Where it answers.
    port: u16,
}

/// Whether a connection from this host to our `port` is held by our user, or root. Other users of a shared node may see that
/// a collector is healthy; they may not tell it to scrape no more, or to stop in no time.
fn is_own(peer: SocketAddr, port: u16) -> bool {
    let proc = Proc::default();
    match proc.user_of_connection(peer, port) {
        Some(user) => user == 0 || user == nix::unistd::geteuid().as_raw(),
        // A kernel that does not tell about our own listener tells about nobody.
        None => proc.listeners(port).is_empty(),
    }
}

async fn answer(
    Shared(health): Shared<Arc<Health>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path();
    if *request.method() == Method::POST && path.starts_with("/-/") {
        let (path, query) = (path.to_owned(), request.uri().query().unwrap_or_default().to_owned());
        if request.headers().contains_key(ORIGIN) {
            return Ok(text(StatusCode::FORBIDDEN, "not from a web page\n"));
        }
        return Ok(health.admin(peer, &path, &query).await);
    }
    let path_matches = health.settings.path == "/" || health.settings.path == path;
    let mut answer = if path_matches { health.state() } else { text(StatusCode::NOT_FOUND, "404 page not found\n") };
    add_headers(answer.headers_mut(), &health.settings.response_headers);
    Ok(answer)
}

impl Health {
    fn state(&self) -> Response<Body> {
        let state = self.controls.state();
        let ready = matches!(state, State::Ready(..));
        let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        if let Some(bodies) = &self.settings.bodies {
            return text(status, if ready { &bodies.healthy } else { &bodies.unhealthy });
        }
        let (words, since, uptime) = match state {
            State::Ready(since, begin) => {
                let since = since.to_zoned(jiff::tz::TimeZone::system());
                let since = since.strftime("%Y-%m-%dT%H:%M:%S%.f%:z").to_string().replace("+00:00", "Z");
                ("Server available", since, go_text(begin.elapsed()))
            }
            _ => ("Server not available", "0001-01-01T00:00:00Z".to_owned(), String::new()),
        };
        let body = serde_json::json!({"status": words, "upSince": since, "uptime": uptime}).to_string();
        response(status, "application/json", body)
    }

    async fn admin(&self, peer: SocketAddr, path: &str, query: &str) -> Response<Body> {
        if !peer.ip().to_canonical().is_loopback() {
            return text(StatusCode::FORBIDDEN, "only from this host\n");
        }
        if !is_own(peer, self.port) {
            return text(StatusCode::FORBIDDEN, "only from the user of this collector\n");
        }
        match path {
            "/-/scrape" => {
                let last = match query {
                    "" | "last=false" => false,
                    "last=true" => true,
                    _ => return text(StatusCode::BAD_REQUEST, "write /-/scrape or /-/scrape?last=true\n"),
                };
                if !matches!(self.controls.state(), State::Ready(..)) {
                    return text(StatusCode::SERVICE_UNAVAILABLE, "the collector is not ready\n");
                }
                if self.controls.scrape_now(last).await {
                    text(StatusCode::OK, "scraped\n")
                } else {
                    text(StatusCode::GATEWAY_TIMEOUT, "not all targets answered in time\n")
                }
            }
            "/-/stop" => {
                let seconds = query.split('&').find_map(|pair| pair.strip_prefix("seconds="));
                let seconds = seconds.and_then(|text| text.parse::<f64>().ok());
                match seconds.filter(|seconds| (0.0..=LONGEST_STOP).contains(seconds)) {
                    Some(seconds) => {
                        self.controls.set_stop_limit(Duration::from_secs_f64(seconds));
                        text(StatusCode::OK, "noted: send SIGTERM to stop\n")
                    }
                    None => text(StatusCode::BAD_REQUEST, "write /-/stop?seconds=N with N from 0 to 3600\n"),
                }
            }
            _ => {
                text(StatusCode::NOT_FOUND, "known: POST /-/scrape, POST /-/scrape?last=true, POST /-/stop?seconds=N\n")
            }
        }
    }
}

fn text(status: StatusCode, body: &str) -> Response<Body> {
    response(status, "text/plain; charset=utf-8", body.to_owned())
}

fn response(status: StatusCode, content_type: &'static str, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, axum::http::HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::testing::context;

    /// IPv4 addresses in their IPv6 form are what they are.
    #[tokio::test]
    async fn orders_are_taken_from_this_host_alone() {
        let settings = Settings {
            endpoint: String::new(),
            path: "/".into(),
            bodies: None,
            response_headers: axum::http::HeaderMap::new(),
            patience: crate::collector::net::http_server::Patience::default(),
        };
        let controls = context("extensions/health_check").controls;
        // Of this port the kernel knows nothing: whose a connection is does not count then.
        let health = Health { settings, controls, port: 1 };
        for path in ["/-/stop", "/-/scrape", "/-/nope"] {
            for peer in ["10.1.2.3:4", "192.0.2.1:4", "[::ffff:10.1.2.3]:4", "[2001:db8::1]:4", "[fe80::1]:4"] {
                let answer = health.admin(peer.parse().expect("an address"), path, "seconds=1").await;
                assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{path} from {peer}");
            }
            for peer in ["127.0.0.1:4", "127.9.9.9:4", "[::1]:4", "[::ffff:127.0.0.1]:4"] {
                let answer = health.admin(peer.parse().expect("an address"), path, "seconds=1").await;
                assert_ne!(answer.status(), StatusCode::FORBIDDEN, "{path} from {peer}");
            }
        }
    }
}
