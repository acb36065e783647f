//! From a checked job to a draft: the shipped policy and the fragments' hooks fill in what the author left to them.
//!
//! In the order of docs/api.md section 15: the commands, `attributes`, `scrape`, then per process `environment` and `launch`, then
//! `collector`. One hook runs through all fragments before the next begins.

use indexmap::IndexMap;
use mlua::{FromLuaMulti, IntoLuaMulti, Lua, Table};

use super::environment::{Identity, bypass_proxies, from_policy, identity, telemetry_source};
use super::failure::problem_of;
use super::hook_values::{Argv, Attributes, Environment, Targets};
use super::hooks::{HookValue as _, run};
use super::host::host;
use super::library::SITECUSTOMIZE;
use super::sandbox::policy;
use super::spec::{Detail, Hook, ProcessSpec, Spec, TargetSpec};
use super::tables::{self, JobFacts, policy_model};
use super::units;
use super::vm::collect_if_large;
use crate::diag::{Location, Problem, Problems};
use crate::plan::{
    COLLECTOR, Draft, Encoding, Kind, MemoryPlan, Plan, PlannedFile, Reference, TelemetryPlan, Text, Value, Variable,
    VariableValue,
};

/// Where the compatibility module for nemo-lens lies in the job directory.
const LENS_COMPAT: &str = "files/python/sitecustomize.py";

/// What the draft is made from, besides the job itself.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The job id.
    pub job_id: String,
    /// `<output_path>/<job id>/<name>`.
    pub job_dir: String,
    /// The job file as given.
    pub job_file: String,
    /// The directory of the job file, absolute.
    pub folder: String,
    /// Arguments after `--` on the command line.
    pub driver_arguments: Vec<String>,
    /// What runs `gymrun collector`.
    pub program: String,
}

/// Everything at hand while a draft is made.
pub(super) struct Assembly<'a> {
    pub lua: &'a Lua,
    pub spec: &'a Spec,
    pub frame: &'a Frame,
    pub job: Table,
    /// Each process as hooks see it, with its command before any `launch`.
    pub processes: IndexMap<String, Table>,
    pub problems: Problems,
}

/// Makes the draft of a job. Warnings are added to `problems`, with everything that is wrong.
pub fn assemble(lua: &Lua, spec: &Spec, frame: &Frame, problems: Problems) -> Result<Draft, Problems> {
    let found = |error: mlua::Error| problem_of(lua, &error);
    let facts = JobFacts { job_id: &frame.job_id, job_dir: &frame.job_dir };
    // Nothing of the job may be asked before its commands are known.
    let job = lua.create_table().map_err(found)?;
    let mut assembly = Assembly { lua, spec, frame, job, processes: IndexMap::new(), problems };
    let mut commands = IndexMap::new();
    for process in spec.processes.iter().chain(&spec.driver) {
        let command = assembly.command(process)?;
        let table = tables::process(lua, process, Some(&command.argv)).map_err(found)?;
        assembly.processes.insert(process.name.clone(), table);
        commands.insert(process.name.clone(), command);
    }
    assembly.job = tables::job(lua, spec, &facts, &assembly.processes).map_err(found)?;
    assembly.draft(&commands)
}

/// What a process executes, and where.
pub(super) struct Command {
    pub argv: Vec<Text>,
    pub cwd: String,
}

