//! The plan of a whole job.

use indexmap::IndexMap;
use serde::Serialize;

use super::process::{Kind, Unit};
use super::text::Text;
use super::tree::{Tree, Value};
use crate::diag::{Location, Problem};

/// The folder of job directories, where nobody says another one; in the working directory.
pub const OUTPUT_PATH: &str = "gymrun-jobs";

/// A file that is written to the job directory before the first process starts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlannedFile {
    /// Relative to the job directory.
    pub path: String,
    /// Permission bits; printed as octal text.
    #[serde(serialize_with = "octal")]
    pub mode: u32,
    /// What is written, references filled in.
    pub contents: Value,
    /// Who asked for it.
    #[serde(skip_serializing_if = "Location::is_unknown")]
    pub location: Location,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn octal<S: serde::Serializer>(mode: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{mode:04o}"))
}

/// Where `"auto"` ports come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PortPolicy {
    /// Inclusive range.
    pub auto: (u16, u16),
    /// Never chosen.
    pub avoid: Vec<u16>,
}

/// A file that took part in the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Source {
    /// The fragment's name.
    pub name: String,
    /// The file it came from, `<built-in>` for those in the binary.
    pub file: String,
}

/// A Prometheus target of the collector.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScrapeTarget {
    /// `job_name`.
    pub job_name: String,
    /// `host:port` each.
    pub targets: Vec<Text>,
    /// Static labels.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub labels: IndexMap<String, Text>,
    /// Every other key of it, as it stands in collector.yaml.
    #[serde(flatten)]
    pub rest: IndexMap<String, Tree>,
}

/// The collector of the job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CollectorPlan {
    /// Ours, re-executed; otherwise `otel.binary`.
    pub embedded: bool,
    /// Undelivered telemetry fails the job.
    pub required: bool,
    /// Where data is sent; `None` is files only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Seconds between two scrapes.
    pub scrape_interval_seconds: f64,
    /// Upper limit of the wait for the last scrape, in seconds.
    pub final_scrape_grace_seconds: f64,
    /// How long the collector may drain, in seconds.
    pub shutdown_wait_seconds: f64,
    /// Where an otelcol serves its own metrics (`/metrics`), read just before the stop: `host:port`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_metrics: Option<Text>,
    /// The document of collector.yaml, also among the files.
    pub config: Tree,
}

/// A kind of process whose memory is sampled and exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryScope {
    /// Gym servers.
    Servers,
    /// Services.
    Services,
    /// The driver.
    Driver,
}

impl MemoryScope {
    /// Whether a process of this kind is meant.
    #[must_use]
    pub fn covers(self, kind: Kind) -> bool {
        matches!(
            (self, kind),
            (Self::Servers, Kind::Server) | (Self::Services, Kind::Service) | (Self::Driver, Kind::Driver)
        )
    }
}

/// How memory is sampled. RSS is sampled always; the rest only when `enabled`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemoryPlan {
    /// PSS is read, and memory metrics are exported.
    pub enabled: bool,
    /// Seconds between two samples of RSS.
    pub interval_seconds: f64,
    /// Seconds between two samples of PSS.
    pub pss_interval_seconds: f64,
    /// PSS of a tree is sampled earlier when its RSS moved by more than this share of it; 0: never.
    pub pss_rss_change: f64,
    /// Whose memory is sampled.
    pub include: Vec<MemoryScope>,
}

/// gymrun's own telemetry and what it injects (NeMo Gym's `telemetry:` block).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TelemetryPlan {
    /// Whether gymrun exports its own trace and metrics.
    pub enabled: bool,
    /// The group: `service.name` is `<group>/<server>`.
    pub service_group: String,
    /// `nemo.run.id`.
    pub run_id: String,
    /// Spans of gymrun itself.
    pub traces_enabled: bool,
    /// Metrics of gymrun itself.
    pub metrics_enabled: bool,
    /// OTLP/HTTP base of gymrun's own exporter; `None`: nothing is exported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Text>,
    /// Memory sampling.
    pub memory: MemoryPlan,
}

/// A whole job, complete: nothing is decided after it but ports, secrets and inherited variables.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The job's name: the benchmark.
    pub name: String,
    /// The job id, which is the stamped `run_id`.
    pub job_id: String,
    /// Who runs it.
    pub user: String,
    /// Attribute `cluster`.
    pub cluster: String,
    /// The job file as given.
    pub job_file: String,
    /// Site fragments, lowest first, with the file each came from.
    pub site: Vec<Source>,
    /// Absolute.
    pub output_path: String,
    /// `<output_path>/<job id>/<name>`, absolute.
    pub job_dir: String,
    /// The job is ended in order after that many seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_limit_seconds: Option<f64>,
    /// Where `auto` picks.
    pub ports: PortPolicy,
    /// The collector; `None` with `otel.enabled = false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collector: Option<CollectorPlan>,
    /// gymrun's own telemetry.
    pub telemetry: TelemetryPlan,
    /// What is stamped on every resource.
    pub attributes: IndexMap<String, Tree>,
    /// What is scraped.
    pub scrape: Vec<ScrapeTarget>,
    /// Files to write.
    pub files: Vec<PlannedFile>,
    /// All processes in start order: the collector, then each after those it depends on, the driver last.
    pub units: Vec<Unit>,
    /// What the author should know though the job runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Problem>,
}

impl Plan {
    /// The unit of that name.
    #[must_use]
    pub fn unit(&self, name: &str) -> Option<&Unit> {
        self.units.iter().find(|u| u.name == name)
    }

    /// The driver, if the job has one.
    #[must_use]
    pub fn driver(&self) -> Option<&Unit> {
        self.units.iter().find(|u| u.kind == Kind::Driver)
    }
}
