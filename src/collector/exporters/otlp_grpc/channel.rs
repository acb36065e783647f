//! The connection of one exporter. It is made at the first call, and again when it breaks.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use axum::http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::transport::{Channel, Endpoint};
use tower::{Service as _, ServiceExt as _};

use super::super::sending::TLS_KEYS;
use super::config::Settings;
use crate::collector::log::Log;
use crate::collector::net::host::{bare, is_proxied};
use crate::collector::net::tls::connection_words;
use crate::diag::Problem;

/// How long it may take to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

fn no_proxy() -> String {
    std::env::var("no_proxy").or_else(|_| std::env::var("NO_PROXY")).unwrap_or_default()
}

/// Whether a proxy would not be asked for this address: it is this machine, or `no_proxy` names it.
fn goes_past_proxies(address: &Uri, no_proxy: &str) -> bool {
    !is_proxied(address, &Matcher::builder().all("http://proxy").no(no_proxy).build())
}

/// The channel; a problem names a file that cannot be read.
pub(super) fn open(settings: &Settings, log: &Log) -> Result<Channel, Problem> {
    let problem =
        |error: tonic::transport::Error| Problem::new(format!("cannot make a gRPC client: {}", words(&error)));
    let (scheme, address) = settings.url.split_once("://").unwrap_or(("http", &settings.url));
    // The connector knows about TLS, the endpoint does not.
    let mut endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(problem)?;
    endpoint = endpoint.connect_timeout(CONNECT_LIMIT).tcp_nodelay(true);
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
    let secure = scheme == "https";
    // Under TLS the name of the certificate is the authority too, as in the reference.
    let name = settings.tls.server_name.as_ref().filter(|_| secure);
    let authority = settings.authority.as_ref().or(name).map_or(address, String::as_str);
    let origin = format!("{scheme}://{authority}").parse::<Uri>().ok().filter(|origin| origin.host().is_some());
    let Some(origin) = origin else {
        return Err(Problem::new(format!("`authority`: `{authority}` is no name of a host")));
    };
    let host = bare(origin.host().unwrap_or_default()).to_owned();
    let variable = ["https_proxy", "HTTPS_PROXY"].into_iter().find(|name| is_set(name));
    if let Some(variable) = variable.filter(|_| !goes_past_proxies(&origin, &no_proxy())) {
        log.warn(&format!(
            "`{variable}` is set, and gRPC goes to {host} without a proxy: use `otlp_http` if that cannot be reached"
        ));
    }
    endpoint = endpoint.origin(origin);
    if !secure {
        return Ok(endpoint.connect_lazy());
    }
    let bad = |_| Problem::new(format!("`{host}` is no name that a certificate can have"));
    let host = ServerName::try_from(host.clone()).map_err(bad)?;
    let config = Arc::new(settings.tls.configure(&["h2"], log)?);
    let connector = tower::service_fn(move |to: Uri| {
        let (config, host) = (config.clone(), host.clone());
        async move { Ok::<_, io::Error>(TokioIo::new(connect(to, config, host).await?)) }
    });
    Ok(endpoint.connect_with_connector_lazy(connector))
}

async fn connect(to: Uri, config: Arc<ClientConfig>, host: ServerName<'static>) -> io::Result<TlsStream<TcpStream>> {
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_LIMIT));
    let stream = tcp.ready().await.map_err(io::Error::other)?.call(to).await.map_err(io::Error::other)?.into_inner();
    let stream = TlsConnector::from(config).connect(host, stream).await?;
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        Ok(stream)
    } else {
        Err(io::Error::other("it does not speak HTTP/2 over TLS, which gRPC needs: look at the port"))
    }
}

/// What went wrong.
pub(super) fn words(error: &(dyn std::error::Error + 'static)) -> String {
    let words = connection_words(error, &TLS_KEYS);
    let mut cause = Some(error);
    while let Some(error) = cause {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        if matches!(
            kind,
            Some(ErrorKind::ConnectionRefused | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable)
        ) {
            return format!("cannot connect: {words}");
        }
        cause = error.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::goes_past_proxies;

    #[test]
    fn this_machine_and_the_hosts_of_no_proxy_go_past_proxies() {
        for (host, no_proxy, past) in [
            ("localhost", "", true),
            ("127.0.0.1", "", true),
            ("[::1]", "", true),
            ("a.test", "", false),
            ("a.test", "b.test, a.test", true),
            ("x.a.test", ".a.test", true),
            ("x.a.test", "a.test", true),
            ("xa.test", "a.test", false),
            ("a.test", "*", true),
            ("10.1.2.3", "10.0.0.0/8", true),
            ("[fd00::1]", "10.0.0.0/8,fd00::/16", true),
            ("a.test", ",,", false),
        ] {
            let address = format!("https://{host}:4317").parse().expect("an address");
            assert_eq!(goes_past_proxies(&address, no_proxy), past, "{host} {no_proxy}");
        }
    }
}
