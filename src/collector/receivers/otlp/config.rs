//! The receiver's section of the configuration.

use super::receiver::OtlpReceiver;
use crate::collector::component::{EVERY_SIGNAL, Factory, Receiver, Signals};
use crate::collector::section::Section;
use crate::diag::Problem;
use crate::otlp::Signal;

/// The kind.
pub const FACTORY: Factory<dyn Receiver> =
    Factory { names: &["otlp"], signals: Signals::Each(EVERY_SIGNAL), configure };

const MEBIBYTE: usize = 1024 * 1024;

/// `protocols.grpc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GrpcSettings {
    /// `host:port` to listen on.
    pub endpoint: String,
    /// `max_recv_msg_size_mib`, in bytes: the limit of one message after decompression.
    pub max_message: usize,
}

/// `protocols.http`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HttpSettings {
    /// `host:port` to listen on.
    pub endpoint: String,
    /// The path of each signal.
    pub paths: [(String, Signal); 3],
    /// `max_request_body_size`, in bytes: the limit of a body, before and after decompression.
    pub max_body: usize,
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
    section.unsupported(&[
        "auth",
        "include_metadata",
        "keepalive",
        "max_concurrent_streams",
        "middlewares",
        "tls",
        "transport",
    ]);
    // Sizes of buffers change nothing that can be seen.
    section.integer("read_buffer_size", 0);
    section.integer("write_buffer_size", 0);
    let endpoint = section.endpoint("endpoint").unwrap_or_else(|| "localhost:4317".to_string());
    let mebibytes = section.integer("max_recv_msg_size_mib", 0).filter(|size| *size > 0).unwrap_or(4);
    let max_message = usize::try_from(mebibytes).unwrap_or(usize::MAX).saturating_mul(MEBIBYTE);
    GrpcSettings { endpoint, max_message }
}

fn http(section: &mut Section<'_>) -> HttpSettings {
    // The reference accepts unknown keys here in silence; what it knows and this receiver cannot do is refused.
    section.tolerate_unknown();
    section.unsupported(&[
        "auth",
        "compression_algorithms",
        "cors",
        "include_metadata",
        "middlewares",
        "response_headers",
        "tls",
        "transport",
    ]);
    let endpoint = section.endpoint("endpoint").unwrap_or_else(|| "localhost:4318".to_string());
    let paths = [
        (path(section, "traces_url_path", "/v1/traces"), Signal::Traces),
        (path(section, "metrics_url_path", "/v1/metrics"), Signal::Metrics),
        (path(section, "logs_url_path", "/v1/logs"), Signal::Logs),
    ];
    let max_body = section.integer("max_request_body_size", i64::MIN).filter(|size| *size > 0);
    let max_body = max_body.map_or(20 * MEBIBYTE, |size| usize::try_from(size).unwrap_or(usize::MAX));
    HttpSettings { endpoint, paths, max_body }
}

/// A path always begins with a slash.
fn path(section: &mut Section<'_>, key: &'static str, default: &str) -> String {
    let path = section.text(key).filter(|path| !path.is_empty()).unwrap_or_else(|| default.to_string());
    if path.starts_with('/') { path } else { format!("/{path}") }
}
