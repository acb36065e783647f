//! A unit of the plan: one process, from its argv to how it is stopped.

use std::fmt;

use indexmap::IndexMap;
use serde::{Serialize, Serializer};

use super::log::{LogMode, Rotation};
use super::text::Text;
use super::tree::Value;
use crate::diag::{Location, is_secret_name};

/// The name of the collector among the units.
pub const COLLECTOR: &str = "otel_collector";
/// The name of the driver among the units.
pub const DRIVER: &str = "driver";

/// The variable that marks every process of a job, daemons that left their parents included.
pub const PROCESS_MARK: &str = "GYMRUN_PROCESS";

/// The value of [`PROCESS_MARK`]: `<job id>:<process>`.
#[must_use]
pub fn process_mark(job_id: &str, process: &str) -> String {
    format!("{job_id}:{process}")
}

/// What a unit is to the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The OpenTelemetry collector: first to start, last to stop.
    Collector,
    /// A supporting process such as a model server.
    Service,
    /// A NeMo Gym server.
    Server,
    /// The process whose end is the end of the job.
    Driver,
}

impl Kind {
    /// Starts after the collector and before the driver: a service or a server.
    #[must_use]
    pub fn in_middle(self) -> bool {
        matches!(self, Self::Service | Self::Server)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Collector => "collector",
            Self::Service => "service",
            Self::Server => "server",
            Self::Driver => "driver",
        })
    }
}

/// Which port a process listens on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PortChoice {
    /// Kept, or the job fails naming the holder.
    Fixed(u16),
    /// The lowest free one, both ends included.
    Range(u16, u16),
    /// A free one of `ports.auto` of the job.
    Auto,
}

impl fmt::Display for PortChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(port) => write!(f, "{port}"),
            Self::Range(low, high) => write!(f, "{low}-{high}"),
            Self::Auto => f.write_str("auto"),
        }
    }
}

impl Serialize for PortChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(port) => serializer.serialize_u16(*port),
            other => serializer.collect_str(other),
        }
    }
}

/// What a variable of a process becomes.
#[derive(Clone, Debug, PartialEq)]
pub enum VariableValue {
    /// This value, references filled in at launch.
    Set(Value),
    /// The variable is taken away, even if gymrun's own environment has it.
    Unset,
    /// The collector's own copy of a variable that collector.yaml names as `${env:X}`: every `$` doubled, since the
    /// collector expands what it reads once more; white space at the end is taken off (a token read from a file).
    CollectorCopy {
        /// The variable of gymrun's environment.
        variable: String,
        /// Used when it is unset.
        default: Option<String>,
    },
}

impl Serialize for VariableValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Set(value) => value.serialize(serializer),
            Self::Unset => serializer.serialize_bool(false),
            Self::CollectorCopy { variable, .. } => serializer.collect_str(&format_args!("<{variable}>")),
        }
    }
}

/// One variable that gymrun sets for a process, and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// What it becomes.
    pub value: VariableValue,
    /// The layer that set it, in words (`gymrun`, `telemetry`, `hook environment of corp-pyxis`, `job.lua:12`).
    pub source: String,
    /// What is printed and stored instead of the value (`<HF_TOKEN>`): it is a secret, or its name says so.
    pub masked: Option<String>,
}

impl Variable {
    /// A variable of that name; one whose name has TOKEN, KEY, SECRET or PASSWORD in it is masked.
    #[must_use]
    pub fn new(name: &str, value: VariableValue, source: impl Into<String>) -> Self {
        let secret = match &value {
            VariableValue::Set(Value::Text(text)) => is_secret_name(name) && text.as_literal() != Some(""),
            VariableValue::Set(Value::Encoded { .. }) => is_secret_name(name),
            VariableValue::Unset | VariableValue::CollectorCopy { .. } => false,
        };
        Self { value, source: source.into(), masked: secret.then(|| format!("<{name}>")) }
    }
}

/// A variable's value as it may be printed or stored.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ShownValue<'a> {
    /// `<NAME>` in place of what must not be seen.
    Masked(&'a str),
    /// Nothing in it is secret.
    Plain(&'a VariableValue),
}

impl Variable {
    /// What of it may be shown; every print of a variable goes through here.
    #[must_use]
    pub fn shown(&self) -> ShownValue<'_> {
        self.masked.as_deref().map_or(ShownValue::Plain(&self.value), ShownValue::Masked)
    }
}

impl Serialize for Variable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        let mut out = serializer.serialize_struct("Variable", 2)?;
        out.serialize_field("value", &self.shown())?;
        out.serialize_field("source", &self.source)?;
        out.end()
    }
}

/// How one finds out that a process is ready.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ProbeKind {
    /// An HTTP GET.
    Http {
        /// The first path that is not answered 404 or 405 decides.
        paths: Vec<String>,
        /// Accepted statuses, as inclusive ranges.
        statuses: Vec<(u16, u16)>,
    },
    /// A connection that opens.
    Tcp,
    /// A command that ends with 0, in the process's directory and environment.
    Exec {
        /// argv.
        command: Vec<Text>,
    },
    /// grpc.health.v1.
    Grpc {
        /// The service asked for; empty is the whole server.
        service: String,
    },
}

