//! The `otel` block.

use super::fields::{Fields, late};
use super::kinds::Table;
use super::tables::{self, OTEL};
use super::value::{boolean, int, is_off, literal};
use crate::diag::{Problem, Problems};
use crate::inputs::{Node, NodeValue, World};
use crate::plan::{PortChoice, Reference};
use crate::policy::spec::{OtelPorts, OtelSpec, Placed, Protocol, TlsSpec};

/// The variable with the token unless the site names another.
const TOKEN: &str = "OTEL_TOKEN";

/// The block typed. `node` is the merged block (an empty mapping if nobody wrote one).
pub fn otel(node: &Node, world: &World, problems: &mut Problems) -> OtelSpec {
    let fields = Fields::new(node, &OTEL);
    let enabled = fields.bool("enabled");
    let text = |key: &str| fields.text(key).unwrap_or_default();
    let or_off = |key: &str, default: &str| match fields.said(key) {
        Some(node) if is_off(node) => None,
        Some(_) => fields.placed(key),
        None => Some(Placed { value: default.to_owned(), location: fields.location(key) }),
    };
    // `true` is no endpoint either: the check has said so.
    let is_boolean = fields.said("endpoint").is_some_and(|node| boolean(node).is_some());
    let endpoint = fields.placed("endpoint").filter(|_| !is_boolean);
    let spec = OtelSpec {
        location: node.location.clone(),
        enabled,
        required: fields.bool("required"),
        token_env: endpoint.as_ref().and_then(|_| or_off("token_env", TOKEN)),
        endpoint,
        service_name: text("service_name"),
        token_scheme: text("token_scheme"),
        tenant_attribute: or_off("tenant_attribute", "Authorization").map(|placed| placed.value),
        headers: fields
            .entries("headers")
            .filter_map(|(name, node)| {
                Some((name.to_owned(), Placed { value: late(node)?, location: node.location.clone() }))
            })
            .collect(),
        tls: tls(&fields, world),
        compression: text("compression"),
        timeout_seconds: fields.num("timeout_seconds").unwrap_or_default(),
        queue: text("queue"),
        log_level: text("log_level"),
        binary: fields
            .path("binary", true, world)
            .filter(|_| !fields.is_off("binary"))
            .map(|value| Placed { value, location: fields.location("binary") }),
        component: text("component"),
        gym_telemetry: fields.bool("gym_telemetry"),
        gym_span_groups: text("gym_span_groups"),
        gym_logs: fields.bool("gym_logs"),
        gpu_metrics_port: exporter_port(&fields, "gpu_metrics_port", 9400),
        node_metrics_port: exporter_port(&fields, "node_metrics_port", 9100),
        scrape_interval_seconds: fields.int("scrape_interval_seconds"),
        health_check_timeout_seconds: fields.int("health_check_timeout_seconds"),
        final_scrape_grace_seconds: fields.num("final_scrape_grace_seconds").unwrap_or_default(),
        shutdown_wait_seconds: fields.num("shutdown_wait_seconds").unwrap_or_default(),
        ports: ports(&fields),
        protocol: if text("protocol") == "grpc" { Protocol::Grpc } else { Protocol::HttpProtobuf },
    };
    if enabled {
        needs(&fields, &spec, world, problems);
    }
    spec
}

fn tls(otel: &Fields<'_>, world: &World) -> TlsSpec {
    let empty = empty();
    let fields = Fields::new(otel.said("tls").unwrap_or(&empty), table("tls"));
    TlsSpec {
        ca_file: fields.path("ca_file", false, world),
        cert_file: fields.path("cert_file", false, world),
        key_file: fields.path("key_file", false, world),
        server_name_override: fields.text("server_name_override"),
        insecure_skip_verify: fields.bool("insecure_skip_verify"),
    }
}

fn ports(otel: &Fields<'_>) -> OtelPorts {
    let empty = empty();
    let fields = Fields::new(otel.said("ports").unwrap_or(&empty), table("ports"));
    let port = |key: &str| fields.port(key).map_or(PortChoice::Auto, |placed| placed.value);
    OtelPorts { grpc: port("grpc"), http: port("http"), health: port("health") }
}

/// The table of a key of `otel`.
fn table(key: &str) -> &'static Table {
    match OTEL.key(key).map(|key| key.takes) {
        Some(super::kinds::Type::Table(table)) => table,
        _ => &tables::OTEL,
    }
}

/// An empty mapping, for what nobody wrote.
pub fn empty() -> Node {
    Node {
        value: NodeValue::Map(indexmap::IndexMap::new()),
        location: crate::diag::Location::file(super::fields::BUILT_IN),
    }
}

fn exporter_port(fields: &Fields<'_>, key: &str, default: u16) -> Option<u16> {
    match fields.said(key) {
        None => Some(default),
        Some(node) => int(node).and_then(|port| u16::try_from(port).ok()),
    }
}

/// What a collector cannot do without: somewhere to send to, a name to send under, the token if one is due.
fn needs(fields: &Fields<'_>, spec: &OtelSpec, world: &World, problems: &mut Problems) {
    let missing = |key: &str, message: &str, hint: &str| {
        Problem::new(message).at(format!("otel.{key}")).in_file(fields.location(key)).hint(hint)
    };
    match fields.said("endpoint") {
        None => problems.push(missing(
            "endpoint",
            "the key `endpoint` is missing: the collector has nowhere to send to",
            "the base of an OTLP/HTTP endpoint, `false` for files only, or `otel.enabled` = false",
        )),
        Some(node) => {
            if literal(node).is_some_and(|url| !url.starts_with("http://") && !url.starts_with("https://"))
                && boolean(node).is_none()
            {
                problems.push(missing(
                    "endpoint",
                    "the base of an OTLP/HTTP endpoint begins with `http://` or `https://`",
                    "such as https://otlp.example.com",
                ));
            }
        }
    }
    if fields.said("service_name").is_none() {
        problems.push(missing(
            "service_name",
            "the key `service_name` is missing: nothing says under which name telemetry is sent",
            "`otel.service_name`, usually in the site fragment",
        ));
    }
    if spec.queue == "disk" && spec.binary.is_some() {
        problems.push(missing(
            "queue",
            "`disk` needs the embedded collector: an otelcol stores the token with the data",
            "leave `otel.binary` out, or `otel.queue` = \"memory\"",
        ));
    }
    if let Some(token) = &spec.token_env
        && world.look_up_secrets
        && world.variable(&token.value).is_none_or(|value| value.trim().is_empty())
    {
        problems.push(missing(
            "token_env",
            &format!("the variable `{}` with the token is not set", token.value),
            "set it, name another variable, or `otel.token_env` = false for an endpoint without a token",
        ));
    }
    let in_headers = spec.headers.values().flat_map(|text| text.value.references()).filter_map(|r| match r {
        Reference::Secret { name, .. } => Some(("headers", name)),
        _ => None,
    });
    for (key, name) in spec.token_env.iter().map(|token| ("token_env", &token.value)).chain(in_headers) {
        // The end of a line that a file ends in is taken off; one in the middle would be a header of its own.
        if world.look_up_secrets
            && world.variable(name).is_some_and(|value| value.trim_end().chars().any(char::is_control))
        {
            problems.push(missing(
                key,
                &format!("the variable `{name}` holds a line end or another control character, which no header can"),
                "its value is not shown; look whether two lines were read where one was meant",
            ));
        }
    }
}
