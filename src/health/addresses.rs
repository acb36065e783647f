//! The addresses of a host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::time::Instant;

use super::ask::Bad;

/// How long an answer of the resolver holds: a question may be asked many times in a second.
const KNOWN: Duration = Duration::from_secs(5);
/// How long it holds that it knows none.
const UNKNOWN: Duration = Duration::from_secs(1);

/// A host and a port, and what the resolver said last.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    host: String,
    port: u16,
    found: Option<(Instant, Result<Vec<SocketAddr>, Bad>)>,
}

impl Addresses {
    pub(super) fn new(host: String, port: u16) -> Self {
        Self { host, port, found: None }
    }

    /// Every address of the host. `localhost` is both loopback addresses, whatever the resolver says of it.
    pub(super) async fn get(&mut self) -> Result<Vec<SocketAddr>, Bad> {
        let Self { host, port, .. } = self;
        if host.eq_ignore_ascii_case("localhost") {
            let both = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
            return Ok(both.into_iter().map(|ip| SocketAddr::new(ip, *port)).collect());
        }
        let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        if let Ok(ip) = bare.parse() {
            return Ok(vec![SocketAddr::new(ip, *port)]);
        }
        if let Some((since, found)) = &self.found
            && since.elapsed() < if found.is_ok() { KNOWN } else { UNKNOWN }
        {
            return found.clone();
        }
        let found = match tokio::net::lookup_host((host.as_str(), *port)).await {
            Ok(found) => Ok(found.collect()),
            Err(error) => Err(Bad::nobody(format!("`{host}` has no address: {error}"))),
        };
        self.found = Some((Instant::now(), found.clone()));
        found
    }
}
