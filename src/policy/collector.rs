//! The collector's part of a draft: its command, its environment, its document.

use mlua::Table;

use super::assemble::{Assembly, sorted};
use super::document;
use super::environment::{Identity, bypass_proxies, identity};
use super::hook_values::{Argv, Attributes, Document, Environment, Targets};
use super::hooks::{HookValue as _, run};
use super::host::host;
use super::spec::{Gpus, Hook};
use super::{tables, units};
use crate::diag::Problems;
use crate::plan::{COLLECTOR, CollectorPlan, Text, Unit, Variable};

impl Assembly<'_> {
    /// What the collector gets before its document is known: itself, and the hook.
    pub(super) fn collector_environment(&mut self, argv: &[Text]) -> Result<Environment, Problems> {
        let process = self.checked(tables::collector(self.lua, COLLECTOR, argv, self.spec))?;
        let ports = units::collector_ports(self.spec);
        let base = Identity {
            name: COLLECTOR,
            job_id: &self.frame.job_id,
            port: None,
            ports: ports.keys().collect(),
            gpus: &Gpus::All,
        };
        let mut env = Environment::default();
        env.lay_over(identity(&base), |_| "gymrun".into());
        Ok(self.environment_hook(&process, env))
    }

    /// Its command before any `launch`.
    pub(super) fn collector_command(&self) -> Result<Vec<Text>, Problems> {
        let embedded = self.spec.otel.binary.is_none();
        let program = self.spec.otel.binary.as_ref().map_or(&self.frame.program, |binary| &binary.value);
        let argv: Table = self.policy("policy.collector", "command", (&self.job, program.as_str(), embedded))?;
        Ok(self.typed::<Argv>(argv)?.0)
    }

    /// Its plan and its unit.
    pub(super) fn collector(
        &mut self,
        attributes: &Attributes,
        targets: &Targets,
        argv: &[Text],
        mut env: Environment,
    ) -> Result<(CollectorPlan, Unit), Problems> {
        let spec = self.spec;
        let embedded = spec.otel.binary.is_none();
        let process = self.checked(tables::collector(self.lua, COLLECTOR, argv, spec))?;
        let arguments = [self.job.clone(), process];
        let argv = run(self.lua, Hook::Launch, &spec.fragments, &arguments, Argv(argv.to_vec()), &mut self.problems).0;
        let (stamped, scraped) = self.checked((|| Ok((attributes.to_lua(self.lua)?, targets.to_lua(self.lua)?)))())?;
        let base: Table = self.policy("policy.collector", "document", (&self.job, stamped, scraped, embedded))?;
        let base = self.typed::<Document>(base)?;
        let job = std::slice::from_ref(&self.job);
        let mut document = run(self.lua, Hook::Collector, &spec.fragments, job, base, &mut self.problems).0;
        let copies = document::settle(&mut document, &mut self.problems);
        for (name, value) in copies {
            let source = "collector.yaml".to_owned();
            env.0.insert(name, Variable { value, source, masked: None });
        }
        bypass_proxies(&mut env, &self.checked(host(self.lua))?.world);
        env.lay_authored(&spec.collector_env);
        let plan = CollectorPlan {
            embedded,
            required: spec.otel.required,
            endpoint: spec.otel.endpoint.as_ref().map(|endpoint| endpoint.value.clone()),
            scrape_interval_seconds: f64::from(u32::try_from(spec.otel.scrape_interval_seconds).unwrap_or(u32::MAX)),
            final_scrape_grace_seconds: spec.otel.final_scrape_grace_seconds,
            shutdown_wait_seconds: spec.otel.shutdown_wait_seconds,
            own_metrics: (!embedded).then(|| units::collector_address("metrics")),
            config: document,
        };
        Ok((plan, units::collector_unit(spec, argv, self.frame.folder.clone(), sorted(env))))
    }
}
