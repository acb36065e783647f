//! One process: from its merged table to a [`ProcessSpec`].

use indexmap::IndexMap;

use super::check::split_words;
use super::defaults::ByKind;
use super::fields::{Fields, late, path, words};
use super::kinds::{Table, TextRule};
use super::logs::log;
use super::tables;
use super::value::{boolean, document, entries, items, literal};
use crate::diag::{Location, Problem, Problems, is_secret_name};
use crate::inputs::{Node, NodeValue, World};
use crate::plan::{Kind, LogMode, OnExit, PortChoice, StopPolicy, StopSignal, Text};
use crate::policy::spec::{CommandSpec, Detail, EnvSpec, EnvValue, MetricsSpec, Placed, ProcessSpec, VllmSpec};

/// A process before it is typed.
pub struct Process<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is to the job.
    pub kind: Kind,
    /// Its type.
    pub type_name: &'a str,
    /// Its path of keys.
    pub path: &'a str,
    /// Its table, `process_defaults` below it.
    pub node: &'a Node,
    /// The keys that it has.
    pub table: &'static Table,
    /// What its kind brings.
    pub by_kind: ByKind,
}

impl Process<'_> {
    /// The process typed, but for `detail`, which the caller has made, and `gpus` by number, which are dealt out later.
    pub fn spec(&self, detail: Detail, makes_its_own: bool, world: &World, problems: &mut Problems) -> ProcessSpec {
        let fields = Fields::new(self.node, self.table);
        let has = |key: &str| self.table.key(key).is_some();
        let (command, command_location) = self.command(&fields, makes_its_own, problems);
        let port = if has("port") && fields.said("port").is_some() {
            fields.port("port")
        } else {
            self.by_kind.port.map(|value| Placed { value, location: self.node.location.clone() })
        };
        // A port that is wrong has been said to be: it is there all the same.
        let has_port = port.is_some() || fields.said("port").is_some();
        let readiness = self.readiness(&fields, has_port, problems);
        let metrics = self.metrics(&fields, has_port, problems);
        let log_by_kind = if self.kind == Kind::Driver { LogMode::Pipe } else { LogMode::File };
        let (log, log_rotation) = log(&fields, self.path, log_by_kind, problems);
        let model = has("model").then(|| fields.placed("model")).flatten();
        ProcessSpec {
            name: self.name.to_owned(),
            kind: self.kind,
            type_name: self.type_name.to_owned(),
            location: self.node.location.clone(),
            path: self.path.to_owned(),
            command,
            command_location,
            pre_command: fields.text("pre_command").unwrap_or_default(),
            cwd: fields.path("cwd", false, world),
            env: environment(fields.said("env")),
            port,
            ports: fields
                .entries("ports")
                .filter_map(|(key, node)| {
                    Some((key.to_owned(), Placed { value: super::value::port(node)?, location: node.location.clone() }))
                })
                .collect(),
            depends_on: if has("depends_on") { placed_names(fields.items("depends_on")) } else { Vec::new() },
            readiness,
            liveness: if has("liveness") { self.liveness(&fields, has_port, problems) } else { None },
            on_exit: if has("on_exit") { self.on_exit(&fields, problems) } else { OnExit::Stop },
            stop: StopPolicy {
                signal: fields
                    .text("stop_signal")
                    .and_then(|name| StopSignal::parse(&name))
                    .unwrap_or(self.by_kind.stop.signal),
                grace_seconds: fields.num("grace_seconds").unwrap_or(self.by_kind.stop.grace_seconds),
            },
            log,
            log_rotation,
            metrics,
            gpus: crate::policy::spec::Gpus::All,
            served_model_name: if has("served_model_name") {
                fields.text("served_model_name").or_else(|| model.as_ref().map(|model| model.value.clone()))
            } else {
                None
            },
            model,
            detail,
        }
    }

    pub(super) fn wrong(&self, key: &str, location: Location, message: impl Into<String>) -> Problem {
        Problem::new(message).at(format!("{}.{key}", self.path)).in_file(location)
    }

    fn command(&self, fields: &Fields<'_>, makes_its_own: bool, problems: &mut Problems) -> (CommandSpec, Location) {
        let said = |key: &str| self.table.key(key).and_then(|_| fields.said(key));
        match (said("command"), said("shell")) {
            (Some(command), Some(shell)) => {
                problems.push(
                    self.wrong("shell", shell.location.clone(), "`command` and `shell` are both there")
                        .hint("keep one: `command` is argv, `shell` is text for bash"),
                );
                (CommandSpec::Argv(words(command)), command.location.clone())
            }
            (Some(command), None) => {
                let argv = words(command);
                let first_is_empty = argv.first().is_none_or(|word| word.as_literal() == Some(""));
                if first_is_empty && items(command).is_some_and(|items| items.len() == argv.len()) {
                    problems.push(self.wrong("command", command.location.clone(), "the command has no program"));
                }
                (CommandSpec::Argv(argv), command.location.clone())
            }
            (None, Some(shell)) => {
                (CommandSpec::Shell(literal(shell).unwrap_or_default().to_owned()), shell.location.clone())
            }
            (None, None) => {
                if !makes_its_own {
                    let hint = match self.kind {
                        Kind::Server => "`command`, `shell` or `implementation`",
                        Kind::Driver => "`command`, `shell` or gym.eval",
                        _ => "`command`, `shell`, or a `type` that makes its own (`vllm`)",
                    };
                    problems
                        .push(self.wrong("command", self.node.location.clone(), "nothing says what is run").hint(hint));
                }
                (CommandSpec::Own, self.node.location.clone())
            }
        }
    }

    fn metrics(&self, fields: &Fields<'_>, has_port: bool, problems: &mut Problems) -> Option<MetricsSpec> {
        self.table.key("metrics")?;
        let said = fields.said("metrics");
        let empty = super::otel::empty();
        let node = match said {
            Some(node) if matches!(node.value, NodeValue::Map(_)) => node,
            Some(node) if boolean(node) == Some(true) => &empty,
            None if self.by_kind.metrics => &empty,
            _ => return None,
        };
        let metrics = Fields::new(node, &tables::METRICS);
        let port = metrics.said("port").and_then(|node| {
            super::value::int(node).map(|port| Text::literal(port.to_string())).or_else(|| late(node))
        });
        if port.is_none() && !has_port {
            let location = said.map_or_else(|| self.node.location.clone(), |node| node.location.clone());
            problems.push(
                self.wrong("metrics", location, "the process has no port on which its metrics could be")
                    .hint("give it a `port`, or `metrics.port`"),
            );
        }
        Some(MetricsSpec {
            port,
            path: metrics.text("path").unwrap_or_default(),
            scrape_interval_seconds: metrics.maybe_int("scrape_interval_seconds"),
            labels: labels(metrics.entries("labels")),
        })
    }
}

