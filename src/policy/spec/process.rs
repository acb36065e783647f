//! One process of the job.

use indexmap::IndexMap;

use super::Placed;
use crate::diag::Location;
use crate::plan::{
    Kind, Liveness, LogMode, OnExit, PortChoice, Readiness, Rotation, Stdin, StopPolicy, Text, Tree, Value,
};

/// What is executed.
#[derive(Clone, Debug, PartialEq)]
pub enum CommandSpec {
    /// `command`: argv, no shell.
    Argv(Vec<Text>),
    /// `shell`: text for `bash -c`.
    Shell(String),
    /// The kind makes its own: `vllm`, a server with `implementation`, `gym.eval`.
    Own,
}

/// What the author asks for one variable.
#[derive(Clone, Debug, PartialEq)]
pub enum EnvValue {
    /// This.
    Set(Value),
    /// The child does not get it at all (`false`, `!off`).
    Unset,
}

/// One entry of `env`.
#[derive(Clone, Debug, PartialEq)]
pub struct EnvSpec {
    /// What it becomes.
    pub value: EnvValue,
    /// Whether it is masked wherever it is printed or stored: its value holds a secret, or its name has TOKEN, KEY,
    /// SECRET or PASSWORD in it.
    pub masked: bool,
    /// Where it was written (a place in the job, in a fragment's `process_defaults`, or `<command line>`).
    pub location: Location,
}

/// Which GPUs of the node a process sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Gpus {
    /// All: nothing is set.
    #[default]
    All,
    /// None: `CUDA_VISIBLE_DEVICES` is empty.
    Off,
    /// These (a number of GPUs has been dealt out already, the lowest that no other process lists).
    These(Vec<u32>),
}

/// The process's own Prometheus endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricsSpec {
    /// `None` is the process's own port.
    pub port: Option<Text>,
    /// HTTP path.
    pub path: String,
    /// Seconds; `None` is the collector's own.
    pub scrape_interval_seconds: Option<u64>,
    /// Static labels.
    pub labels: IndexMap<String, Text>,
}

/// A service, a server or the driver.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessSpec {
    /// Its name: the key; `driver` for the driver.
    pub name: String,
    /// What it is to the job; never the collector.
    pub kind: Kind,
    /// `vllm`, `command`, `task`; `resources_servers`, ...; `command` or `eval` for the driver.
    pub type_name: String,
    /// Where it was written.
    pub location: Location,
    /// Its path of keys: `servers.agent`, `driver`.
    pub path: String,
    /// What is executed.
    pub command: CommandSpec,
    /// Where `command` or `shell` was written.
    pub command_location: Location,
    /// bash text that runs before, in the same shell; empty for none.
    pub pre_command: String,
    /// Absolute; `None` is the directory of the job file, or the kind's own.
    pub cwd: Option<String>,
    /// The author's variables.
    pub env: IndexMap<String, EnvSpec>,
    /// Its port.
    pub port: Option<Placed<PortChoice>>,
    /// Further ports.
    pub ports: IndexMap<String, Placed<PortChoice>>,
    /// The author's `depends_on`, and what `gym.peer` adds. Names are checked.
    pub depends_on: Vec<Placed<String>>,
    /// When it counts as ready. A probe without `port` of its own has `${port:self}`, `host` is `${host:self}`.
    pub readiness: Readiness,
    /// How one finds out that it hangs.
    pub liveness: Option<Liveness>,
    /// What its unexpected end does.
    pub on_exit: OnExit,
    /// How it is stopped.
    pub stop: StopPolicy,
    /// Who owns its log.
    pub log: LogMode,
    /// When a new log is begun.
    pub log_rotation: Option<Rotation>,
    /// Its metrics endpoint, if it is scraped.
    pub metrics: Option<MetricsSpec>,
    /// Its GPUs.
    pub gpus: Gpus,
    /// The model it serves.
    pub model: Option<Placed<String>>,
    /// The name under which it serves it: `served_model_name`, or `model`.
    pub served_model_name: Option<String>,
    /// What only its kind has.
    pub detail: Detail,
}

/// What only one kind of process has.
#[derive(Clone, Debug, PartialEq)]
pub enum Detail {
    /// A service of type `vllm`.
    Vllm(VllmSpec),
    /// A service of type `command`, or a `task`.
    Plain,
    /// A server.
    Server(ServerSpec),
    /// The driver.
    Driver(DriverSpec),
}

/// `gym.vllm`.
#[derive(Clone, Debug, PartialEq)]
pub struct VllmSpec {
    /// The first words of argv; a bare name is looked up in PATH, other paths are absolute.
    pub executable: Vec<String>,
    /// `--tensor-parallel-size`.
    pub tensor_parallel_size: u32,
    /// `--pipeline-parallel-size`.
    pub pipeline_parallel_size: u32,
    /// Data-parallel instances.
    pub number_of_instances: u32,
    /// `--trust-remote-code`.
    pub trust_remote_code: bool,
    /// Further words of argv.
    pub extra_args: Vec<Text>,
    /// Only with several instances.
    pub data_parallel_rpc_port: PortChoice,
}

/// `nemo.gym.server.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of NeMo Gym's directories")]
pub enum ServerType {
    ResourcesServers,
    ResponsesApiAgents,
    ResponsesApiModels,
    EnvironmentServers,
}

impl ServerType {
    /// As people write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ResourcesServers => "resources_servers",
            Self::ResponsesApiAgents => "responses_api_agents",
            Self::ResponsesApiModels => "responses_api_models",
            Self::EnvironmentServers => "environment_servers",
        }
    }

    /// The type of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::ResourcesServers, Self::ResponsesApiAgents, Self::ResponsesApiModels, Self::EnvironmentServers]
            .into_iter()
            .find(|t| t.name() == name)
    }
}

/// `gym.server`.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSpec {
    /// Its type.
    pub server_type: ServerType,
    /// The directory below `<root>/<type>`; `None`: the author gave a command.
    pub implementation: Option<Placed<String>>,
    /// A bare name, or absolute.
    pub python: String,
    /// Absolute; `None` is where that Python's `nemo_gym` lies.
    pub root: Option<Placed<String>>,
    /// The instance's block of `NEMO_GYM_CONFIG_DICT`; peers are `{type, name}` already.
    pub config: IndexMap<String, Tree>,
    /// Uvicorn workers.
    pub num_workers: u32,
}

/// What only the driver has.
#[derive(Clone, Debug, PartialEq)]
pub struct DriverSpec {
    /// `gym.eval`.
    pub eval: Option<EvalSpec>,
    /// Text for the host of `NEMO_GYM_POLICY_BASE_URL`; `None` is by placement.
    pub policy_host: Option<String>,
    /// `policy_model_type`.
    pub policy_model_type: String,
    /// Standard input.
    pub stdin: Stdin,
}

/// `gym.eval`.
#[derive(Clone, Debug, PartialEq)]
pub struct EvalSpec {
    /// The agent asked.
    pub agent: Placed<String>,
    /// Tasks; a path made absolute, unless late.
    pub input: Text,
    /// Rollouts; `<job dir>/artifacts/rollouts.jsonl` if not given.
    pub output: Text,
    /// Repeats of each task.
    pub repeats: u32,
    /// Rollouts at a time; `None` is Gym's own.
    pub concurrency: Option<u32>,
    /// Whether a missing rollout is an error.
    pub require_complete: bool,
    /// Further keys of the configuration.
    pub overrides: IndexMap<String, Tree>,
    /// A bare name, or absolute.
    pub executable: String,
}
