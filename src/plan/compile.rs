//! From a draft to a plan: every name is looked up, every conflict is found, units stand in start order.
//!
//! Pure. Each check is one function that adds what it finds; all of them run, so that an author sees every problem at once.

use std::collections::BTreeMap;
use std::fmt::Arguments;
use std::sync::Arc;

use indexmap::IndexMap;

use super::checks::{check_secrets, check_sizes, check_variables};
use super::draft::Draft;
use super::job::Plan;
use super::process::{COLLECTOR, DRIVER, Kind, PortChoice, Unit};
use super::text::{Reference, SELF, Segment, Text};
use super::tree::Value;
use crate::diag::{Location, Problem, Problems};

/// The plan of a draft, or everything that is wrong with it.
pub fn compile(draft: Draft) -> Result<Plan, Problems> {
    let Draft { mut plan, paths, environment } = draft;
    let names = Names::of(&plan, paths);
    let mut problems = Problems::new();
    check_names(&plan, &names, &mut problems);
    check_dependencies(&plan, &names, &mut problems);
    check_ports(&plan, &names, &mut problems);
    resolve(&mut plan, &names, &mut problems);
    check_secrets(&plan, &names, &mut problems);
    check_sizes(&plan, &names, &mut problems);
    if let Some(set) = &environment {
        check_variables(&plan, &names, &|name| set.contains(name), &mut problems);
    }
    plan.units = start_order(std::mem::take(&mut plan.units));
    problems.into_result(plan)
}

/// What references may name.
pub(super) struct Names {
    /// Own port and further ports of each unit.
    ports: IndexMap<String, (Option<PortChoice>, IndexMap<String, PortChoice>)>,
    /// The path of keys of each unit.
    paths: IndexMap<String, String>,
}

impl Names {
    fn of(plan: &Plan, paths: IndexMap<String, String>) -> Self {
        Self { ports: plan.units.iter().map(|u| (u.name.clone(), (u.port, u.ports.clone()))).collect(), paths }
    }

    pub(super) fn path<'a>(&'a self, unit: &'a str) -> &'a str {
        self.paths.get(unit).map_or(unit, String::as_str)
    }

    fn known(&self) -> impl Iterator<Item = &str> {
        self.ports.keys().map(String::as_str)
    }

    /// The port that a reference means, or what is wrong with it.
    fn port(&self, process: &str, key: Option<&str>) -> Result<PortChoice, Problem> {
        let Some((own, further)) = self.ports.get(process) else {
            return Err(self.unknown(process));
        };
        match key {
            None => own.ok_or_else(|| {
                Problem::new(format!("`{process}` has no port")).hint(format!("give {} a `port`", self.path(process)))
            }),
            Some(key) => further.get(key).copied().ok_or_else(|| {
                Problem::new(format!("`{process}` has no port `{key}`"))
                    .suggest(key, further.keys().map(String::as_str))
            }),
        }
    }

    fn unknown(&self, process: &str) -> Problem {
        Problem::new(format!("there is no process `{process}`")).suggest(process, self.known())
    }

    /// The fixed port that a reference means, if it is fixed.
    fn fixed(&self, reference: &Reference) -> Option<u16> {
        let Reference::Port { process, key } = reference else { return None };
        match self.port(process, key.as_deref()) {
            Ok(PortChoice::Fixed(port)) => Some(port),
            _ => None,
        }
    }
}

/// One name, one process.
fn check_names(plan: &Plan, names: &Names, problems: &mut Problems) {
    let mut seen: BTreeMap<&str, &Unit> = BTreeMap::new();
    for unit in &plan.units {
        if let Some(first) = seen.insert(&unit.name, unit) {
            let message = format!("two processes are called `{}`; the other one is at {}", unit.name, first.location);
            problems.push(Problem::new(message).at(names.path(&unit.name)).in_file(unit.location.clone()));
        }
        if unit.argv.is_empty() {
            problems.push(
                Problem::new("nothing to execute: the command is empty")
                    .at(format!("{}.command", names.path(&unit.name)))
                    .in_file(unit.location.clone()),
            );
        }
    }
}

