//! Where the collector's own metrics go: `otlp` under a periodic reader of `service.telemetry.metrics`.
//!
//! The keys are those of the SDKs' declarative configuration, the exporters are `otlp_http` and `otlp_grpc`: without a
//! queue, trying again for a minute.

use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::sending::{Compression, Pem, Retry, Tls, read_headers};
use super::{otlp_grpc, otlp_http};
use crate::collector::component::Exporter;
use crate::collector::config::section::Section;
use crate::diag::Problem;

/// What both kinds of exporter are told.
pub(in crate::collector::exporters) struct Target {
    pub url: Url,
    pub headers: HeaderMap,
    pub compression: Compression,
    pub timeout: Duration,
    pub tls: Tls,
    pub retry: Option<Retry>,
}

/// Reads the section.
pub(in crate::collector) fn read(section: &mut Section<'_>) -> Option<Box<dyn Exporter>> {
    section.unsupported(&["default_histogram_aggregation"]);
    let protocol = section.word("protocol", &["http/protobuf", "grpc", "grpc/protobuf"]);
    if !section.has("protocol") {
        section.missing("protocol");
    }
    let insecure = section.boolean("insecure").unwrap_or(false);
    let mut headers = read_headers(section);
    headers.extend(header_list(section));
    let name = section.word("compression", &["gzip", "none"]).filter(|name| *name != "none").unwrap_or("");
    let timeout = section.integer("timeout", 0).and_then(|number| u64::try_from(number).ok()).unwrap_or(10_000);
    if section.word("temporality_preference", &["cumulative", "delta", "lowmemory"]).is_some_and(|w| w != "cumulative")
    {
        let problem = Problem::new("this collector sends its metrics as `cumulative` only");
        section.problem("temporality_preference", problem);
    }
    let mut path = |key| section.text(key).filter(|text| !text.is_empty()).map(|path| Pem::File(key, path.into()));
    let tls = Tls {
        authority: path("certificate"),
        certificate: path("client_certificate"),
        key: path("client_key"),
        ..Tls::default()
    };
    if tls.certificate.is_some() != tls.key.is_some() {
        section.problem_here(Problem::new("`client_certificate` and `client_key` must be given together"));
    }
    let is_grpc = protocol.is_some_and(|protocol| protocol != "http/protobuf");
    let url = url(section, insecure, is_grpc)?;
    let retry = Some(Retry { longest: Duration::from_mins(1), ..Retry::default() });
    let timeout = Duration::from_millis(timeout);
    let target = Target { url, headers, compression: Compression { name, level: 0 }, timeout, tls, retry };
    let exporter = |target| if is_grpc { otlp_grpc::plain(target) } else { otlp_http::plain(target) };
    protocol.map(|_| exporter(target))
}

/// A URL; without a scheme `insecure` decides. Over HTTP an endpoint without a path gets the usual one.
fn url(section: &mut Section<'_>, insecure: bool, is_grpc: bool) -> Option<Url> {
    let text = section.required_text("endpoint")?;
    let has_scheme = text.starts_with("http://") || text.starts_with("https://");
    let whole = if has_scheme { text } else { format!("http{}://{text}", if insecure { "" } else { "s" }) };
    match Url::parse(&whole) {
        Ok(mut url) if url.has_host() => {
            let has_path = whole.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
            if !has_path && !is_grpc {
                url.set_path("/v1/metrics");
            }
            otlp_http::keep_secret(section, &url);
            Some(url)
        }
        _ => {
            let problem = Problem::new("`endpoint` is no URL").hint("write `http://host:port`");
            section.problem("endpoint", problem);
            None
        }
    }
}

/// `headers_list`: `name=value,name=value`.
fn header_list(section: &mut Section<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let text = section.text("headers_list").unwrap_or_default();
    for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        section.secret(value);
        match (HeaderName::try_from(name.trim()), HeaderValue::try_from(value.trim())) {
            (Ok(name), Ok(mut value)) if pair.contains('=') => {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
            _ => section.problem("headers_list", Problem::new("expected `name=value,name=value`")),
        }
    }
    headers
}
