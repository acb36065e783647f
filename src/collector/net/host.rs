//! Hosts as addresses and URLs name them.

use std::net::IpAddr;

use axum::http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// The host without the brackets that stand around an IPv6 address.
pub fn bare(host: &str) -> &str {
    host.trim_matches(['[', ']'])
}

/// Whether it is this machine, which is reached past proxies.
pub fn is_here(host: &str) -> bool {
    host == "localhost" || bare(host).parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether one of these proxies is asked for an address.
pub fn is_proxied(address: &Uri, proxies: &Matcher) -> bool {
    !address.host().is_some_and(is_here) && proxies.intercept(address).is_some()
}

/// Resolves one name to the addresses of another host, and every other name as usual: a server is told the name, and is
/// looked for elsewhere.
pub struct Renamed {
    /// The name.
    pub name: String,
    /// The host, without brackets.
    pub host: String,
}

impl Resolve for Renamed {
    fn resolve(&self, name: Name) -> Resolving {
        // A URL has its host in small letters, whatever was put in.
        let is_it = name.as_str().eq_ignore_ascii_case(&self.name);
        let host = if is_it { self.host.clone() } else { name.as_str().to_owned() };
        Box::pin(async move {
            let found: std::io::Result<Vec<_>> = tokio::net::lookup_host((host, 0)).await.map(Iterator::collect);
            Ok(Box::new(found?.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_in_all_its_names() {
        for (host, here) in
            [("localhost", true), ("127.8.0.1", true), ("[::1]", true), ("::1", true), ("a.test", false)]
        {
            assert_eq!(is_here(host), here, "{host}");
        }
    }

    #[tokio::test]
    async fn one_name_is_looked_for_elsewhere_and_others_are_not() {
        let renamed = Renamed { name: "A.Test".into(), host: "127.0.0.9".into() };
        for (name, wanted) in [("a.test", "127.0.0.9"), ("127.0.0.1", "127.0.0.1")] {
            let mut found = renamed.resolve(name.parse().expect("a name")).await.expect("an address");
            assert_eq!(found.next().map(|address| address.ip().to_string()).as_deref(), Some(wanted));
        }
    }
}