/// Dependencies exist, are services or servers, and have no circle.
fn check_dependencies(plan: &Plan, names: &Names, problems: &mut Problems) {
    let known: Vec<&str> = plan.units.iter().filter(|u| u.kind.in_middle()).map(|u| u.name.as_str()).collect();
    for unit in &plan.units {
        for (index, dependency) in unit.depends_on.iter().enumerate() {
            if known.contains(&dependency.as_str()) && *dependency != unit.name {
                continue;
            }
            let problem = if *dependency == unit.name {
                Problem::new(format!("`{}` depends on itself", unit.name))
            } else if dependency == COLLECTOR || dependency == DRIVER {
                Problem::new(format!("nothing can depend on `{dependency}`"))
            } else {
                let others = known.iter().copied().filter(|name| *name != unit.name);
                Problem::new(format!("depends on unknown `{dependency}`")).suggest(dependency, others)
            };
            let path = format!("{}.depends_on[{}]", names.path(&unit.name), index + 1);
            problems.push(problem.at(path).in_file(unit.location.clone()));
        }
    }
    for circle in circles(&plan.units) {
        let unit = plan.unit(&circle[0]);
        let next = circle.get(1).unwrap_or(&circle[0]);
        let index = unit.and_then(|unit| unit.depends_on.iter().position(|name| name == next)).unwrap_or_default();
        let mut shown = circle.clone();
        shown.push(circle[0].clone());
        problems.push(
            Problem::new(format!("circular dependency: {}", shown.join(" -> ")))
                .at(format!("{}.depends_on[{}]", names.path(&circle[0]), index + 1))
                .in_file(unit.map(|u| u.location.clone()).unwrap_or_default()),
        );
    }
}

/// Each circle of dependencies once, beginning with its first unit in the author's order.
fn circles(units: &[Unit]) -> Vec<Vec<String>> {
    let by_name: BTreeMap<&str, &Unit> = units.iter().map(|u| (u.name.as_str(), u)).collect();
    let mut done: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for unit in units {
        let mut open: Vec<(&Unit, usize)> = vec![(unit, 0)];
        while let Some((current, next)) = open.pop() {
            if done.contains(&current.name.as_str()) {
                continue;
            }
            let Some(dependency) = current.depends_on.get(next) else {
                done.push(&current.name);
                continue;
            };
            open.push((current, next + 1));
            if *dependency == current.name {
                continue;
            }
            if let Some(at) = open.iter().position(|(u, _)| u.name == *dependency) {
                found.push(open[at..].iter().map(|(u, _)| u.name.clone()).collect());
            } else if let Some(below) = by_name.get(dependency.as_str()) {
                open.push((below, 0));
            }
        }
    }
    found
}

/// No two listeners have one fixed port.
fn check_ports(plan: &Plan, names: &Names, problems: &mut Problems) {
    let mut holders: BTreeMap<u16, (String, Location)> = BTreeMap::new();
    for unit in &plan.units {
        let own = unit.port.map(|port| ("port".to_owned(), port));
        let further = unit.ports.iter().map(|(key, port)| (format!("ports.{key}"), *port));
        for (key, port) in own.into_iter().chain(further) {
            let PortChoice::Fixed(number) = port else { continue };
            let path = format!("{}.{key}", names.path(&unit.name));
            if let Some((other, place)) = holders.get(&number) {
                let place = if place.is_unknown() { String::new() } else { format!(" ({place})") };
                problems.push(
                    Problem::new(format!("port {number} is also asked for by `{other}`{place}"))
                        .at(path)
                        .in_file(unit.location.clone())
                        .hint("give one of them another port, or `auto`"),
                );
            } else {
                holders.insert(number, (path, unit.location.clone()));
            }
        }
    }
}

