//! The resource of a scraped target.

use std::net::IpAddr;

use crate::otlp::Resource;

/// The resource of samples with this job and instance, fetched by this scheme.
#[must_use]
pub fn resource_of(job: &str, instance: &str, scheme: &str) -> Resource {
    let (host, port) = host_and_port(instance).unwrap_or((instance, ""));
    let mut resource = Resource::default();
    resource.upsert("service.name", job);
    if is_discernible(host) {
        resource.upsert("server.address", host);
    }
    resource.upsert("service.instance.id", instance);
    resource.upsert("server.port", port);
    resource.upsert("url.scheme", scheme);
    resource
}

/// `host:port` or `[v6]:port`.
fn host_and_port(address: &str) -> Option<(&str, &str)> {
    if let Some(rest) = address.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        return port.strip_prefix(':').filter(|port| !port.contains(':')).map(|port| (host, port));
    }
    address.split_once(':').filter(|(_, port)| !port.contains(':'))
}

/// Whether a host name says something to someone who is on another host.
fn is_discernible(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) => {
            let mapped = address.to_ipv4_mapped().is_some_and(|v4| v4.is_loopback() || v4.is_unspecified());
            !address.is_loopback() && !address.is_unspecified() && !mapped
        }
        Ok(IpAddr::V4(address)) => !address.is_loopback() && !address.is_unspecified(),
        Err(_) => host != "localhost",
    }
}

#[cfg(test)]
mod tests {
    use super::resource_of;

    #[test]
    fn a_host_is_named_only_if_it_can_be_told_from_others() {
        for (instance, address, port) in [
            ("127.0.0.1:8000", None, "8000"),
            ("localhost:8000", None, "8000"),
            ("0.0.0.0:1", None, "1"),
            ("[::1]:1", None, "1"),
            ("node7:9100", Some("node7"), "9100"),
            ("10.0.0.1:9100", Some("10.0.0.1"), "9100"),
            ("[2001:db8::1]:1", Some("2001:db8::1"), "1"),
            ("bare", Some("bare"), ""),
            ("a:b:c", Some("a:b:c"), ""),
        ] {
            let resource = resource_of("j", instance, "http");
            let text = |key: &str| resource.get(key).map(|value| format!("{value:?}"));
            let quoted = |value: &str| format!("String({value:?})");
            assert_eq!(text("server.address"), address.map(quoted), "{instance}");
            assert_eq!(text("server.port"), Some(quoted(port)), "{instance}");
            assert_eq!(text("service.instance.id"), Some(quoted(instance)));
        }
    }
}
