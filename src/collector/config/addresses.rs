//! What parts of one configuration want to listen on: an address that two of them want is wrong in any start.

use super::checked::Components;
use super::pipelines::Pipeline;
use super::section::Findings;
use crate::collector::own::{Reader, Telemetry};
use crate::diag::Problem;

/// One who listens.
struct Listener<'a> {
    path: String,
    line: u32,
    endpoint: &'a str,
}

/// Names those among the parts in use who want an address that another one has.
pub(super) fn check(
    components: &Components,
    extensions: &[String],
    pipelines: &[Pipeline],
    telemetry: &Telemetry,
    findings: &Findings,
) {
    let mut listeners = Vec::new();
    for declared in components.extensions.iter().filter(|declared| extensions.contains(&declared.id)) {
        let endpoints = declared.component.as_ref().map(|extension| extension.endpoints()).unwrap_or_default();
        let path = || format!("extensions.{}", declared.id);
        listeners.extend(endpoints.into_iter().map(|endpoint| Listener {
            path: path(),
            line: declared.line,
            endpoint,
        }));
    }
    let used = |id: &String| pipelines.iter().any(|pipeline| pipeline.receivers.contains(id));
    for declared in components.receivers.iter().filter(|declared| used(&declared.id)) {
        let endpoints = declared.component.as_ref().map(|receiver| receiver.endpoints()).unwrap_or_default();
        let path = || format!("receivers.{}", declared.id);
        listeners.extend(endpoints.into_iter().map(|endpoint| Listener {
            path: path(),
            line: declared.line,
            endpoint,
        }));
    }
    for reader in &telemetry.readers {
        if let Reader::Pull(pull) = reader {
            let path = "service.telemetry.metrics.readers".to_owned();
            listeners.push(Listener { path, line: pull.line, endpoint: &pull.endpoint });
        }
    }
    for (place, listener) in listeners.iter().enumerate() {
        if let Some(other) = listeners[..place].iter().find(|other| meet(other.endpoint, listener.endpoint)) {
            let what = format!("`{}` wants the address of `{}` ({})", listener.endpoint, other.path, other.endpoint);
            let problem = Problem::new(what).hint("give one of them another port");
            findings.push(listener.line, &listener.path, problem);
        }
    }
}

/// Whether two endpoints cannot be listened on at the same time.
fn meet(one: &str, other: &str) -> bool {
    let (Some((one, port)), Some((other, other_port))) = (one.rsplit_once(':'), other.rsplit_once(':')) else {
        return false;
    };
    if port != other_port || port.parse() == Ok(0_u16) {
        return false;
    }
    let host = |host: &str| if host == "localhost" { "127.0.0.1".to_owned() } else { host.to_ascii_lowercase() };
    let (one, other) = (host(one), host(other));
    let of_six = |host: &str| host.starts_with('[');
    // All addresses of both families, or all of the former one.
    let covers = |wide: &str, host: &str| ["", "[::]"].contains(&wide) || (wide == "0.0.0.0" && !of_six(host));
    one == other || covers(&one, &other) || covers(&other, &one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_meet() {
        for (one, other, expected) in [
            ("localhost:4317", "127.0.0.1:4317", true),
            ("localhost:4317", "localhost:4318", false),
            ("127.0.0.1:0", "127.0.0.1:0", false),
            (":4317", "[::1]:4317", true),
            ("0.0.0.0:4317", "localhost:4317", true),
            ("0.0.0.0:4317", "[::1]:4317", false),
            ("[::1]:4317", "127.0.0.1:4317", false),
            ("[::]:4317", "0.0.0.0:4317", true),
            ("127.0.0.1:1", "127.0.0.2:1", false),
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
                "yaml:{{receivers: {{otlp: {{protocols: {{grpc: , http: }}}}, otlp/b: {{protocols: {{http: {{endpoint: \":4318\"}}}}}}}}, \
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
        assert_eq!(both.matches("wants the address of").count(), 3, "{both}");
        assert!(both.contains("`localhost:4317` wants the address of `extensions.health_check`"), "{both}");
        let one = wrong("otlp/b");
        assert_eq!(one.matches("wants the address of").count(), 1, "{one}");
    }
}
