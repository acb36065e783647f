//! The `otel` block: the collector.

use indexmap::IndexMap;

use super::Placed;
use crate::diag::Location;
use crate::plan::{PortChoice, Text};

/// `OTEL_EXPORTER_OTLP_PROTOCOL` of the job's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// `http/protobuf`.
    HttpProtobuf,
    /// `grpc`.
    Grpc,
}

impl Protocol {
    /// As people write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HttpProtobuf => "http/protobuf",
            Self::Grpc => "grpc",
        }
    }
}

/// TLS towards the endpoint; paths are absolute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the collector's own configuration")]
pub struct TlsSpec {
    pub ca_file: Option<String>,
    pub cert_file: Option<String>,
    pub key_file: Option<String>,
    pub server_name_override: Option<String>,
    pub insecure_skip_verify: bool,
}

/// The collector's own ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtelPorts {
    /// OTLP over gRPC.
    pub grpc: PortChoice,
    /// OTLP over HTTP.
    pub http: PortChoice,
    /// Health check.
    pub health: PortChoice,
}

/// `otel`, checked: with `enabled`, endpoint and service name are what they must be.
#[derive(Clone, Debug, PartialEq)]
pub struct OtelSpec {
    /// Where the block was written, the highest layer's.
    pub location: Location,
    /// Whether there is a collector.
    pub enabled: bool,
    /// Undelivered telemetry fails the job.
    pub required: bool,
    /// OTLP/HTTP base; `None` is files only.
    pub endpoint: Option<Placed<String>>,
    /// `service.name` of every resource.
    pub service_name: String,
    /// The variable with the token; only with an endpoint.
    pub token_env: Option<Placed<String>>,
    /// `Bearer`.
    pub token_scheme: String,
    /// The resource attribute with the token.
    pub tenant_attribute: Option<String>,
    /// Further headers.
    pub headers: IndexMap<String, Placed<Text>>,
    /// TLS towards the endpoint.
    pub tls: TlsSpec,
    /// `gzip`, `none`, ...
    pub compression: String,
    /// Seconds of one request.
    pub timeout_seconds: f64,
    /// Where what cannot be sent is kept: `memory` or `disk`.
    pub queue: String,
    /// The collector's own log.
    pub log_level: String,
    /// An otelcol: a bare name, or absolute; `None` is the embedded collector.
    pub binary: Option<Placed<String>>,
    /// First part of the name of a scraped service: `<component>/<name>`.
    pub component: String,
    /// Whether a collector switches Gym's telemetry on where `telemetry` leaves it open.
    pub gym_telemetry: bool,
    /// Span groups in that case.
    pub gym_span_groups: String,
    /// Logs in that case.
    pub gym_logs: bool,
    /// dcgm-exporter of each node.
    pub gpu_metrics_port: Option<u16>,
    /// `node_exporter` of each node.
    pub node_metrics_port: Option<u16>,
    /// Seconds, at least 1.
    pub scrape_interval_seconds: u64,
    /// Seconds, at least 1.
    pub health_check_timeout_seconds: u64,
    /// Seconds.
    pub final_scrape_grace_seconds: f64,
    /// Seconds.
    pub shutdown_wait_seconds: f64,
    /// The collector's ports.
    pub ports: OtelPorts,
    /// What the job's processes speak to it.
    pub protocol: Protocol,
}
