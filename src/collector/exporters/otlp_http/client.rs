//! The HTTP client of one exporter.

use std::sync::Arc;

use axum::http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::header::{HOST, HeaderValue};
use reqwest::{Client, Url, redirect};

use super::super::sending::TLS_KEYS;
use super::config::Settings;
use crate::collector::log::Log;
use crate::collector::net::host::{Renamed, bare, is_here, is_proxied};
use crate::collector::net::tls::{connection_words, is_name};
use crate::diag::Problem;

/// A client for each of the URLs, which are changed, as the headers are, where the server's name is overridden. What is on
/// this machine is reached past proxies, also where another signal's endpoint is not.
pub(super) fn build(settings: &mut Settings, log: &Log) -> Result<[Option<Client>; 3], Problem> {
    let mut direct = settings.urls.each_ref().map(|url| url.as_ref()?.host_str().map(is_here));
    let mut tls = None;
    let mut at = None;
    if settings.urls.iter().flatten().any(|url| url.scheme() == "https") {
        let name = settings.tls.server_name.clone().filter(|name| is_name(name));
        // A proxy is asked for the host of the URL, so that stays as it is.
        let proxies = Matcher::from_env();
        let mut uris = settings.urls.iter().flatten().filter_map(|url| url.as_str().parse::<Uri>().ok());
        let is_proxied = uris.any(|uri| is_proxied(&uri, &proxies));
        let protocols: &[&str] = if name.is_some() && !is_proxied { &["http/1.1"] } else { &["h2", "http/1.1"] };
        let mut config = settings.tls.configure(protocols, log)?;
        match name {
            Some(name) if is_proxied => {
                config.enable_sni = false;
                log.warn(&format!(
                    "behind a proxy the endpoint is not told `{name}` (`tls.server_name_override`), nor are this exporter's \
                     others if there are several: their certificates must have that name all the same"
                ));
            }
            Some(name) => {
                at = Some(Arc::new(Renamed { host: override_host(settings, &name)?, name }));
                // Proxies would be chosen by the name.
                direct = [Some(true); 3];
            }
            None => {}
        }
        tls = Some(config);
    }
    let client_for = |direct: bool| {
        let mut builder = Client::builder()
            // The transport decides where a request may be sent on to.
            .redirect(redirect::Policy::none())
            .user_agent(concat!("gymrun/", env!("CARGO_PKG_VERSION"), " (linux)"))
            .no_gzip();
        if direct {
            builder = builder.no_proxy();
        }
        builder = match &tls {
            Some(config) => builder.tls_backend_preconfigured(config.clone()),
            // The system's certificates are not needed, and reading them takes time and memory.
            None => builder.tls_certs_only([]),
        };
        if let Some(at) = &at {
            builder = builder.dns_resolver(at.clone()).http1_only();
        }
        builder.build().map_err(|error| problem(&error))
    };
    let mut by_way: [Option<Client>; 2] = [None, None];
    let mut clients = [None, None, None];
    for (client, direct) in clients.iter_mut().zip(direct) {
        let Some(direct) = direct else { continue };
        let known = &mut by_way[usize::from(direct)];
        if known.is_none() {
            *known = Some(client_for(direct)?);
        }
        client.clone_from(known);
    }
    Ok(clients)
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