/// One question to a process, whatever is made of the answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Question {
    /// What is asked.
    #[serde(flatten)]
    pub kind: ProbeKind,
    /// Where it is asked; `None` for `exec`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Text>,
    /// The port, usually `${port:NAME}`; `None` for `exec`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<Text>,
    /// Limit of one request, in seconds.
    pub request_timeout_seconds: f64,
}

/// The question that makes a process ready, and its schedule. Seconds throughout.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Probe {
    /// What is asked.
    #[serde(flatten)]
    pub question: Question,
    /// From spawn to ready.
    pub timeout_seconds: f64,
    /// Fixed distance between two probes; `None` is 0.01 growing to 0.04, and to 1 for a server that answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_seconds: Option<f64>,
}

/// The question that is asked for as long as a process is ready: it hangs if too many answers in a row are bad.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Liveness {
    /// What is asked.
    #[serde(flatten)]
    pub question: Question,
    /// Between two questions, in seconds.
    pub interval_seconds: f64,
    /// That many bad answers in a row; at least 1.
    pub failure_threshold: u32,
}

/// When a unit counts as ready.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "when", rename_all = "lowercase")]
pub enum Readiness {
    /// As soon as it runs.
    Started,
    /// When its probe is good.
    Probe(Probe),
    /// When it has ended with 0 (a task); `timeout_seconds` is its limit, if any.
    Exited {
        /// From spawn to its end.
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout_seconds: Option<f64>,
    },
}

/// What an exit that nobody asked for does to the job.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OnExit {
    /// It ends the job with 125.
    Stop,
    /// It is started again, on its port, as long as the policy allows.
    Restart(RestartPolicy),
    /// It is a warning; those that depend on it are not started.
    Ignore,
}

/// How often and when a process is started again. Seconds throughout.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RestartPolicy {
    /// At most that many times
    pub limit: u32,
    /// within this time.
    pub window_seconds: f64,
    /// From its end to the first new start; doubled with each further one in the window,
    pub backoff_seconds: f64,
    /// up to this.
    pub backoff_max_seconds: f64,
    /// Those that need it, directly or not, are stopped before and started again after it.
    pub also_dependants: bool,
    /// What one death too many does.
    pub exhausted: Exhausted,
}

/// What happens once a process may not be started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Exhausted {
    /// The same as [`OnExit::Stop`].
    Stop,
    /// The same as [`OnExit::Ignore`].
    Ignore,
}

/// A signal that stops a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "the names of POSIX")]
pub enum StopSignal {
    Term,
    Int,
    Quit,
    Hup,
    Usr1,
    Usr2,
}

impl StopSignal {
    /// The spelling of the job file: `TERM`, or `SIGTERM`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text.strip_prefix("SIG").unwrap_or(text) {
            "TERM" => Self::Term,
            "INT" => Self::Int,
            "QUIT" => Self::Quit,
            "HUP" => Self::Hup,
            "USR1" => Self::Usr1,
            "USR2" => Self::Usr2,
            _ => return None,
        })
    }
}

/// How a process is stopped: the signal, and how long until SIGKILL goes to its whole tree.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StopPolicy {
    /// Sent to the process group.
    pub signal: StopSignal,
    /// Seconds.
    pub grace_seconds: f64,
}

/// Where a process's standard input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stdin {
    /// /dev/null.
    Null,
    /// gymrun's own.
    Inherit,
}

/// One process of the job, complete.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unit {
    /// Unique in the job: `otel_collector`, `driver`, or the author's name.
    pub name: String,
    /// What it is to the job.
    pub kind: Kind,
    /// `vllm`, `task`, `command`, `resources_servers`, ...: the author's `type`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The author's line.
    #[serde(skip_serializing_if = "Location::is_unknown")]
    pub location: Location,
    /// argv after every hook; never empty.
    pub argv: Vec<Text>,
    /// The working directory, absolute.
    pub cwd: String,
    /// What gymrun sets on top of its own environment, sorted by name.
    pub env: IndexMap<String, Variable>,
    /// Its own port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<PortChoice>,
    /// Further ports by key.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub ports: IndexMap<String, PortChoice>,
    /// Started when those are ready. The driver waits for all others; all wait for the collector.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// When it counts as ready.
    pub readiness: Readiness,
    /// How one finds out that it hangs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub liveness: Option<Liveness>,
    /// What its unexpected end does.
    pub on_exit: OnExit,
    /// How it is stopped.
    pub stop: StopPolicy,
    /// Who owns the log file `logs/<name>.log`.
    pub log: LogMode,
    /// When a new log is begun; only with [`LogMode::Pipe`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_rotation: Option<Rotation>,
    /// Standard input.
    pub stdin: Stdin,
    /// The model it serves, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Unit {
    /// Its log file, relative to the job directory.
    #[must_use]
    pub fn log_file(&self) -> String {
        format!("logs/{}.log", self.name)
    }
}
