//! HTTP/1 servers, for receivers and extensions alike: the keys that each of them has in the reference, and the loop that
//! answers.

use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio_util::sync::CancellationToken;

use super::accept::Connections;
use super::portions::Portions;
use crate::collector::config::section::Section;
use crate::diag::Problem;

/// How long a server waits for its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For the next request on a connection, until its head is there; `None`: for ever.
    head: Option<Duration>,
    /// For a body; `None`: for ever.
    pub body: Option<Duration>,
    /// Whether a connection may bring more than one request.
    keep_alive: bool,
}

impl Default for Patience {
    fn default() -> Self {
        Self { head: Some(MINUTE), body: None, keep_alive: true }
    }
}

const MINUTE: Duration = Duration::from_mins(1);

impl Patience {
    /// The keys of a section, with the defaults of the reference. `idle_timeout` and `read_header_timeout` are one here: the
    /// longer one runs from the last answer to the next head. `write_timeout` has no effect, and nobody looks at a client's
    /// metadata.
    pub fn read(section: &mut Section<'_>) -> Self {
        let mut time = |key: &'static str, default| {
            let given = section.duration(key);
            given.map_or(default, |time| Some(time).filter(|time| !time.is_zero()))
        };
        let body = time("read_timeout", None);
        // Where one of them is zero, the time for a whole request holds for it.
        let (begin, idle) = (time("read_header_timeout", Some(MINUTE)), time("idle_timeout", Some(MINUTE)));
        time("write_timeout", None);
        let head = begin.or(body).zip(idle.or(body)).map(|(begin, idle)| begin.max(idle));
        let keep_alive = section.boolean("keep_alives_enabled").unwrap_or(true);
        section.section("keepalive", |keepalive| {
            keepalive.boolean("enabled");
            keepalive.duration("idle_timeout");
        });
        section.boolean("include_metadata");
        section.word("transport", &["tcp", "tcp4", "tcp6"]);
        Self { head, body, keep_alive }
    }
}

/// Answers requests until `stop`, then until those in flight are answered.
pub async fn serve(mut connections: Connections, router: Router, patience: Patience, stop: CancellationToken) {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(patience.head)
        .keep_alive(patience.keep_alive)
        .half_close(true);
    let open = GracefulShutdown::new();
    // Whoever gives this up gives its connections up.
    let gone = CancellationToken::new();
    let _gone = gone.clone().drop_guard();
    let router = TowerToHyperService::new(router);
    loop {
        let (stream, peer) = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            next = connections.next() => next,
        };
        let router = router.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            router.call(request)
        });
        let connection = open.watch(builder.serve_connection(TokioIo::new(Portions::of(stream)), service));
        // What a client does wrong is answered, or it is gone.
        tokio::spawn(gone.clone().run_until_cancelled_owned(async move { drop(connection.await) }));
    }
    drop(connections);
    open.shutdown().await;
}

/// `response_headers`: what is added to every answer that does not say it itself.
pub fn response_headers(section: &mut Section<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in section.text_pairs("response_headers").unwrap_or_default() {
        match (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value)) {
            (Ok(name), Ok(value)) => {
                headers.insert(name, value);
            }
            _ => section.problem("response_headers", Problem::new(format!("`{name}` and its value are no header"))),
        }
    }
    headers
}

/// Adds headers to those of an answer; what the answer says of itself stays.
pub fn add_headers(answer: &mut HeaderMap, more: &HeaderMap) {
    for (name, value) in more {
        answer.entry(name).or_insert_with(|| value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::testing::read_section;

    #[test]
    fn the_longer_of_two_times_holds_for_the_next_head() {
        let seconds = |number| Some(Duration::from_secs(number));
        for (yaml, head, body, keep_alive) in [
            ("{}", seconds(60), None, true),
            ("{read_header_timeout: 3s, idle_timeout: 4s, write_timeout: 1s}", seconds(4), None, true),
            ("{read_header_timeout: 5s, idle_timeout: 4s, read_timeout: 2s}", seconds(5), seconds(2), true),
            ("{read_header_timeout: 0, idle_timeout: 0, read_timeout: 2s}", seconds(2), seconds(2), true),
            ("{read_header_timeout: 3s, idle_timeout: 0}", None, None, true),
            ("{keep_alives_enabled: false}", seconds(60), None, false),
        ] {
            assert_eq!(read_section(yaml, Patience::read), Patience { head, body, keep_alive }, "{yaml}");
        }
    }
}
