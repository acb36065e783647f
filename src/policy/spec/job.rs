//! The job as a whole.

use indexmap::IndexMap;

use super::{FragmentSpec, OtelSpec, Placed, ProcessSpec, TelemetrySpec};
use crate::diag::Location;
use crate::plan::{PortPolicy, Text, Tree, Value};

/// What the site does about `container` (`containers` of a fragment).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Containers {
    /// Start them.
    #[default]
    Use,
    /// Run on the host, with a warning.
    Ignore,
    /// An error.
    Refuse,
}

/// A job with its site, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The job's name.
    pub name: String,
    /// Where the job begins: the place for problems that belong to no key.
    pub location: Location,
    /// Absolute.
    pub output_path: String,
    /// Seconds, above 0.
    pub time_limit_seconds: Option<f64>,
    /// `cluster` of the site, or the name of its topmost fragment.
    pub cluster: String,
    /// What the site does about containers.
    pub containers: Containers,
    /// Services, then servers, in their authors' order.
    pub processes: Vec<ProcessSpec>,
    /// The driver, if the job has one.
    pub driver: Option<ProcessSpec>,
    /// The process whose model is the policy model: `driver.policy_model`, or the only process with a model.
    pub policy_model: Option<Placed<String>>,
    /// The `telemetry` block, settled but for the process's own `env` and the hook `environment`.
    pub telemetry: TelemetrySpec,
    /// The `otel` block; its `enabled` says whether there is a collector at all.
    pub otel: OtelSpec,
    /// `process_defaults.collector.env`, with `process_defaults.all.env` below it.
    pub collector_env: IndexMap<String, super::EnvSpec>,
    /// `stop_signal` of the collector.
    pub collector_stop_signal: crate::plan::StopSignal,
    /// `log` of the collector.
    pub collector_log: crate::plan::LogMode,
    /// When a new log of the collector is begun.
    pub collector_log_rotation: Option<crate::plan::Rotation>,
    /// `attributes` of the job: text, integers and booleans.
    pub attributes: IndexMap<String, Placed<Tree>>,
    /// `scrape` of the job.
    pub scrape: Vec<TargetSpec>,
    /// `files` of the job, by their path below `<job dir>/files/`.
    pub files: IndexMap<String, Placed<Value>>,
    /// Top-level keys of `NEMO_GYM_CONFIG_DICT`.
    pub gym_config: IndexMap<String, Tree>,
    /// Where `auto` picks.
    pub ports: PortPolicy,
    /// Absolute paths that `gymrun submit` copies with the job.
    pub stage: Vec<String>,
    /// The fragments, lowest first, with their hooks.
    pub fragments: Vec<FragmentSpec>,
}

impl Spec {
    /// The process of that name: a service, a server or the driver.
    #[must_use]
    pub fn process(&self, name: &str) -> Option<&ProcessSpec> {
        self.processes.iter().chain(&self.driver).find(|p| p.name == name)
    }
}

/// A Prometheus target as people write it (docs/api.md section 16).
#[derive(Clone, Debug, PartialEq)]
pub struct TargetSpec {
    /// Where it was written.
    pub location: Location,
    /// `job_name`.
    pub job_name: String,
    /// `host:port` each; empty if `port` is given.
    pub targets: Vec<Text>,
    /// A port on `nodes`, instead of `targets`.
    pub port: Option<u16>,
    /// `all`, `driver` or a pool.
    pub nodes: String,
    /// Static labels.
    pub labels: IndexMap<String, Text>,
    /// Seconds, at least 1; `None` is the collector's own.
    pub scrape_interval_seconds: Option<u64>,
    /// `None` is `/metrics`.
    pub metrics_path: Option<String>,
    /// `http` or `https`; `None` is `http`.
    pub scheme: Option<String>,
    /// Query parameters.
    pub params: IndexMap<String, Vec<String>>,
    /// Whether labels of the page win over the target's.
    pub honor_labels: Option<bool>,
    /// The variable with a bearer token.
    pub bearer_env: Option<String>,
    /// Prometheus's own, as written.
    pub relabel_configs: Vec<Tree>,
    /// The same.
    pub metric_relabel_configs: Vec<Tree>,
}
