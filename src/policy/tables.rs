//! What hooks and the shipped policy are shown of a job: `job` and `process` (docs/api.md section 16), read-only, and an unknown
//! field is an error.

use indexmap::IndexMap;
use mlua::{IntoLua, Lua, Table, Value};

use super::convert::tree_to_lua;
use super::host::{host, mark_list, prelude};
use super::late::{Late, late, reference};
use super::spec::{EnvSpec, EnvValue, Gpus, OtelSpec, ProcessSpec, Spec, TelemetrySpec};
use crate::diag::is_secret_name;
use crate::inputs::World;
use crate::plan::{Kind, PortChoice, ProbeKind, Readiness, Reference, StopSignal, Text, Value as PlanValue};

/// About as many fields as a block has.
const FIELDS: usize = 16;

/// A table under construction, and the fields that may be asked of it.
pub struct Block<'a> {
    lua: &'a Lua,
    table: Table,
    fields: Table,
    /// The fields are all known already, and are those of other blocks as well.
    settled: bool,
}

impl<'a> Block<'a> {
    /// Nothing yet.
    pub fn new(lua: &'a Lua) -> mlua::Result<Self> {
        let (table, fields) = (lua.create_table_with_capacity(0, FIELDS)?, lua.create_table_with_capacity(0, FIELDS)?);
        Ok(Self { lua, table, fields, settled: false })
    }

    /// A process, with nothing set: each has the same [`PROCESS`] fields.
    fn of_process(lua: &'a Lua) -> mlua::Result<Self> {
        let known = host(lua)?.process_fields.get().cloned();
        if let Some(fields) = known {
            return Ok(Self { lua, table: lua.create_table_with_capacity(0, FIELDS)?, fields, settled: true });
        }
        let mut block = Self::new(lua)?;
        block.known(PROCESS)?;
        block.settled = true;
        // It was empty.
        let _ = host(lua)?.process_fields.set(block.fields.clone());
        Ok(block)
    }

    /// A field; `nil` leaves it unset and known.
    pub fn set(&self, name: &str, value: impl IntoLua) -> mlua::Result<()> {
        if !self.settled {
            self.fields.raw_set(name, true)?;
        }
        self.table.raw_set(name, value)
    }

    /// Fields that exist and are unset.
    pub fn known(&self, names: &[&str]) -> mlua::Result<()> {
        names.iter().try_for_each(|name| self.fields.raw_set(*name, true))
    }

    /// The finished table: read-only, `label` is its name in messages. Nobody else may hold a table of it that is not
    /// finished itself.
    pub fn show(self, label: &str) -> mlua::Result<Table> {
        prelude(self.lua, "show")?.call((self.table, label, self.fields))
    }
}

/// What else `job` says of where things lie.
pub struct JobFacts<'a> {
    /// The job id.
    pub job_id: &'a str,
    /// Absolute.
    pub job_dir: &'a str,
}

/// The `job` of hooks. `processes` has each process as [`process`] makes it.
pub fn job(lua: &Lua, spec: &Spec, facts: &JobFacts<'_>, processes: &IndexMap<String, Table>) -> mlua::Result<Table> {
    let block = Block::new(lua)?;
    block.set("name", spec.name.as_str())?;
    block.set("id", facts.job_id)?;
    block.set("dir", facts.job_dir)?;
    block.set("output_path", spec.output_path.as_str())?;
    block.set("user", host(lua)?.world.user.as_str())?;
    block.set("cluster", spec.cluster.as_str())?;
    block.set("site", list(lua, spec.fragments.iter().map(|f| f.source.name.as_str()))?)?;
    block.set("model", policy_model(spec).and_then(|p| p.served_model_name.clone()))?;
    let (services, servers) = (lua.create_table()?, lua.create_table()?);
    for process in &spec.processes {
        let group = if process.kind == Kind::Service { &services } else { &servers };
        group.raw_set(process.name.as_str(), processes.get(&process.name))?;
    }
    block.set("services", services)?;
    block.set("servers", servers)?;
    match &spec.driver {
        Some(driver) => block.set("driver", processes.get(&driver.name))?,
        None => block.set("driver", lua.create_table()?)?,
    }
    block.set("sandboxes", lua.create_table()?)?;
    block.set("telemetry", telemetry(lua, &spec.telemetry)?)?;
    block.set("otel", otel(lua, &spec.otel)?)?;
    let world = std::sync::Arc::clone(&host(lua)?.world);
    block.set("slurm", slurm(lua, &world)?)?;
    block.set("nodes", list(lua, ["localhost"])?)?;
    block.set("submitting", false)?;
    block.show("job")
}

