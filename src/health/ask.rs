//! One question, whatever its kind.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{exec, grpc, http};

/// What is asked, with every reference filled in.
#[derive(Clone, Debug)]
pub enum TargetKind {
    /// An HTTP GET.
    Http {
        /// A name or an address.
        host: String,
        /// The port.
        port: u16,
        /// The first that is not answered 404 or 405 decides.
        paths: Vec<String>,
        /// Accepted statuses, both ends included.
        statuses: Vec<(u16, u16)>,
    },
    /// A connection that opens.
    Tcp {
        /// A name or an address.
        host: String,
        /// The port.
        port: u16,
    },
    /// A command that ends with 0.
    Exec(exec::Command),
    /// grpc.health.v1.
    Grpc {
        /// A name or an address.
        host: String,
        /// The port.
        port: u16,
        /// The service asked for; empty is the whole server.
        service: String,
    },
}

/// A question and its limit.
#[derive(Clone, Debug)]
pub struct Target {
    /// What is asked.
    pub kind: TargetKind,
    /// Limit of one request.
    pub request_timeout: Duration,
}

/// Asks once. The error is the answer in few words: `connection refused`, `404`, `exited 1`.
pub async fn ask(target: &Target) -> Result<(), String> {
    let question = async {
        match &target.kind {
            TargetKind::Http { host, port, paths, statuses } => http::ask(host, *port, paths, statuses).await,
            TargetKind::Tcp { host, port } => tcp(host, *port).await,
            TargetKind::Exec(command) => exec::ask(command).await,
            TargetKind::Grpc { host, port, service } => grpc::ask(host, *port, service).await,
        }
    };
    match timeout(target.request_timeout, question).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("no answer within {} s", target.request_timeout.as_secs_f64())),
    }
}

async fn tcp(host: &str, port: u16) -> Result<(), String> {
    let mut last = "the host has no address".to_owned();
    for address in addresses(host, port).await? {
        match TcpStream::connect(address).await {
            Ok(_) => return Ok(()),
            Err(error) => last = words(&error),
        }
    }
    Err(last)
}

/// Every address of a host. `localhost` is both loopback addresses, whatever the resolver says of it.
pub(super) async fn addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    if host.eq_ignore_ascii_case("localhost") {
        let both = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        return Ok(both.into_iter().map(|ip| SocketAddr::new(ip, port)).collect());
    }
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    if let Ok(ip) = bare.parse() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    match tokio::net::lookup_host((host, port)).await {
        Ok(found) => Ok(found.collect()),
        Err(error) => Err(format!("`{host}` has no address: {error}")),
    }
}

/// An I/O error as people say it.
pub(super) fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".into(),
        io::ErrorKind::ConnectionReset => "connection reset".into(),
        io::ErrorKind::HostUnreachable => "host unreachable".into(),
        io::ErrorKind::NetworkUnreachable => "network unreachable".into(),
        io::ErrorKind::UnexpectedEof => "connection closed without an answer".into(),
        _ => error.to_string(),
    }
}
