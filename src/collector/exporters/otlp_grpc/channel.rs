//! The connection of one exporter. It is made at the first call, and again when it breaks.

use std::time::Duration;

use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use super::super::sending::{Tls, read_file};
use super::config::Settings;
use crate::diag::Problem;

/// The channel; a problem names a file that cannot be read.
pub(super) fn open(settings: &Settings) -> Result<Channel, Problem> {
    let problem =
        |error: tonic::transport::Error| Problem::new(format!("cannot make a gRPC client: {}", words(&error)));
    let mut endpoint = Endpoint::from_shared(settings.url.clone()).map_err(problem)?;
    endpoint = endpoint.connect_timeout(Duration::from_secs(20)).tcp_nodelay(true);
    if let Some(user_agent) = settings.user_agent.clone() {
        endpoint = endpoint.user_agent(user_agent).map_err(problem)?;
    } else {
        endpoint = endpoint.user_agent(concat!("gymrun/", env!("CARGO_PKG_VERSION"))).map_err(problem)?;
    }
    if let Some(keepalive) = settings.keepalive {
        endpoint = endpoint
            .http2_keep_alive_interval(keepalive.interval)
            .keep_alive_timeout(keepalive.timeout)
            .keep_alive_while_idle(keepalive.without_streams);
    }
    if let Some(authority) = &settings.authority {
        let scheme = settings.url.split("://").next().unwrap_or("http");
        let origin = format!("{scheme}://{authority}").parse();
        let bad = |_| Problem::new(format!("`authority`: `{authority}` is no name of a host"));
        endpoint = endpoint.origin(origin.map_err(bad)?);
    }
    if settings.url.starts_with("https://") {
        endpoint = endpoint.tls_config(tls(&settings.tls)?).map_err(problem)?;
    }
    Ok(endpoint.connect_lazy())
}

fn tls(settings: &Tls) -> Result<ClientTlsConfig, Problem> {
    let mut tls = ClientTlsConfig::new();
    if let Some(path) = &settings.ca_file {
        tls = tls.ca_certificate(Certificate::from_pem(read_file("ca_file", path)?));
    }
    if settings.ca_file.is_none() || settings.with_system_pool {
        tls = tls.with_native_roots();
    }
    if let (Some(certificate), Some(key)) = (&settings.cert_file, &settings.key_file) {
        let (certificate, key) = (read_file("cert_file", certificate)?, read_file("key_file", key)?);
        tls = tls.identity(Identity::from_pem(certificate, key));
    }
    if let Some(name) = &settings.server_name {
        tls = tls.domain_name(name.clone());
    }
    Ok(tls)
}

/// What went wrong, with its causes.
pub(super) fn words(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