/// Labels, integers as their digits.
pub fn labels<'a>(entries: impl Iterator<Item = (&'a str, &'a Node)>) -> IndexMap<String, Text> {
    entries.filter_map(|(name, node)| Some((name.to_owned(), late(node)?))).collect()
}

/// Names with their places.
pub fn placed_names(items: &[Node]) -> Vec<Placed<String>> {
    items
        .iter()
        .filter_map(|item| Some(Placed { value: literal(item)?.to_owned(), location: item.location.clone() }))
        .collect()
}

/// What may stand in `env`.
const ENV_RULE: TextRule = TextRule { late: true, secret: true, integers: true, empty: true };

/// The variables of an `env` table, or of the hook `environment`.
pub fn environment(node: Option<&Node>) -> IndexMap<String, EnvSpec> {
    let entries = node.and_then(entries).into_iter().flatten();
    entries
        .filter_map(|(name, node)| {
            // In `env` every plain scalar of YAML is text: only a boolean proper (`!off`, Lua's false) takes away.
            let value = match &node.value {
                NodeValue::Bool(false) => EnvValue::Unset,
                _ => EnvValue::Set(document(node, ENV_RULE)?),
            };
            let mut has_secret = false;
            if let EnvValue::Set(value) = &value {
                value.visit_texts(&mut |text| has_secret |= text.has_secret());
            }
            let masked = value != EnvValue::Unset && (has_secret || is_secret_name(name));
            Some((name.clone(), EnvSpec { value, masked, location: node.location.clone() }))
        })
        .collect()
}

/// What a vLLM needs to know.
pub fn vllm(node: &Node, world: &World) -> VllmSpec {
    let fields = Fields::new(node, tables::SERVICE.table("vllm").unwrap_or(tables::ALL[0]));
    let executable = fields.said("executable").map(|node| match items(node) {
        Some(list) => {
            let first = list.first().and_then(|item| path(item, true, world));
            let rest = list.iter().skip(1).filter_map(|item| literal(item).map(str::to_owned));
            first.into_iter().chain(rest).collect()
        }
        None => path(node, true, world).into_iter().collect::<Vec<_>>(),
    });
    let extra_args = fields.said("extra_args").map(|node| match items(node) {
        Some(_) => words(node),
        None => {
            split_words(literal(node).unwrap_or_default()).unwrap_or_default().into_iter().map(Text::from).collect()
        }
    });
    VllmSpec {
        executable: executable.filter(|words| !words.is_empty()).unwrap_or_else(|| vec!["vllm".to_owned()]),
        tensor_parallel_size: fields.int("tensor_parallel_size"),
        pipeline_parallel_size: fields.int("pipeline_parallel_size"),
        number_of_instances: fields.int("number_of_instances"),
        trust_remote_code: fields.bool("trust_remote_code"),
        extra_args: extra_args.unwrap_or_default(),
        data_parallel_rpc_port: fields
            .port("data_parallel_rpc_port")
            .map_or(PortChoice::Fixed(13345), |placed| placed.value),
    }
}
