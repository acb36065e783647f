//! What each process executes, and what Gym's own programs read from their environment.

use indexmap::IndexMap;
use mlua::Table;

use super::assemble::{Assembly, Command, is_gym};
use super::hook_values::Argv;
use super::spec::{CommandSpec, Detail, EvalSpec, ProcessSpec, ServerSpec, VllmSpec};
use super::tables::{self, texts};
use crate::diag::{Problem, Problems};
use crate::plan::{Kind, Text, Tree};

impl Assembly<'_> {
    /// The command before any `launch`.
    pub(super) fn command(&self, spec: &ProcessSpec) -> Result<Command, Problems> {
        let mut cwd = spec.cwd.clone();
        let mut argv = match &spec.command {
            CommandSpec::Argv(argv) => argv.clone(),
            CommandSpec::Shell(text) => {
                self.words(self.policy("policy.command", "shell", (text.as_str(), spec.pre_command.as_str()))?)?
            }
            CommandSpec::Own => {
                let (argv, folder) = self.own_command(spec)?;
                cwd = folder.or(cwd);
                argv
            }
        };
        if spec.kind == Kind::Driver {
            argv.extend(self.frame.driver_arguments.iter().map(Text::literal));
        }
        if !spec.pre_command.is_empty() && !matches!(spec.command, CommandSpec::Shell(_)) {
            let words = self.checked(texts(self.lua, &argv))?;
            argv =
                self.words(self.policy("policy.command", "with_pre_command", (spec.pre_command.as_str(), words))?)?;
        }
        Ok(Command { argv, cwd: cwd.unwrap_or_else(|| self.frame.folder.clone()) })
    }

    fn words(&self, table: Table) -> Result<Vec<Text>, Problems> {
        Ok(self.typed::<Argv>(table)?.0)
    }

    fn own_command(&self, spec: &ProcessSpec) -> Result<(Vec<Text>, Option<String>), Problems> {
        let process = self.checked(tables::process(self.lua, spec, None))?;
        match &spec.detail {
            Detail::Vllm(vllm) => {
                let settings = self.checked(self.vllm(spec, vllm))?;
                Ok((self.words(self.policy("policy.vllm", "command", (process, settings))?)?, None))
            }
            Detail::Server(server) => {
                let settings = self.checked(self.server(spec, server))?;
                let (argv, folder) = self.policy("policy.gym", "server_command", (process, settings))?;
                Ok((self.words(argv)?, folder))
            }
            Detail::Driver(driver) if driver.eval.is_some() => {
                if let Some(eval) = &driver.eval {
                    self.check_agent(eval)?;
                }
                let settings = self.checked(self.eval(driver.eval.as_ref()))?;
                Ok((self.words(self.policy("policy.gym", "eval_command", settings)?)?, None))
            }
            Detail::Driver(_) | Detail::Plain => Err(Problem::new("nothing to execute: a `command` is due")
                .at(spec.path.clone())
                .in_file(spec.location.clone())
                .into()),
        }
    }

    /// The agent of `gym.eval` is one of the job's servers.
    fn check_agent(&self, eval: &EvalSpec) -> Result<(), Problem> {
        let servers = || self.spec.processes.iter().filter(|p| p.kind == Kind::Server).map(|p| p.name.as_str());
        let agent = eval.agent.value.as_str();
        if servers().any(|name| name == agent) {
            return Ok(());
        }
        Err(Problem::new(format!("there is no server `{agent}`"))
            .at("driver.agent")
            .in_file(eval.agent.location.clone())
            .suggest(agent, servers()))
    }

    fn vllm(&self, spec: &ProcessSpec, vllm: &VllmSpec) -> mlua::Result<Table> {
        let table = self.lua.create_table_with_capacity(0, 8)?;
        table.raw_set("served_model_name", spec.served_model_name.as_deref())?;
        table.raw_set("tensor_parallel_size", vllm.tensor_parallel_size)?;
        table.raw_set("pipeline_parallel_size", vllm.pipeline_parallel_size)?;
        table.raw_set("number_of_instances", vllm.number_of_instances)?;
        table.raw_set("trust_remote_code", vllm.trust_remote_code)?;
        table.raw_set("extra_args", texts(self.lua, &vllm.extra_args)?)?;
        Ok(table)
    }

    /// A server as the shipped policy sees it.
    fn server(&self, spec: &ProcessSpec, server: &ServerSpec) -> mlua::Result<Table> {
        let table = self.lua.create_table_with_capacity(0, 8)?;
        table.raw_set("name", spec.name.as_str())?;
        table.raw_set("type", server.server_type.name())?;
        table.raw_set("implementation", server.implementation.as_ref().map(|name| name.value.as_str()))?;
        table.raw_set("python", server.python.as_str())?;
        table.raw_set("root", server.root.as_ref().map(|root| root.value.as_str()))?;
        table.raw_set("num_workers", server.num_workers)?;
        let own: IndexMap<String, Tree> = server
            .config
            .iter()
            .map(|(key, tree)| {
                let mut tree = tree.clone();
                // `self` in a server's block is that server, in whoever's environment the document stands.
                tree.change_texts(&mut |text| *text = super::units::of(text, &spec.name));
                (key.clone(), tree)
            })
            .collect();
        table.raw_set("config", tables::trees(self.lua, &own)?)?;
        Ok(table)
    }

    fn eval(&self, eval: Option<&EvalSpec>) -> mlua::Result<Option<Table>> {
        let Some(eval) = eval else { return Ok(None) };
        let table = self.lua.create_table_with_capacity(0, 8)?;
        table.raw_set("agent", eval.agent.value.as_str())?;
        table.raw_set("input", super::late::late(self.lua, eval.input.clone())?)?;
        table.raw_set("output", super::late::late(self.lua, eval.output.clone())?)?;
        table.raw_set("repeats", eval.repeats)?;
        table.raw_set("concurrency", eval.concurrency)?;
        table.raw_set("require_complete", eval.require_complete)?;
        table.raw_set("overrides", tables::trees(self.lua, &eval.overrides)?)?;
        table.raw_set("executable", eval.executable.as_str())?;
        Ok(Some(table))
    }

    /// Variables of Gym's own programs; nothing for any other process.
    pub(super) fn gym_environment(&self, spec: &ProcessSpec, process: &Table) -> Result<Option<Table>, Problems> {
        if !is_gym(spec) {
            return Ok(None);
        }
        let make = || -> mlua::Result<(Table, Table, Option<Table>)> {
            let servers = self.lua.create_table()?;
            for process in &self.spec.processes {
                if let Detail::Server(server) = &process.detail {
                    servers.raw_push(self.server(process, server)?)?;
                }
            }
            let top = tables::trees(self.lua, &self.spec.gym_config)?;
            let eval = match &spec.detail {
                Detail::Driver(driver) => self.eval(driver.eval.as_ref())?,
                _ => None,
            };
            Ok((servers, top, eval))
        };
        let (servers, top, eval) = self.checked(make())?;
        self.policy("policy.gym", "environment", (&self.job, process, servers, top, eval)).map(Some)
    }
}
