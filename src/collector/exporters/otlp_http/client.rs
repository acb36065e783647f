//! The HTTP client of one exporter.

use std::sync::Arc;

use reqwest::header::{HOST, HeaderValue};
use reqwest::{Client, Url, redirect};

use super::super::sending::TLS_KEYS;
use super::config::Settings;
use crate::collector::host::{Renamed, bare, is_here};
use crate::collector::log::Log;
use crate::collector::tls::{connection_words, is_name};
use crate::diag::Problem;

/// A client, and the URLs and headers changed where the server's name is overridden.
pub(super) fn build(settings: &mut Settings, log: &Log) -> Result<Client, Problem> {
    let urls: Vec<&Url> = settings.urls.iter().flatten().collect();
    let mut builder = Client::builder()
        // The transport decides where a request may be sent on to.
        .redirect(redirect::Policy::none())
        .user_agent(concat!("gymrun/", env!("CARGO_PKG_VERSION"), " (linux)"))
        .no_gzip();
    if urls.iter().all(|url| url.host_str().is_some_and(is_here)) {
        builder = builder.no_proxy();
    }
    if urls.iter().all(|url| url.scheme() == "http") {
        // The system's certificates are not needed, and reading them takes time and memory.
        return builder.tls_certs_only([]).build().map_err(|error| problem(&error));
    }
    let name = settings.tls.server_name.clone().filter(|name| is_name(name));
    let protocols: &[&str] = if name.is_some() { &["http/1.1"] } else { &["h2", "http/1.1"] };
    builder = builder.tls_backend_preconfigured(settings.tls.configure(protocols, log)?);
    if let Some(name) = name {
        builder = builder.dns_resolver(Arc::new(Renamed { host: override_host(settings, &name)?, name })).http1_only();
    }
    builder.build().map_err(|error| problem(&error))
}

fn problem(error: &reqwest::Error) -> Problem {
    Problem::new(format!("cannot make an HTTP client: {}", words(error)))
}

/// What went wrong, without the URL (which may have a password).
pub(super) fn words(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "timed out".into();
    }
    let cause = std::error::Error::source(error);
    let words = cause.map_or_else(|| "the request failed".into(), |cause| connection_words(cause, &TLS_KEYS));
    if error.is_connect() { format!("cannot connect: {words}") } else { words }
}

/// Puts `name` into the URLs, so that the server is told it, and keeps the real host in the `Host` header.
fn override_host(settings: &mut Settings, name: &str) -> Result<String, Problem> {
    let urls: Vec<&mut Url> = settings.urls.iter_mut().flatten().collect();
    let hosts: Vec<(String, Option<u16>)> =
        urls.iter().map(|url| (url.host_str().unwrap_or_default().to_owned(), url.port())).collect();
    let Some((host, port)) = hosts.first().cloned() else { return Ok(String::new()) };
    if hosts.iter().any(|other| *other != (host.clone(), port)) {
        return Err(Problem::new("`tls.server_name_override` needs all endpoints to have one host"));
    }
    for url in urls {
        let bad = || Problem::new(format!("`tls.server_name_override`: `{name}` is no name of a host"));
        url.set_host(Some(name)).map_err(|_| bad())?;
    }
    let authority = port.map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
    if !settings.headers.contains_key(HOST)
        && let Ok(value) = HeaderValue::try_from(authority)
    {
        settings.headers.insert(HOST, value);
    }
    Ok(bare(&host).to_owned())
}
