//! The receiver's section of the configuration.

use std::time::Duration;

use axum::http::HeaderMap;

use super::receiver::OtlpReceiver;
use crate::collector::component::{EVERY_SIGNAL, Factory, Receiver, Signals};
use crate::collector::config::section::Section;
use crate::collector::net::encoding::{ENCODINGS, Encoding};
use crate::collector::net::http_server::{Patience, response_headers};
use crate::diag::Problem;
use crate::otlp::Signal;

/// The kind.
pub const FACTORY: Factory<dyn Receiver> =
    Factory { names: &["otlp"], signals: Signals::Each(EVERY_SIGNAL), configure };

const MEBIBYTE: usize = 1024 * 1024;

/// `protocols.grpc`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct GrpcSettings {
    /// `host:port` to listen on.
    pub endpoint: String,
    /// `max_recv_msg_size_mib`, in bytes: the limit of one message, before and after decompression.
    pub max_message: usize,
    /// `max_concurrent_streams`: calls under way on one connection.
    pub max_streams: Option<u32>,
    /// `keepalive.server_parameters`.
    pub keepalive: Keepalive,
}

/// How connections are watched and how long they live; what is absent is the library's default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Keepalive {
    /// `time`: a silent client is asked after this.
    pub interval: Option<Duration>,
    /// `timeout`: and must answer within this.
    pub timeout: Option<Duration>,
    /// `max_connection_age`.
    pub age: Option<Duration>,
    /// `max_connection_age_grace`.
    pub grace: Option<Duration>,
}

/// `protocols.http`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct HttpSettings {
    /// `host:port` to listen on.
    pub endpoint: String,
    /// The path of each signal.
    pub paths: Vec<(String, Signal)>,
    /// `max_request_body_size`, in bytes: the limit of a body, before and after decompression.
    pub max_body: usize,
    /// `compression_algorithms`: what a Content-Encoding may be; none: the header is not looked at.
    pub encodings: Vec<(&'static str, Encoding)>,
    /// `response_headers`: added to every answer.
    pub response_headers: HeaderMap,
    /// How long it waits for its clients.
    pub patience: Patience,
}

fn configure(section: &mut Section<'_>) -> Option<Box<dyn Receiver>> {
    let protocols = section.section("protocols", |protocols| {
        let grpc = protocols.section("grpc", grpc);
        let http = protocols.section("http", http);
        (grpc, http)
    });
    let (grpc, http) = protocols.unwrap_or_default();
    if grpc.is_none() && http.is_none() {
        let problem = Problem::new("no protocol is given").hint("add `grpc:` or `http:` (or both) under `protocols`");
        section.problem("protocols", problem);
        return None;
    }
    Some(Box::new(OtlpReceiver { grpc, http }))
}

fn grpc(section: &mut Section<'_>) -> GrpcSettings {
    section.unsupported(&["auth", "dialer", "middlewares", "tls"]);
    // Sizes of buffers change nothing that can be seen, and no processor here looks at a client's metadata.
    section.integer("read_buffer_size", 0);
    section.integer("write_buffer_size", 0);
    section.boolean("include_metadata");
    section.word("transport", &["tcp", "tcp4", "tcp6"]);
    let endpoint = section.endpoint("endpoint").unwrap_or_else(|| "localhost:4317".to_string());
    let mebibytes = section.integer("max_recv_msg_size_mib", 0).filter(|size| *size > 0).unwrap_or(4);
    let max_message = usize::try_from(mebibytes).unwrap_or(usize::MAX).saturating_mul(MEBIBYTE);
    let max_streams = section.integer("max_concurrent_streams", 0).filter(|count| *count > 0);
    let max_streams = max_streams.map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    let keepalive = section.section("keepalive", keepalive).unwrap_or_default();
    GrpcSettings { endpoint, max_message, max_streams, keepalive }
}