impl Assembly<'_> {
    fn draft(mut self, commands: &IndexMap<String, Command>) -> Result<Draft, Problems> {
        let attributes = self.attributes()?;
        let targets = self.targets()?;
        let spec = self.spec;
        let mut units = Vec::new();
        let mut paths = IndexMap::from([(COLLECTOR.to_owned(), "otel".to_owned())]);
        let collector_argv = if spec.otel.enabled { self.collector_command()? } else { Vec::new() };
        let collector_env =
            if spec.otel.enabled { self.collector_environment(&collector_argv)? } else { Environment::default() };
        let mut environments = IndexMap::new();
        for process in spec.processes.iter().chain(&spec.driver) {
            environments.insert(process.name.clone(), self.environment(process)?);
        }
        for process in spec.processes.iter().chain(&spec.driver) {
            let command = &commands[&process.name];
            let argv = self.launch(process, command);
            let env = environments.swap_remove(&process.name).unwrap_or_default();
            paths.insert(process.name.clone(), process.path.clone());
            units.push(units::unit(process, argv, command.cwd.clone(), sorted(env)));
        }
        let mut collector = None;
        let mut files = self.files();
        if spec.otel.enabled {
            let (plan, unit) = self.collector(&attributes, &targets, &collector_argv, collector_env)?;
            files.push(PlannedFile {
                path: "otel/collector.yaml".into(),
                mode: 0o600,
                contents: Value::Encoded { encoding: Encoding::Collector, value: plan.config.clone().into() },
                location: Location::default(),
            });
            units.insert(0, unit);
            collector = Some(plan);
        }
        let host = self.checked(host(self.lua))?;
        let world = std::sync::Arc::clone(&host.world);
        drop(host);
        let plan = Plan {
            name: spec.name.clone(),
            job_id: self.frame.job_id.clone(),
            user: world.user.clone(),
            cluster: spec.cluster.clone(),
            job_file: self.frame.job_file.clone(),
            site: spec.fragments.iter().map(|fragment| fragment.source.clone()).collect(),
            output_path: spec.output_path.clone(),
            job_dir: self.frame.job_dir.clone(),
            time_limit_seconds: spec.time_limit_seconds,
            ports: spec.ports.clone(),
            collector,
            telemetry: self.telemetry(),
            attributes: attributes.0,
            scrape: targets.0.iter().map(units::scrape_target).collect(),
            files,
            units,
            warnings: self.problems.iter().filter(|p| p.severity == crate::diag::Severity::Warning).cloned().collect(),
        };
        let environment = world.look_up_secrets.then(|| world.environment.keys().cloned().collect());
        self.problems.into_result(Draft { plan, paths, environment })
    }

    /// An error of Lua as problems.
    pub(super) fn checked<T>(&self, result: mlua::Result<T>) -> Result<T, Problems> {
        result.map_err(|error| problem_of(self.lua, &error))
    }

    /// Calls a function of the shipped policy.
    pub(super) fn policy<R: FromLuaMulti>(
        &self,
        module: &str,
        function: &str,
        arguments: impl IntoLuaMulti,
    ) -> Result<R, Problems> {
        let call =
            || -> mlua::Result<R> { policy(self.lua, module)?.raw_get::<mlua::Function>(function)?.call(arguments) };
        collect_if_large(self.lua);
        self.checked(call())
    }

    fn attributes(&mut self) -> Result<Attributes, Problems> {
        let authored = self.spec.attributes.iter().map(|(key, placed)| (key, &placed.value));
        let authored = self.checked(tables::trees(self.lua, authored))?;
        let base: Table = self.policy("policy.attributes", "attributes", (&self.job, authored))?;
        let base = self.typed::<Attributes>(base)?;
        let fragments = &self.spec.fragments;
        Ok(run(self.lua, Hook::Attributes, fragments, std::slice::from_ref(&self.job), base, &mut self.problems))
    }

    /// A value of the shipped policy, checked as if a hook had given it.
    pub(super) fn typed<T: super::hooks::HookValue>(&self, table: Table) -> Result<T, Problems> {
        let place = Location::file("<built-in>");
        let node = super::convert::to_node(self.lua, &mlua::Value::Table(table), &place, "", false);
        let node = self.checked(node)?;
        let mut problems = self.checked(host(self.lua))?.problems.replace(Problems::new());
        let typed = node.and_then(|node| T::from_node(&node, &mut problems));
        match typed {
            Some(typed) if !problems.any_error() => Ok(typed),
            _ => Err(problems),
        }
    }

    fn targets(&mut self) -> Result<Targets, Problems> {
        if !self.spec.otel.enabled {
            return Ok(Targets(Vec::new()));
        }
        let make = || -> mlua::Result<(Table, mlua::Value)> {
            let scraped = self.lua.create_table()?;
            for process in &self.spec.processes {
                let Some(metrics) = &process.metrics else { continue };
                let port = metrics
                    .port
                    .clone()
                    .unwrap_or_else(|| Text::reference(Reference::Port { process: process.name.clone(), key: None }));
                let labels = self.lua.create_table()?;
                for (key, text) in &metrics.labels {
                    labels.raw_set(key.as_str(), super::late::late(self.lua, text.clone())?)?;
                }
                let table = self.lua.create_table()?;
                table.raw_set("port", super::late::late(self.lua, units::of(&port, &process.name))?)?;
                table.raw_set("path", metrics.path.as_str())?;
                table.raw_set("scrape_interval_seconds", metrics.scrape_interval_seconds)?;
                table.raw_set("labels", labels)?;
                let entry = self.lua.create_table()?;
                entry.raw_set("name", process.name.as_str())?;
                entry.raw_set("metrics", table)?;
                scraped.raw_push(entry)?;
            }
            Ok((scraped, Targets(self.spec.scrape.clone()).to_lua(self.lua)?))
        };
        let (scraped, authored) = self.checked(make())?;
        let base: Table = self.policy("policy.scrape", "targets", (&self.job, scraped, authored))?;
        let base = self.typed::<Targets>(base)?;
        let fragments = &self.spec.fragments;
        let mut targets =
            run(self.lua, Hook::Scrape, fragments, std::slice::from_ref(&self.job), base, &mut self.problems);
        targets.0.iter_mut().for_each(place_on_nodes);
        Ok(targets)
    }

    pub(super) fn environment_hook(&mut self, process: &Table, env: Environment) -> Environment {
        let arguments = [self.job.clone(), process.clone()];
        run(self.lua, Hook::Environment, &self.spec.fragments, &arguments, env, &mut self.problems)
    }

    /// All layers of one process's environment.
    fn environment(&mut self, spec: &ProcessSpec) -> Result<Environment, Problems> {
        let process = self.processes[&spec.name].clone();
        let mut env = Environment::default();
        let base = Identity {
            name: &spec.name,
            job_id: &self.frame.job_id,
            port: spec.port.as_ref().map(|port| port.value),
            ports: spec.ports.keys().collect(),
            gpus: &spec.gpus,
        };
        env.lay_over(identity(&base), |_| "gymrun".into());
        let telemetry: Table = self.policy("policy.telemetry_env", "environment", (&self.job, &process))?;
        let telemetry = from_policy(self.lua, telemetry)?;
        env.lay_over(telemetry, |name| telemetry_source(&self.spec.telemetry, name));
        if let Some(gym) = self.gym_environment(spec, &process)? {
            env.lay_over(from_policy(self.lua, gym)?, |_| "gym".into());
        }
        if spec.kind == Kind::Driver {
            let driver = self.driver_environment(spec)?;
            env.lay_over(from_policy(self.lua, driver)?, |_| "driver".into());
            if self.spec.telemetry.enabled.value && self.spec.telemetry.traces_enabled.value {
                let traceparent = VariableValue::Set(Value::Text(Text::reference(Reference::TraceParent)));
                env.lay_over(IndexMap::from([("TRACEPARENT".into(), traceparent)]), |_| "driver".into());
            }
        }
        let mut env = self.environment_hook(&process, env);
        bypass_proxies(&mut env, &self.checked(host(self.lua))?.world);
        env.lay_authored(&spec.env);
        Ok(env)
    }

    fn driver_environment(&self, spec: &ProcessSpec) -> Result<Table, Problems> {
        let make = || -> mlua::Result<(Table, mlua::Value)> {
            let settings = self.lua.create_table()?;
            if let Detail::Driver(driver) = &spec.detail {
                settings.raw_set("policy_host", driver.policy_host.as_deref())?;
            }
            let policy = match policy_model(self.spec).filter(|process| process.port.is_some()) {
                Some(process) => {
                    let table = self.lua.create_table()?;
                    table.raw_set("name", process.name.as_str())?;
                    table.raw_set("model", process.served_model_name.as_deref())?;
                    mlua::Value::Table(table)
                }
                None => mlua::Value::Nil,
            };
            Ok((settings, policy))
        };
        let (settings, policy) = self.checked(make())?;
        self.policy("policy.gym", "driver_environment", (&self.job, settings, policy))
    }

    fn launch(&mut self, spec: &ProcessSpec, command: &Command) -> Vec<Text> {
        let arguments = [self.job.clone(), self.processes[&spec.name].clone()];
        let argv = Argv(command.argv.clone());
        run(self.lua, Hook::Launch, &self.spec.fragments, &arguments, argv, &mut self.problems).0
    }

    fn files(&mut self) -> Vec<PlannedFile> {
        let mut files: Vec<PlannedFile> = self
            .spec
            .files
            .iter()
            .map(|(name, placed)| PlannedFile {
                path: format!("files/{name}"),
                mode: 0o600,
                contents: placed.value.clone(),
                location: placed.location.clone(),
            })
            .collect();
        let telemetry = &self.spec.telemetry;
        if telemetry.enabled.value
            && telemetry.lens_compat
            && self.spec.processes.iter().chain(&self.spec.driver).any(is_gym)
        {
            if let Some(other) = files.iter().find(|file| file.path == LENS_COMPAT) {
                self.problems.push(
                    Problem::new("this file is gymrun's own")
                        .at(format!("files.\"{}\"", LENS_COMPAT.trim_start_matches("files/")))
                        .in_file(other.location.clone())
                        .hint("give it another name, or set `telemetry.lens_compat = false`"),
                );
            }
            files.push(PlannedFile {
                path: LENS_COMPAT.into(),
                mode: 0o600,
                contents: Value::Text(SITECUSTOMIZE.into()),
                location: Location::default(),
            });
        }
        files
    }

    fn telemetry(&self) -> TelemetryPlan {
        let spec = &self.spec.telemetry;
        let enabled = spec.enabled.value;
        let inherited = || {
            let host = host(self.lua).ok()?;
            host.world.variable("OTEL_EXPORTER_OTLP_ENDPOINT").filter(|url| !url.is_empty()).map(Text::from)
        };
        let endpoint = if self.spec.otel.enabled {
            let mut url = Text::literal("http://");
            url.push(&units::collector_address("http"));
            Some(url)
        } else {
            inherited()
        };
        TelemetryPlan {
            enabled,
            service_group: spec.service_name.value.clone(),
            run_id: spec.run_id.value.clone(),
            traces_enabled: spec.traces_enabled.value,
            metrics_enabled: spec.metrics_enabled.value,
            endpoint: endpoint.filter(|_| enabled),
            memory: MemoryPlan {
                enabled: enabled && spec.memory_profiling.enabled.value,
                interval_seconds: spec.memory_profiling.interval_seconds.value,
                pss_interval_seconds: spec.memory_profiling.pss_interval_seconds,
                pss_rss_change: spec.memory_profiling.pss_rss_change,
                include: spec.memory_profiling.include.clone(),
            },
        }
    }
}

/// Whether a process gets what Gym's own programs read.
pub(super) fn is_gym(process: &ProcessSpec) -> bool {
    match &process.detail {
        Detail::Server(_) => true,
        Detail::Driver(driver) => driver.eval.is_some(),
        Detail::Vllm(_) | Detail::Plain => false,
    }
}

/// A port on nodes becomes addresses; on one machine all of them are this one.
fn place_on_nodes(target: &mut TargetSpec) {
    if let Some(port) = target.port.take() {
        target.targets = vec![Text::literal(format!("localhost:{port}"))];
    }
}

pub(super) fn sorted(mut env: Environment) -> IndexMap<String, Variable> {
    env.0.sort_keys();
    env.0
}