/// The process that serves the policy model.
pub fn policy_model(spec: &Spec) -> Option<&ProcessSpec> {
    spec.policy_model.as_ref().and_then(|name| spec.process(&name.value))
}

/// A list of texts that is a list even if it is empty.
pub fn list<'a>(lua: &Lua, items: impl IntoIterator<Item = &'a str>) -> mlua::Result<Table> {
    mark_list(lua, lua.create_sequence_from(items)?)
}

/// argv and the like.
pub fn texts(lua: &Lua, texts: &[Text]) -> mlua::Result<Table> {
    let table = lua.create_table_with_capacity(texts.len(), 0)?;
    for text in texts {
        table.raw_push(late(lua, text.clone())?)?;
    }
    mark_list(lua, table)
}

/// A whole value of `env` or `files`.
pub fn value(lua: &Lua, value: &PlanValue) -> mlua::Result<Value> {
    match value {
        PlanValue::Text(text) => late(lua, text.clone()),
        PlanValue::Encoded { encoding, value } => {
            let late = Late::Encoded { encoding: *encoding, value: value.clone() };
            Ok(Value::UserData(lua.create_userdata(late)?))
        }
    }
}

/// A port as policy may use it: a number where it is fixed.
pub fn port(lua: &Lua, process: &str, key: Option<&str>, choice: PortChoice) -> mlua::Result<Value> {
    match choice {
        PortChoice::Fixed(port) => Ok(Value::Integer(port.into())),
        PortChoice::Range(..) | PortChoice::Auto => {
            reference(lua, Reference::Port { process: process.to_owned(), key: key.map(str::to_owned) })
        }
    }
}

const PROCESS: &[&str] = &[
    "name",
    "kind",
    "type",
    "argv",
    "env",
    "cwd",
    "container",
    "mounts",
    "port",
    "node_pool",
    "node",
    "gpus",
    "executable",
    "model",
    "health_check",
    "stop_signal",
    "grace_seconds",
];

/// The `process` of hooks.
pub fn process(lua: &Lua, spec: &ProcessSpec, argv: Option<&Vec<Text>>) -> mlua::Result<Table> {
    let block = Block::of_process(lua)?;
    block.set("name", spec.name.as_str())?;
    block.set("kind", spec.kind.to_string())?;
    block.set("type", spec.type_name.as_str())?;
    block.set("argv", texts(lua, argv.map_or(&[], Vec::as_slice))?)?;
    block.set("env", authored_env(lua, &spec.env)?)?;
    block.set("cwd", spec.cwd.as_deref())?;
    block.set("mounts", list(lua, [])?)?;
    if let Some(choice) = &spec.port {
        block.set("port", port(lua, &spec.name, None, choice.value)?)?;
    }
    block.set("node", 0)?;
    match &spec.gpus {
        Gpus::All => {}
        Gpus::Off => block.set("gpus", false)?,
        Gpus::These(these) => block.set("gpus", lua.create_sequence_from(these.iter().copied())?)?,
    }
    if let super::spec::Detail::Vllm(vllm) = &spec.detail {
        block.set("executable", list(lua, vllm.executable.iter().map(String::as_str))?)?;
    }
    block.set("model", spec.model.as_ref().map(|model| model.value.as_str()))?;
    block.set("health_check", health_check(lua, &spec.readiness)?)?;
    block.set("stop_signal", signal(spec.stop.signal))?;
    block.set("grace_seconds", spec.stop.grace_seconds)?;
    block.show("process")
}

