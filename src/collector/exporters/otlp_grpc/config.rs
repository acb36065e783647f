//! What the exporter is told.

use std::sync::Arc;
use std::time::Duration;

use axum::http::Uri;
use axum::http::uri::Authority;
use futures_util::future::BoxFuture;
use reqwest::header::{HeaderMap, HeaderValue};

use super::super::own_metrics::Target;
use super::super::sending::{Compression, Lanes, Queue, Retry, Tls, Way, read_headers};
use super::channel;
use super::transport::Grpc;
use crate::collector::component::{Built, Context, EVERY_SIGNAL, Exporter, Factory, Signals};
use crate::collector::config::section::Section;
use crate::diag::Problem;
use crate::otlp::Signal;

/// The kind.
pub const FACTORY: Factory<dyn Exporter> =
    Factory { names: &["otlp_grpc", "otlp"], signals: Signals::Each(EVERY_SIGNAL), configure: read };

/// All of it.
pub(super) struct Settings {
    /// `http://host:port` or `https://host:port`.
    pub url: String,
    pub headers: HeaderMap,
    pub compression: Compression,
    /// Of one try; zero is none.
    pub timeout: Duration,
    pub tls: Tls,
    pub keepalive: Option<Keepalive>,
    pub authority: Option<String>,
    pub user_agent: Option<HeaderValue>,
    pub queue: Option<Queue>,
    pub retry: Option<Retry>,
}

/// How a silent connection is watched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keepalive {
    pub interval: Duration,
    pub timeout: Duration,
    pub without_streams: bool,
}

fn read(section: &mut Section<'_>) -> Option<Box<dyn Exporter>> {
    section.unsupported(&["auth", "middlewares"]);
    for key in ["read_buffer_size", "write_buffer_size"] {
        section.integer(key, i64::MIN);
    }
    // There is one connection to one address, and a call waits for it within its timeout.
    section.boolean("wait_for_ready");
    section.word("balancer_name", &["round_robin", "pick_first", ""]);
    let tls = Tls::read(section);
    let url = url(section, &tls);
    let timeout = section.duration("timeout").unwrap_or(Duration::from_secs(5));
    let headers = read_headers(section);
    let compression = Compression::read(section, &["gzip", "snappy", "zstd"]);
    let keepalive = if section.has("keepalive") { section.section("keepalive", keepalive) } else { None };
    let authority = section.text("authority").filter(|text| !text.is_empty());
    if let Some(name) = authority.as_ref().filter(|name| name.parse::<Authority>().is_err()) {
        section.problem("authority", Problem::new(format!("`authority`: `{name}` is no name of a host")));
    }
    let user_agent = section.text("user_agent").filter(|text| !text.is_empty());
    let user_agent = user_agent.and_then(|text| {
        let value = HeaderValue::try_from(text);
        if value.is_err() {
            section.problem("user_agent", Problem::new("`user_agent` has a character that no header may have"));
        }
        value.ok()
    });
    let queue = Queue::read(section);
    let retry = Retry::read(section, false);
    let url = url?;
    if let (Some(authority), Some(name), true) = (&authority, &tls.server_name, url.starts_with("https:"))
        && authority != name
    {
        let problem = Problem::new("`authority` and `tls.server_name_override` are two names");
        section.problem("authority", problem.hint("under TLS the one is the other: leave one of them out"));
    }
    Some(Box::new(Settings { url, headers, compression, timeout, tls, keepalive, authority, user_agent, queue, retry }))
}

/// An exporter of metrics without a queue.
pub(in crate::collector::exporters) fn plain(target: Target) -> Box<dyn Exporter> {
    let Target { url, headers, compression, timeout, tls, retry } = target;
    let port = url.port_or_known_default().map(|port| format!(":{port}")).unwrap_or_default();
    let url = format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default());
    let (queue, keepalive, authority, user_agent) = (None, None, None, None);
    Box::new(Settings { url, headers, compression, timeout, tls, keepalive, authority, user_agent, queue, retry })
}

/// As in the reference, nobody is asked more often, and 0 of the time for an answer is its default.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(10);

fn keepalive(section: &mut Section<'_>) -> Keepalive {
    let timeout = section.duration("timeout").unwrap_or(Duration::from_secs(10));
    Keepalive {
        interval: section.duration("time").unwrap_or_default().max(SHORTEST_INTERVAL),
        timeout: if timeout.is_zero() { Duration::from_secs(20) } else { timeout },
        without_streams: section.boolean("permit_without_stream").unwrap_or(false),
    }
}

