//! Memory samples and the collector's delivery report.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::plan::Kind;

/// Memory of the host, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostMemory {
    /// Total minus available.
    pub used: u64,
    /// `MemAvailable`.
    pub available: u64,
    /// `MemTotal`.
    pub total: u64,
    /// The greatest `used` since the sampler started.
    pub peak: u64,
}

/// What the cgroup that gymrun and its job run in accounts for, in bytes: page cache and kernel memory, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupMemory {
    /// In use.
    pub used: u64,
    /// The smallest limit of it and of those around it, as far as they can be seen; left out if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// The greatest `used` since the sampler started.
    pub peak: u64,
}

/// The process tree of one unit at one time. Bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TreeSample {
    /// The unit.
    pub process: String,
    /// What it is to the job.
    pub kind: Kind,
    /// `nemo.gym.server.type`: the unit's type for servers, `service` or `driver` otherwise.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The root's pid.
    pub pid: u32,
    /// Resident set of the whole tree.
    pub rss: u64,
    /// Proportional set of the whole tree; left out when it was not read, or one process could not give it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pss: Option<u64>,
    /// Processes in the tree (threads count once); 0 once after the last has ended, which tells the CPU time to its end.
    pub processes: u32,
    /// The greatest `rss` since the sampler started.
    pub peak_rss: u64,
    /// The greatest `pss` since the sampler started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_pss: Option<u64>,
    /// CPU time of the whole tree since its root started, ended processes included. It never falls.
    pub cpu_seconds: f64,
}

/// One tick of the sampler.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sample {
    /// The host.
    pub host: HostMemory,
    /// The cgroup; left out where no memory controller can be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<CgroupMemory>,
    /// Each sampled unit.
    pub trees: Vec<TreeSample>,
    /// Gym servers that run now (`gym.servers.active`).
    pub servers_active: u32,
}

/// What became of one signal's items (spans, data points, log records).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalDelivery {
    /// Taken in by receivers.
    #[serde(default)]
    pub received: u64,
    /// Written to files.
    #[serde(default)]
    pub written: u64,
    /// Accepted by the endpoint.
    #[serde(default)]
    pub sent: u64,
    /// Refused by the endpoint, in part or for good.
    #[serde(default)]
    pub rejected: u64,
    /// Kept on disk, to be sent later.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stored: u64,
    /// Given up, by reason.
    #[serde(default)]
    pub dropped: IndexMap<String, u64>,
}

/// Whether a number says nothing, so that it is left out.
pub(crate) fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

impl SignalDelivery {
    /// Everything given up, whatever the reason.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped.values().sum()
    }
}

/// What the collector says at its end (`otel/delivery.json`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Spans.
    #[serde(default)]
    pub traces: SignalDelivery,
    /// Data points.
    #[serde(default)]
    pub metrics: SignalDelivery,
    /// Log records.
    #[serde(default)]
    pub logs: SignalDelivery,
    /// The last error of an exporter, without anything secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

impl Delivery {
    /// The three signals with their names.
    #[must_use]
    pub fn signals(&self) -> [(&'static str, &SignalDelivery); 3] {
        [("traces", &self.traces), ("metrics", &self.metrics), ("logs", &self.logs)]
    }

    /// Items that were rejected or dropped, or are still stored, of all signals.
    #[must_use]
    pub fn undelivered(&self) -> u64 {
        self.signals().iter().map(|(_, s)| s.rejected + s.dropped_total()).sum::<u64>() + self.stored()
    }

    /// Items that are still stored, of all signals.
    #[must_use]
    pub fn stored(&self) -> u64 {
        self.signals().iter().map(|(_, s)| s.stored).sum()
    }
}