/// The collector as hooks see it.
pub fn collector(lua: &Lua, name: &str, argv: &[Text], spec: &Spec) -> mlua::Result<Table> {
    let block = Block::of_process(lua)?;
    block.set("name", name)?;
    block.set("kind", Kind::Collector.to_string())?;
    block.set("type", name)?;
    block.set("argv", texts(lua, argv)?)?;
    block.set("env", authored_env(lua, &spec.collector_env)?)?;
    block.set("mounts", list(lua, [])?)?;
    block.set("node", 0)?;
    block.set("stop_signal", signal(spec.collector_stop_signal))?;
    block.set("grace_seconds", spec.otel.shutdown_wait_seconds)?;
    block.show("process")
}

/// The author's variables; a secret is its mask.
fn authored_env(lua: &Lua, env: &IndexMap<String, EnvSpec>) -> mlua::Result<Table> {
    let table = lua.create_table_with_capacity(0, env.len())?;
    for (name, spec) in env {
        match &spec.value {
            EnvValue::Unset => table.raw_set(name.as_str(), false)?,
            EnvValue::Set(_) if spec.masked || is_secret_name(name) => {
                table.raw_set(name.as_str(), format!("<{name}>"))?;
            }
            EnvValue::Set(set) => table.raw_set(name.as_str(), value(lua, set)?)?,
        }
    }
    Ok(table)
}

fn signal(signal: StopSignal) -> &'static str {
    match signal {
        StopSignal::Term => "TERM",
        StopSignal::Int => "INT",
        StopSignal::Quit => "QUIT",
        StopSignal::Hup => "HUP",
        StopSignal::Usr1 => "USR1",
        StopSignal::Usr2 => "USR2",
    }
}

fn health_check(lua: &Lua, readiness: &Readiness) -> mlua::Result<Value> {
    let Readiness::Probe(probe) = readiness else { return Ok(Value::Boolean(false)) };
    let table = lua.create_table()?;
    let kind = match &probe.question.kind {
        ProbeKind::Http { paths, .. } => {
            table.raw_set("path", list(lua, paths.iter().map(String::as_str))?)?;
            "http"
        }
        ProbeKind::Tcp => "tcp",
        ProbeKind::Exec { command } => {
            table.raw_set("command", texts(lua, command)?)?;
            "exec"
        }
        ProbeKind::Grpc { service } => {
            table.raw_set("service", service.as_str())?;
            "grpc"
        }
    };
    table.raw_set("type", kind)?;
    table.raw_set("timeout_seconds", probe.timeout_seconds)?;
    table.raw_set("interval_seconds", probe.interval_seconds)?;
    table.raw_set("request_timeout_seconds", probe.question.request_timeout_seconds)?;
    Ok(Value::Table(table))
}

fn telemetry(lua: &Lua, spec: &TelemetrySpec) -> mlua::Result<Table> {
    let memory = Block::new(lua)?;
    memory.set("enabled", spec.memory_profiling.enabled.value)?;
    memory.set("interval_seconds", spec.memory_profiling.interval_seconds.value)?;
    memory.set("pss_interval_seconds", spec.memory_profiling.pss_interval_seconds)?;
    memory.set("pss_rss_change", spec.memory_profiling.pss_rss_change)?;
    memory.set(
        "include",
        list(
            lua,
            spec.memory_profiling.include.iter().map(|scope| match scope {
                crate::plan::MemoryScope::Servers => "servers",
                crate::plan::MemoryScope::Services => "services",
                crate::plan::MemoryScope::Driver => "driver",
            }),
        )?,
    )?;
    let block = Block::new(lua)?;
    block.set("enabled", spec.enabled.value)?;
    block.set("service_name", spec.service_name.value.as_str())?;
    block.set("service_name_per_server", spec.service_name_per_server.value)?;
    block.set("span_groups", spec.span_groups.value.as_str())?;
    block.set("exporter", spec.exporter.value.name())?;
    block.set("traces_enabled", spec.traces_enabled.value)?;
    block.set("metrics_enabled", spec.metrics_enabled.value)?;
    block.set("logs_enabled", spec.logs_enabled.value)?;
    block.set("memory_profiling", memory.show("job.telemetry.memory_profiling")?)?;
    block.set("run_id", spec.run_id.value.as_str())?;
    block.set("sandbox_resource_sample_interval_seconds", spec.sandbox_resource_sample_interval_seconds.value)?;
    block.set("lens_compat", spec.lens_compat)?;
    block.show("job.telemetry")
}