/// Looks every reference up; `self` becomes the process it stands in, a fixed port its number.
fn resolve(plan: &mut Plan, names: &Names, problems: &mut Problems) {
    for unit in &mut plan.units {
        let own = unit.name.clone();
        let place = unit.location.clone();
        unit.change_documents(|tree| {
            tree.change_texts(&mut |text| text.change_references(|reference| reference.of(&own)));
            tree.fix_numbers(&|reference| names.fixed(reference));
        });
        unit.change_texts(|key, text| {
            settle(text, Some(&own), names, format_args!("{}.{key}", names.path(&own)), &place, problems);
        });
    }
    let place = Location::default();
    for (name, value) in &mut plan.attributes {
        value.change_texts(&mut |text| {
            settle(text, None, names, format_args!("attributes.{name}"), &place, problems);
        });
    }
    for target in &mut plan.scrape {
        let path = format!("scrape.{}", target.job_name);
        target.targets.iter_mut().for_each(|text| settle(text, None, names, format_args!("{path}"), &place, problems));
        target.labels.values_mut().for_each(|text| settle(text, None, names, format_args!("{path}"), &place, problems));
    }
    for file in &mut plan.files {
        let (path, place) = (file.path.replacen("files/", "files.", 1), file.location.clone());
        if let Value::Encoded { value, .. } = &mut file.contents {
            Arc::make_mut(value).fix_numbers(&|reference| names.fixed(reference));
        }
        file.contents.change_texts(&mut |text| settle(text, None, names, format_args!("{path}"), &place, problems));
    }
    if let Some(collector) = &mut plan.collector {
        collector.config.fix_numbers(&|reference| names.fixed(reference));
        collector
            .config
            .change_texts(&mut |text| settle(text, None, names, format_args!("collector"), &place, problems));
        if let Some(text) = &mut collector.own_metrics {
            settle(text, None, names, format_args!("collector"), &place, problems);
        }
    }
    if let Some(text) = &mut plan.telemetry.endpoint {
        settle(text, None, names, format_args!("telemetry"), &place, problems);
    }
}

/// Settles one text. `own` is the process it belongs to, if any.
fn settle(
    text: &mut Text,
    own: Option<&str>,
    names: &Names,
    path: Arguments<'_>,
    place: &Location,
    problems: &mut Problems,
) {
    let mut changes = false;
    for reference in text.references() {
        let settled = own.and_then(|own| reference.of(own));
        let reference = settled.as_ref().unwrap_or(reference);
        let found = match (reference, reference.process()) {
            (_, Some(SELF)) => Err(Problem::new("`self` has a meaning inside of a process only")
                .hint("name the process whose port, host or URL is meant")),
            (Reference::Port { process, key }, _) => names.port(process, key.as_deref()).map(drop),
            (Reference::Url { process }, _) => names.port(process, None).map(drop),
            (Reference::Host { process }, _) if !names.ports.contains_key(process) => Err(names.unknown(process)),
            _ => Ok(()),
        };
        if let Err(problem) = found {
            problems.push(problem.at(path.to_string()).in_file(place.clone()));
        }
        changes |= settled.is_some() || names.fixed(reference).is_some();
    }
    if !changes {
        return;
    }
    let mut out = Text::default();
    for segment in text.segments() {
        match segment {
            Segment::Literal(literal) => out.push_literal(literal),
            Segment::Reference(reference) => {
                let reference = own.and_then(|own| reference.of(own)).unwrap_or_else(|| reference.clone());
                match names.fixed(&reference) {
                    Some(port) => out.push_literal(&port.to_string()),
                    None => out.push_reference(reference),
                }
            }
        }
    }
    *text = out;
}

/// The collector, then each unit after those it depends on (else in the author's order), the driver last.
fn start_order(mut units: Vec<Unit>) -> Vec<Unit> {
    let mut ordered: Vec<Unit> = Vec::with_capacity(units.len());
    units.sort_by_key(|unit| match unit.kind {
        Kind::Collector => 0,
        Kind::Service | Kind::Server => 1,
        Kind::Driver => 2,
    });
    while !units.is_empty() {
        let ready = units
            .iter()
            .position(|unit| unit.depends_on.iter().all(|name| ordered.iter().any(|done| done.name == *name)));
        // In a circle nothing is ready; that has been said, and the order does not matter.
        ordered.push(units.remove(ready.unwrap_or(0)));
    }
    ordered
}