fn keepalive(section: &mut Section<'_>) -> Keepalive {
    section.section("enforcement_policy", |policy| {
        policy.duration("min_time");
        policy.boolean("permit_without_stream");
    });
    let keepalive = section.section("server_parameters", |parameters| {
        parameters.duration("max_connection_idle");
        let mut given = |key| parameters.duration(key).filter(|duration| !duration.is_zero());
        Keepalive {
            interval: given("time"),
            timeout: given("timeout"),
            age: given("max_connection_age"),
            grace: given("max_connection_age_grace"),
        }
    });
    keepalive.unwrap_or_default()
}

fn http(section: &mut Section<'_>) -> HttpSettings {
    // The reference accepts unknown keys here; what it knows and this receiver cannot do is refused.
    section.tolerate_unknown();
    section.unsupported(&["auth", "cors", "dialer", "middlewares", "tls"]);
    let patience = Patience::read(section);
    let endpoint = section.endpoint("endpoint").unwrap_or_else(|| "localhost:4318".to_string());
    let paths = paths(section);
    let max_body = section.integer("max_request_body_size", i64::MIN).filter(|size| *size > 0);
    let max_body = max_body.map_or(20 * MEBIBYTE, |size| usize::try_from(size).unwrap_or(usize::MAX));
    let encodings = encodings(section);
    let response_headers = response_headers(section);
    HttpSettings { endpoint, paths, max_body, encodings, response_headers, patience }
}

fn encodings(section: &mut Section<'_>) -> Vec<(&'static str, Encoding)> {
    const KEY: &str = "compression_algorithms";
    let Some(names) = section.texts(KEY) else { return ENCODINGS.to_vec() };
    let known = |name: &String| {
        let found = ENCODINGS.into_iter().find(|(known, _)| known == name);
        if found.is_none() {
            let problem = Problem::new(format!("`{name}` is no compression of requests"));
            section.problem(KEY, problem.suggest(name, ENCODINGS.map(|(known, _)| known)));
        }
        found
    };
    names.iter().filter_map(known).collect()
}

/// The path of each signal, which begins with a slash. Of two that are equal, one would be another signal's.
fn paths(section: &mut Section<'_>) -> Vec<(String, Signal)> {
    let mut paths: Vec<(String, Signal)> = Vec::new();
    for (key, default, signal) in [
        ("traces_url_path", "/v1/traces", Signal::Traces),
        ("metrics_url_path", "/v1/metrics", Signal::Metrics),
        ("logs_url_path", "/v1/logs", Signal::Logs),
    ] {
        let text = section.text(key);
        let is_given = text.is_some();
        let path = text.unwrap_or_else(|| default.to_owned());
        let path = if path.starts_with('/') { path } else { format!("/{path}") };
        if let Some((_, other)) = paths.iter().find(|(known, _)| *known == path) {
            let key = if is_given { key.to_owned() } else { format!("{}_url_path", other.name()) };
            let what = format!("`{path}` is the path of {} and of {}", other.name(), signal.name());
            section.problem(&key, Problem::new(what).hint("give each signal a path of its own"));
        }
        paths.push((path, signal));
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::testing::{problems_of, read_section};

    #[test]
    fn no_path_is_that_of_two_signals() {
        for (yaml, key) in [
            ("a: 1\ntraces_url_path: /v1/logs", "traces_url_path"),
            ("a: 1\nlogs_url_path: v1/traces", "logs_url_path"),
            ("a: 1\ntraces_url_path: /x\nmetrics_url_path: /y\nlogs_url_path: x", "logs_url_path"),
        ] {
            let text = problems_of(yaml, |section| drop(paths(section)));
            assert!(text.contains(key) && text.contains("of traces and of logs"), "{yaml}: {text}");
        }
        for (yaml, wanted) in [
            ("{}", ["/v1/traces", "/v1/metrics", "/v1/logs"]),
            ("{traces_url_path: /v1/logs, logs_url_path: /v1/traces}", ["/v1/logs", "/v1/metrics", "/v1/traces"]),
            ("{traces_url_path: '', metrics_url_path: , logs_url_path: /v1/logs/}", ["/", "/v1/metrics", "/v1/logs/"]),
        ] {
            let paths: Vec<String> = read_section(yaml, paths).into_iter().map(|(path, _)| path).collect();
            assert_eq!(paths, wanted, "{yaml}");
        }
    }
}
