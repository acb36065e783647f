//! The `telemetry` block, with who had the last word on each field.

use std::fmt;

use crate::diag::Location;
use crate::plan::MemoryScope;

/// Which layer gave a field its value (docs/api.md section 9, without the process's own `env` and the hook).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldSource {
    /// `--set`.
    CommandLine,
    /// A variable of gymrun's own environment.
    Variable(String),
    /// The job or a fragment.
    Author(Location),
    /// `otel.gym_telemetry`, `otel.gym_span_groups`, `otel.gym_logs`, since there is a collector.
    Collector,
    /// The default.
    Default,
}

impl fmt::Display for FieldSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandLine => f.write_str("<command line>"),
            Self::Variable(name) => write!(f, "{name} of the environment"),
            Self::Author(location) => write!(f, "{location}"),
            Self::Collector => f.write_str("otel.gym_telemetry"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A field and who gave it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Who gave it.
    pub source: FieldSource,
}

/// Where Gym's SDK sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exporter {
    /// OTLP.
    Otlp,
    /// One JSON object a line on standard output.
    Console,
}

impl Exporter {
    /// As people write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Otlp => "otlp",
            Self::Console => "console",
        }
    }
}

/// `telemetry`, settled.
#[derive(Clone, Debug, PartialEq)]
pub struct TelemetrySpec {
    /// Master switch.
    pub enabled: Sourced<bool>,
    /// The group.
    pub service_name: Sourced<String>,
    /// Whether servers report as `<group>/<server>`.
    pub service_name_per_server: Sourced<bool>,
    /// Which spans exist.
    pub span_groups: Sourced<String>,
    /// Where the SDK sends.
    pub exporter: Sourced<Exporter>,
    /// Spans.
    pub traces_enabled: Sourced<bool>,
    /// Metrics.
    pub metrics_enabled: Sourced<bool>,
    /// Python logging as OpenTelemetry logs.
    pub logs_enabled: Sourced<bool>,
    /// Memory sampling.
    pub memory_profiling: MemorySpec,
    /// `nemo.run.id`; the default is the job id.
    pub run_id: Sourced<String>,
    /// Seconds; 0 is none.
    pub sandbox_resource_sample_interval_seconds: Sourced<f64>,
    /// Whether the compatibility module for nemo-lens 0.1.0 is put in front.
    pub lens_compat: bool,
}

/// `telemetry.memory_profiling`.
#[derive(Clone, Debug, PartialEq)]
pub struct MemorySpec {
    /// PSS is read and memory metrics are exported.
    pub enabled: Sourced<bool>,
    /// Seconds, above 0.
    pub interval_seconds: Sourced<f64>,
    /// Seconds, above 0.
    pub pss_interval_seconds: f64,
    /// A share of RSS; 0 is none.
    pub pss_rss_change: f64,
    /// Whose memory.
    pub include: Vec<MemoryScope>,
}
