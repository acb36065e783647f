//! How one finds out that a process is ready or hangs, and what its end does.

use super::fields::{Fields, late, words};
use super::process::Process;
use super::tables;
use super::value::{entries, items, literal, status};
use crate::diag::{Location, Problems};
use crate::inputs::{Node, NodeValue};
use crate::plan::{
    Exhausted, Kind, Liveness, OnExit, Probe, ProbeKind, Question, Readiness, Reference, RestartPolicy, Text,
};

impl Process<'_> {
    /// When it is ready.
    pub(super) fn readiness(&self, fields: &Fields<'_>, has_port: bool, problems: &mut Problems) -> Readiness {
        let said = fields.said("health_check");
        if self.type_name == "task" && self.kind == Kind::Service {
            let limit = said.and_then(entries).and_then(|map| map.get("timeout_seconds"));
            return Readiness::Exited { timeout_seconds: limit.and_then(super::value::num) };
        }
        let empty = super::otel::empty();
        let node = match said {
            Some(node) if matches!(node.value, NodeValue::Map(_)) => node,
            None if self.by_kind.health.is_some() => &empty,
            _ => return Readiness::Started,
        };
        let check = Fields::new(node, &tables::HEALTH_CHECK);
        let location = said.map_or_else(|| self.node.location.clone(), |said| said.location.clone());
        Readiness::Probe(Probe {
            question: self.question("health_check", &check, location, has_port, problems),
            timeout_seconds: check
                .num("timeout_seconds")
                .unwrap_or_else(|| self.by_kind.health.map_or(60.0, |(_, timeout)| timeout)),
            interval_seconds: check.num("interval_seconds"),
        })
    }

    /// How one finds out that it hangs.
    pub(super) fn liveness(&self, fields: &Fields<'_>, has_port: bool, problems: &mut Problems) -> Option<Liveness> {
        let said = fields.said("liveness").filter(|node| matches!(node.value, NodeValue::Map(_)))?;
        let check = Fields::new(said, &tables::LIVENESS);
        Some(Liveness {
            question: self.question("liveness", &check, said.location.clone(), has_port, problems),
            interval_seconds: check.num("interval_seconds").unwrap_or_default(),
            failure_threshold: check.int("failure_threshold"),
        })
    }

    fn question(
        &self,
        key: &str,
        check: &Fields<'_>,
        location: Location,
        has_port: bool,
        problems: &mut Problems,
    ) -> Question {
        let kind = match check.text("type").as_deref() {
            Some("tcp") => ProbeKind::Tcp,
            Some("exec") => {
                let command = check.said("command").map(words).unwrap_or_default();
                if command.is_empty() {
                    let path = format!("{key}.command");
                    problems.push(self.wrong(&path, location.clone(), "an `exec` check needs a command"));
                }
                ProbeKind::Exec { command }
            }
            Some("grpc") => ProbeKind::Grpc { service: check.text("service").unwrap_or_default() },
            _ => {
                let paths = self.by_kind.health.map_or(&["/health"] as &[&str], |(paths, _)| paths);
                ProbeKind::Http { paths: probe_paths(check, paths), statuses: statuses(check) }
            }
        };
        let is_exec = matches!(kind, ProbeKind::Exec { .. });
        if !is_exec && !has_port && check.said("port").is_none() {
            problems.push(
                self.wrong(key, location, "the check has no port to ask")
                    .hint(format!("give the process a `port`, or `{key}.port`")),
            );
        }
        let own = || "self".to_owned();
        let port = check.said("port").map_or_else(
            || Some(Text::reference(Reference::Port { process: own(), key: None })),
            |node| super::value::int(node).map(|port| Text::literal(port.to_string())).or_else(|| late(node)),
        );
        let host = check.late("host").unwrap_or_else(|| Text::reference(Reference::Host { process: own() }));
        Question {
            kind,
            host: (!is_exec).then_some(host),
            port: if is_exec { None } else { port },
            request_timeout_seconds: check.num("request_timeout_seconds").unwrap_or(5.0),
        }
    }

    /// What its unexpected end does.
    pub(super) fn on_exit(&self, fields: &Fields<'_>, problems: &mut Problems) -> OnExit {
        let word = fields.text("on_exit");
        match (word.as_deref(), fields.said("restart")) {
            (Some("restart"), said) => {
                let empty: Node = super::otel::empty();
                let restart = Fields::new(said.unwrap_or(&empty), &tables::RESTART);
                OnExit::Restart(RestartPolicy {
                    limit: restart.int("limit"),
                    window_seconds: restart.num("window_seconds").unwrap_or_default(),
                    backoff_seconds: restart.num("backoff_seconds").unwrap_or_default(),
                    backoff_max_seconds: restart.num("backoff_max_seconds").unwrap_or_default(),
                    also_dependants: restart.bool("also_dependants"),
                    exhausted: match restart.text("exhausted").as_deref() {
                        Some("ignore") => Exhausted::Ignore,
                        _ => Exhausted::Stop,
                    },
                })
            }
            (word, Some(restart)) => {
                problems.push(
                    self.wrong("restart", restart.location.clone(), "the process is never restarted")
                        .hint("write `on_exit = \"restart\"` too, or leave `restart` out"),
                );
                if word == Some("ignore") { OnExit::Ignore } else { OnExit::Stop }
            }
            (Some("ignore"), None) => OnExit::Ignore,
            _ => OnExit::Stop,
        }
    }
}

fn probe_paths(check: &Fields<'_>, default: &[&str]) -> Vec<String> {
    let said: Option<Vec<String>> = check.said("path").map(|node| match items(node) {
        Some(list) => list.iter().filter_map(|item| literal(item).map(str::to_owned)).collect(),
        None => literal(node).map(str::to_owned).into_iter().collect(),
    });
    let paths = said.filter(|paths| !paths.is_empty());
    let slash = |path: String| if path.starts_with('/') { path } else { format!("/{path}") };
    paths.unwrap_or_else(|| default.iter().map(|path| (*path).to_owned()).collect()).into_iter().map(slash).collect()
}

fn statuses(check: &Fields<'_>) -> Vec<(u16, u16)> {
    match check.said("statuses") {
        None => vec![(200, 299)],
        Some(node) => match items(node) {
            Some(list) if !list.is_empty() => list.iter().filter_map(status).collect(),
            Some(_) => vec![(200, 299)],
            None => vec![(100, 599)],
        },
    }
}
