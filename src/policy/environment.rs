//! The variables of one process, layer by layer, each with its source (docs/api.md section 11).

use indexmap::IndexMap;
use mlua::{Lua, Table};

use super::convert::to_node;
use super::failure::problem_of;
use super::hook_values::Environment;
use super::host::host;
use super::schema;
use super::spec::{EnvValue, FieldSource, Gpus, Hook, TelemetrySpec};
use crate::diag::{Location, Problems};
use crate::inputs::World;
use crate::plan::{PROCESS_MARK, PortChoice, Reference, Text, Value, Variable, VariableValue, process_mark};

/// What never goes through a proxy.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// What every process is told of itself.
pub struct Identity<'a> {
    /// Its name.
    pub name: &'a str,
    /// The job id.
    pub job_id: &'a str,
    /// Its own port.
    pub port: Option<PortChoice>,
    /// Its further ports.
    pub ports: Vec<&'a String>,
    /// Its GPUs.
    pub gpus: &'a Gpus,
}

/// The lowest layer.
pub fn identity(of: &Identity<'_>) -> IndexMap<String, VariableValue> {
    let set = |text: Text| VariableValue::Set(Value::Text(text));
    let port = |key: Option<&str>| {
        set(Text::reference(Reference::Port { process: of.name.to_owned(), key: key.map(str::to_owned) }))
    };
    let mut env = IndexMap::from([
        (PROCESS_MARK.to_owned(), set(process_mark(of.job_id, of.name).into())),
        ("GYMRUN_NAME".to_owned(), set(of.name.into())),
        ("GYMRUN_JOB_ID".to_owned(), set(of.job_id.into())),
        ("GYMRUN_JOB_DIR".to_owned(), set(Text::reference(Reference::JobDir))),
    ]);
    if of.port.is_some() {
        env.insert("GYMRUN_PORT".into(), port(None));
    }
    for key in &of.ports {
        let name: String =
            key.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
        env.insert(format!("GYMRUN_PORT_{name}"), port(Some(key)));
    }
    match of.gpus {
        Gpus::All => {}
        Gpus::Off => {
            env.insert("CUDA_VISIBLE_DEVICES".into(), set("".into()));
        }
        Gpus::These(these) => {
            let these: Vec<String> = these.iter().map(u32::to_string).collect();
            env.insert("CUDA_VISIBLE_DEVICES".into(), set(these.join(",").into()));
        }
    }
    env
}

/// A table of variables that the shipped policy made.
pub fn from_policy(lua: &Lua, table: Table) -> Result<IndexMap<String, VariableValue>, Problems> {
    let found = |error: mlua::Error| problem_of(lua, &error);
    let node = to_node(lua, &mlua::Value::Table(table), &Location::file("<built-in>"), "", false).map_err(found)?;
    let mut problems = host(lua).map_err(found)?.problems.replace(Problems::new());
    let checked = node.and_then(|node| {
        schema::variables(&node, Hook::Environment.name()).map_err(|found| problems.extend(found)).ok()
    });
    let env = checked.unwrap_or_default().into_iter().map(|(name, spec)| {
        let value = match spec.value {
            EnvValue::Set(value) => VariableValue::Set(value),
            EnvValue::Unset => VariableValue::Unset,
        };
        (name, value)
    });
    problems.into_result(env.collect())
}

/// Who gave a telemetry variable its value, for the plan.
pub fn telemetry_source(spec: &TelemetrySpec, variable: &str) -> String {
    let source = match variable.strip_prefix("NEMO_GYM_OTEL_").unwrap_or(variable) {
        "ENABLED" => &spec.enabled.source,
        "RUN_ID" => &spec.run_id.source,
        "SPAN_GROUPS" => &spec.span_groups.source,
        "EXPORTER" => &spec.exporter.source,
        "TRACES_ENABLED" => &spec.traces_enabled.source,
        "METRICS_ENABLED" => &spec.metrics_enabled.source,
        "LOGS_ENABLED" => &spec.logs_enabled.source,
        "SERVICE_NAME_PER_SERVER" => &spec.service_name_per_server.source,
        "MEMORY_PROFILING_ENABLED" => &spec.memory_profiling.enabled.source,
        "MEMORY_PROFILING_INTERVAL_SECONDS" => &spec.memory_profiling.interval_seconds.source,
        "SANDBOX_RESOURCE_SAMPLE_INTERVAL_SECONDS" => &spec.sandbox_resource_sample_interval_seconds.source,
        "OTEL_SERVICE_NAME" => &spec.service_name.source,
        _ => return "telemetry".into(),
    };
    match (source, variable) {
        (FieldSource::Collector, "NEMO_GYM_OTEL_SPAN_GROUPS") => "telemetry: otel.gym_span_groups".into(),
        (FieldSource::Collector, "NEMO_GYM_OTEL_LOGS_ENABLED") => "telemetry: otel.gym_logs".into(),
        _ => format!("telemetry: {source}"),
    }
}

/// Adds loopback to `NO_PROXY` and `no_proxy`, whatever they hold by now. Each program reads the one or the other, so both get
/// what either has.
pub fn bypass_proxies(env: &mut Environment, world: &World) {
    const NAMES: [&str; 2] = ["NO_PROXY", "no_proxy"];
    let by_now = |name: &str| match env.0.get(name).map(|variable| &variable.value) {
        Some(VariableValue::Set(Value::Text(text))) => Some(text.clone()),
        Some(_) => None,
        None => world.variable(name).filter(|value| !value.is_empty()).map(Text::from),
    };
    let held = NAMES.map(by_now);
    for (index, name) in NAMES.into_iter().enumerate() {
        let mut text = held[index].clone().or_else(|| held[1 - index].clone()).unwrap_or_default();
        let listed: Vec<String> = text
            .as_literal()
            .map(|literal| literal.split([',', ' ']).map(|host| host.trim().to_owned()).collect())
            .unwrap_or_default();
        if listed.iter().any(|host| host == "*") {
            continue;
        }
        for host in LOOPBACK.into_iter().filter(|host| !listed.iter().any(|listed| listed == host)) {
            if !text.segments().is_empty() {
                text.push_literal(",");
            }
            text.push_literal(host);
        }
        let value = VariableValue::Set(Value::Text(text));
        let below = env.0.get(name);
        if below.is_none_or(|below| below.value != value) {
            let source = match below {
                Some(below) => format!("{}, and loopback by gymrun", below.source),
                None => "gymrun".into(),
            };
            env.0.insert(name.into(), Variable { value, source, masked: None });
        }
    }
}
