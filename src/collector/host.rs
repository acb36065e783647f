//! Hosts as addresses and URLs name them.

use std::net::IpAddr;

/// The host without the brackets that stand around an IPv6 address.
pub fn bare(host: &str) -> &str {
    host.trim_matches(['[', ']'])
}

/// Whether it is this machine, which is reached past proxies.
pub fn is_here(host: &str) -> bool {
    host == "localhost" || bare(host).parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