/// `false` for what is off.
fn or_off(lua: &Lua, value: Option<impl IntoLua>) -> mlua::Result<Value> {
    value.map_or(Ok(Value::Boolean(false)), |value| value.into_lua(lua))
}

fn otel(lua: &Lua, spec: &OtelSpec) -> mlua::Result<Table> {
    let headers = lua.create_table()?;
    for (name, value) in &spec.headers {
        headers.raw_set(name.as_str(), late(lua, value.value.clone())?)?;
    }
    let tls = lua.create_table()?;
    tls.raw_set("ca_file", spec.tls.ca_file.as_deref())?;
    tls.raw_set("cert_file", spec.tls.cert_file.as_deref())?;
    tls.raw_set("key_file", spec.tls.key_file.as_deref())?;
    tls.raw_set("server_name_override", spec.tls.server_name_override.as_deref())?;
    tls.raw_set("insecure_skip_verify", spec.tls.insecure_skip_verify.then_some(true))?;
    let ports = Block::new(lua)?;
    for (key, choice) in [("grpc", spec.ports.grpc), ("http", spec.ports.http), ("health", spec.ports.health)] {
        ports.set(key, port(lua, crate::plan::COLLECTOR, Some(key), choice)?)?;
    }
    let block = Block::new(lua)?;
    block.known(&["container", "bind", "drop_asgi_spans"])?;
    block.set("enabled", spec.enabled)?;
    block.set("required", spec.required)?;
    block.set("endpoint", or_off(lua, spec.endpoint.as_ref().map(|e| e.value.as_str()))?)?;
    block.set("service_name", spec.service_name.as_str())?;
    block.set("token_env", or_off(lua, spec.token_env.as_ref().map(|e| e.value.as_str()))?)?;
    block.set("token_scheme", spec.token_scheme.as_str())?;
    block.set("tenant_attribute", or_off(lua, spec.tenant_attribute.as_deref())?)?;
    block.set("headers", headers)?;
    block.set("tls", tls)?;
    block.set("compression", spec.compression.as_str())?;
    block.set("queue", spec.queue.as_str())?;
    block.set("timeout_seconds", spec.timeout_seconds)?;
    block.set("log_level", spec.log_level.as_str())?;
    block.set("binary", or_off(lua, spec.binary.as_ref().map(|b| b.value.as_str()))?)?;
    block.set("component", spec.component.as_str())?;
    block.set("gym_telemetry", spec.gym_telemetry)?;
    block.set("gym_span_groups", spec.gym_span_groups.as_str())?;
    block.set("gym_logs", spec.gym_logs)?;
    block.set("gpu_metrics_port", or_off(lua, spec.gpu_metrics_port)?)?;
    block.set("node_metrics_port", or_off(lua, spec.node_metrics_port)?)?;
    block.set("scrape_interval_seconds", spec.scrape_interval_seconds)?;
    block.set("health_check_timeout_seconds", spec.health_check_timeout_seconds)?;
    block.set("final_scrape_grace_seconds", spec.final_scrape_grace_seconds)?;
    block.set("shutdown_wait_seconds", spec.shutdown_wait_seconds)?;
    block.set("ports", ports.show("job.otel.ports")?)?;
    block.set("protocol", spec.protocol.name())?;
    block.show("job.otel")
}

fn slurm(lua: &Lua, world: &World) -> mlua::Result<Table> {
    let job_id = world.variable("SLURM_JOB_ID").filter(|id| !id.is_empty());
    let block = Block::new(lua)?;
    block.known(&[
        "cluster",
        "account",
        "hostname",
        "walltime",
        "partition",
        "nodes",
        "ntasks_per_node",
        "gpus_per_node",
        "layout",
        "requeue",
        "signal_seconds",
    ])?;
    block.set("extra_args", lua.create_table()?)?;
    block.set("node_pools", list(lua, [])?)?;
    block.set("allocated", job_id.is_some())?;
    block.set("job_id", job_id)?;
    block.show("job.slurm")
}

/// Scalars of `attributes` and the like.
pub fn trees<'t>(lua: &Lua, map: impl IntoIterator<Item = (&'t String, &'t crate::plan::Tree)>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for (key, tree) in map {
        table.raw_set(key.as_str(), tree_to_lua(lua, tree)?)?;
    }
    Ok(table)
}
