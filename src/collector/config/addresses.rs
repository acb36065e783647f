//! What parts of one configuration want to listen on: an address that two of them want is wrong in any start.

use std::net::IpAddr;

use super::checked::Components;
use super::node::Node;
use super::pipelines::Pipeline;
use super::section::Findings;
use crate::collector::own::{Reader, Telemetry};
use crate::diag::Problem;

/// One who listens: where it is said, and on what.
struct Listener {
    path: String,
    line: u32,
    endpoint: String,
}

/// Names those among the parts in use who want an address that another one has.
pub(super) fn check(
    root: &Node,
    components: &Components,
    extensions: &[String],
    pipelines: &[Pipeline],
    telemetry: &Telemetry,
    findings: &Findings,
) {
    let mut listeners = Vec::new();
    let mut add = |section: &str, id: &str, endpoints: Vec<(&str, &str)>| {
        for (key, endpoint) in endpoints {
            let keys: Vec<&str> = [section, id].into_iter().chain(key.split('.')).collect();
            let line = root.line_at(&keys);
            listeners.push(Listener { path: keys.join("."), line, endpoint: endpoint.to_owned() });
        }
    };
    for (declared, extension) in components.extensions_of(extensions) {
        add("extensions", &declared.id, extension.endpoints());
    }
    for (declared, receiver) in components.receivers_in(pipelines) {
        add("receivers", &declared.id, receiver.endpoints());
    }
    for reader in &telemetry.readers {
        if let Reader::Pull(pull) = reader {
            let path = "service.telemetry.metrics.readers".to_owned();
            listeners.push(Listener { path, line: pull.line, endpoint: pull.endpoint.clone() });
        }
    }
    for (place, listener) in listeners.iter().enumerate() {
        if let Some(other) = listeners[..place].iter().find(|other| meet(&other.endpoint, &listener.endpoint)) {
            let problem = Problem::new(format!("`{}` is what `{}` listens on", listener.endpoint, other.path));
            findings.push(listener.line, &listener.path, problem.hint("give one of them another port"));
        }
    }
}

/// Whether two endpoints cannot be listened on at the same time: they are one, or one of them is all addresses.
fn meet(one: &str, other: &str) -> bool {
    let (Some((one, port)), Some((other, other_port))) = (one.rsplit_once(':'), other.rsplit_once(':')) else {
        return false;
    };
    let number = |port: &str| port.parse::<u16>().ok().filter(|port| *port != 0);
    if number(port).is_none() || number(port) != number(other_port) {
        return false;
    }
    let host = |host: &str| match host.to_ascii_lowercase().as_str() {
        "localhost" => IpAddr::from([127, 0, 0, 1]).to_string(),
        "" => IpAddr::from([0; 4]).to_string(),
        host => match host.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(address) => address.to_canonical().to_string(),
            Err(_) => host.to_owned(),
        },
    };
    let hosts = [host(one), host(other)];
    hosts[0] == hosts[1] || hosts.iter().any(|host| ["0.0.0.0", "::"].contains(&host.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_meet() {
        for (one, other, expected) in [
            ("localhost:4317", "127.0.0.1:4317", true),
            ("localhost:4317", "localhost:04317", true),
            ("localhost:4317", "localhost:4318", false),
            ("127.0.0.1:0", "127.0.0.1:0", false),
            (":4317", "[::1]:4317", true),
            (":4317", "[::]:4317", true),
            (":4317", "localhost:4317", true),
            ("0.0.0.0:4317", "localhost:4317", true),
            ("0.0.0.0:4317", "[::1]:4317", true),
            ("[::1]:4317", "127.0.0.1:4317", false),
            ("[::]:4317", "0.0.0.0:4317", true),
            ("127.0.0.1:1", "127.0.0.2:1", false),
            ("LOCALHOST:1", "[::ffff:127.0.0.1]:1", true),
            ("[0::0]:1", "[::1]:1", true),
        ] {
            assert_eq!(meet(one, other), expected, "{one} {other}");
            assert_eq!(meet(other, one), expected, "{other} {one}");
        }
    }

    #[test]
    fn those_in_use_are_named() {
        let environment = |_: &str| None;
        let file = |used: &str| {
            format!(
                "yaml:{{receivers: {{otlp: {{protocols: {{grpc: , http: }}}}, otlp/b: {{protocols: {{http: {{endpoint: \"0.0.0.0:4318\"}}}}}}}}, \
                 exporters: {{nop: }}, extensions: {{health_check: {{endpoint: \"localhost:4317\"}}}}, \
                 service: {{extensions: [health_check], telemetry: {{metrics: {{readers: [{{pull: {{exporter: {{prometheus: {{host: localhost, port: 4318}}}}}}}}]}}}}, \
                 pipelines: {{traces: {{receivers: [{used}], exporters: [nop]}}}}}}}}"
            )
        };
        let wrong = |used: &str| {
            let load = crate::collector::config::load::load(&[file(used).as_str().into()], &environment);
            load.err().map(|problems| problems.to_string()).unwrap_or_default()
        };
        let both = wrong("otlp, otlp/b");
        assert_eq!(both.matches("listens on").count(), 3, "{both}");
        assert!(both.contains("receivers.otlp.protocols.grpc.endpoint: `localhost:4317` is what `extensions.health_check.endpoint` listens on"), "{both}");
        let one = wrong("otlp/b");
        assert_eq!(one.matches("listens on").count(), 1, "{one}");
    }
}