/// `host:port`, with or without a scheme; the scheme, or else `tls.insecure`, decides about TLS.
fn url(section: &mut Section<'_>, tls: &Tls) -> Option<String> {
    let text = section.required_text("endpoint")?;
    section.secret_user(&text);
    let (scheme, rest) = match text.split_once("://") {
        Some(("http", rest)) => ("http", rest),
        Some(("https", rest)) => ("https", rest),
        Some(("dns" | "passthrough", rest)) => {
            let scheme = if tls.insecure { "http" } else { "https" };
            (scheme, rest.rsplit('/').next().unwrap_or(rest))
        }
        Some((scheme, _)) => {
            let problem = Problem::new(format!("`endpoint` begins with `{scheme}://`, which is not supported"));
            section.problem("endpoint", problem.hint("write `host:port`"));
            return None;
        }
        None => (if tls.insecure { "http" } else { "https" }, text.as_str()),
    };
    // Without a host it is this machine.
    let rest = if rest.starts_with(':') { format!("localhost{rest}") } else { rest.to_owned() };
    let url = format!("{scheme}://{rest}");
    let has_host = || url.parse::<Uri>().is_ok_and(|url| url.host().is_some_and(|host| !host.is_empty()));
    let wrong = match rest.rsplit_once(':').map(|(_, port)| port.parse::<u16>()) {
        Some(Ok(_)) if rest.contains('@') => "has a user, which gRPC has no place for",
        Some(Ok(_)) if !has_host() => "has a host that cannot be one",
        Some(Ok(_)) => return Some(url),
        Some(Err(_)) => "has a port that is not between 0 and 65535",
        None => "has no port",
    };
    let problem = Problem::new(format!("`endpoint` {text} {wrong}"));
    section.problem("endpoint", problem.hint("write `host:port`"));
    None
}

impl Exporter for Settings {
    fn storage(&self) -> Option<&str> {
        self.queue.as_ref()?.storage.as_deref()
    }

    fn start(self: Box<Self>, context: Context, signals: &[Signal]) -> BoxFuture<'static, Result<Built, Problem>> {
        let signals = signals.to_vec();
        Box::pin(async move {
            let channel = channel::open(&self, &context.log)?;
            let way = |signal| {
                let transport = Grpc::new(signal, channel.clone(), &self, context.log.secrets().clone());
                Way { signal, transport: Arc::new(transport) }
            };
            Lanes::open(signals.into_iter().map(way).collect(), self.queue.as_ref(), self.retry, &context)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::testing::{problems_of, read_section};

    #[test]
    fn a_silent_connection_is_not_asked_all_the_time() {
        for (yaml, wanted) in [
            ("{}", (10, 10)),
            ("{time: 1ms, timeout: 0s}", (10, 20)),
            ("{time: 0s, timeout: 3s}", (10, 3)),
            ("{time: 1m}", (60, 10)),
        ] {
            read_section(yaml, |section| {
                let read = keepalive(section);
                assert_eq!((read.interval.as_secs(), read.timeout.as_secs()), wanted, "{yaml}");
            });
        }
    }

    #[test]
    fn the_scheme_or_tls_decides() {
        for (yaml, wanted) in [
            ("endpoint: host:4317", "https://host:4317"),
            ("{endpoint: 'host:4317', tls: {insecure: true}}", "http://host:4317"),
            ("endpoint: http://host:4317", "http://host:4317"),
            ("{endpoint: 'dns:///host:4317', tls: {insecure: true}}", "http://host:4317"),
            ("endpoint: ':4317'", "https://localhost:4317"),
            ("endpoint: http://:4317", "http://localhost:4317"),
            ("endpoint: '[::1]:4317'", "https://[::1]:4317"),
        ] {
            read_section(yaml, |section| {
                let tls = Tls::read(section);
                assert_eq!(url(section, &tls).as_deref(), Some(wanted));
            });
        }
        for wrong in [
            "endpoint: host",
            "endpoint: unix:///x",
            "endpoint: host:x",
            "{}",
            "endpoint: 'a:1:2'",
            "endpoint: 'a b:1'",
            "endpoint: '::1:4317'",
            "endpoint: http://a:1:2",
        ] {
            let text = problems_of(wrong, |section| drop(read(section)));
            assert!(text.contains("endpoint"), "{wrong}: {text}");
        }
    }
}
