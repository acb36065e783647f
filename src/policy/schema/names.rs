//! What the processes of a job are to each other: names, dependencies, the policy model, GPUs, ports.

use std::collections::BTreeMap;

use super::path::below;
use super::processes::Built;
use super::value::{int, is_off, items};
use crate::diag::{Location, Problem, Problems};
use crate::inputs::{Node, NodeValue};
use crate::plan::{COLLECTOR, DRIVER, PortChoice};
use crate::policy::spec::{Gpus, OtelSpec, Placed, ProcessSpec};

/// One name, one process.
pub fn unique(processes: &[Built], problems: &mut Problems) {
    let mut seen: BTreeMap<&str, &ProcessSpec> = BTreeMap::new();
    for Built { spec, .. } in processes {
        if let Some(first) = seen.insert(&spec.name, spec) {
            problems.push(
                Problem::new(format!("the name `{}` is taken by `{}` ({})", spec.name, first.path, first.location))
                    .at(&spec.path)
                    .in_file(spec.location.clone())
                    .hint("services and servers share one set of names"),
            );
        }
    }
}

/// Dependencies that name nobody, and circles of them.
///
/// `names` are all that the author gave, those of processes that could not be built included.
pub fn dependencies(processes: &[Built], names: &[&str], problems: &mut Problems) {
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Built { spec, node } in processes {
        for (index, dependency) in spec.depends_on.iter().enumerate() {
            let name = dependency.value.as_str();
            if name == spec.name {
                problems.push(
                    Problem::new(format!("circular dependency: {name} -> {name}"))
                        .at(path_of(spec, node, index))
                        .in_file(dependency.location.clone()),
                );
                continue;
            }
            if names.contains(&name) {
                next.entry(&spec.name).or_default().push(name);
                continue;
            }
            let problem = Problem::new(format!("{} `{}` depends on unknown `{name}`", spec.kind, spec.name))
                .at(path_of(spec, node, index))
                .in_file(dependency.location.clone());
            problems.push(match name {
                COLLECTOR => problem.hint("every process waits for the collector anyway"),
                DRIVER => problem.hint("the driver waits for all others, so none can wait for it"),
                _ => problem.suggest(name, names.iter().copied()),
            });
        }
    }
    circles(processes, &next, problems);
}

/// `servers.agent.depends_on[1]`, or the path of its `config` for a peer.
fn path_of(spec: &ProcessSpec, node: &Node, index: usize) -> String {
    let said = super::value::entries(node).and_then(|map| map.get("depends_on")).and_then(items).map_or(0, <[_]>::len);
    if index < said { format!("{}.depends_on[{}]", spec.path, index + 1) } else { below(&spec.path, "config") }
}

/// Each circle once, begun at the process that the author wrote first.
fn circles(processes: &[Built], next: &BTreeMap<&str, Vec<&str>>, problems: &mut Problems) {
    // Those that wait for nobody who is left are in no circle: most jobs are through here.
    let mut left = next.clone();
    loop {
        let waiting: Vec<&str> = left.keys().copied().collect();
        left.retain(|_, names| names.iter().any(|name| waiting.binary_search(name).is_ok()));
        if left.len() == waiting.len() {
            break;
        }
    }
    let mut done: Vec<&str> = Vec::new();
    for Built { spec, .. } in processes.iter().filter(|built| left.contains_key(built.spec.name.as_str())) {
        let start = spec.name.as_str();
        let Some(circle) = circle_from(start, next, &done) else { continue };
        done.extend(&circle);
        let text = circle.iter().copied().chain([start]).collect::<Vec<_>>().join(" -> ");
        let at = spec.depends_on.iter().position(|d| Some(d.value.as_str()) == circle.get(1).copied().or(Some(start)));
        let location = at.map_or_else(|| spec.location.clone(), |at| spec.depends_on[at].location.clone());
        problems.push(
            Problem::new(format!("circular dependency: {text}"))
                .at(at.map_or_else(|| spec.path.clone(), |at| format!("{}.depends_on[{}]", spec.path, at + 1)))
                .in_file(location),
        );
    }
}

/// The way from `start` back to it that needs the fewest steps, past names that are `done`.
fn circle_from<'a>(start: &'a str, next: &BTreeMap<&'a str, Vec<&'a str>>, done: &[&str]) -> Option<Vec<&'a str>> {
    if done.contains(&start) {
        return None;
    }
    let mut ways: Vec<Vec<&str>> = vec![vec![start]];
    let mut seen: Vec<&str> = Vec::new();
    while let Some(way) = (!ways.is_empty()).then(|| ways.remove(0)) {
        let last = way.last().copied().unwrap_or(start);
        for name in next.get(last).into_iter().flatten() {
            if *name == start {
                return Some(way);
            }
            if !seen.contains(name) && !done.contains(name) {
                seen.push(name);
                ways.push(way.iter().copied().chain([*name]).collect());
            }
        }
    }
    None
}

/// `driver.policy_model`, or the only process with a model.
pub fn policy_model(driver: Option<&Node>, processes: &[Built], problems: &mut Problems) -> Option<Placed<String>> {
    let with_model: Vec<&ProcessSpec> =
        processes.iter().map(|built| &built.spec).filter(|spec| spec.model.is_some()).collect();
    let said = driver.and_then(super::value::entries).and_then(|map| map.get("policy_model"));
    let Some(said) = said else {
        return match with_model.as_slice() {
            [only] => Some(Placed { value: only.name.clone(), location: only.location.clone() }),
            _ => None,
        };
    };
    let name = super::value::literal(said)?;
    let wrong = |message: String| Problem::new(message).at("driver.policy_model").in_file(said.location.clone());
    match processes.iter().find(|built| built.spec.name == name) {
        None => {
            let names = with_model.iter().map(|spec| spec.name.as_str());
            problems.push(wrong(format!("there is no process `{name}`")).suggest(name, names));
        }
        Some(built) if built.spec.model.is_none() => {
            problems.push(wrong(format!("`{name}` has no model")).hint(format!("`{}.model`", built.spec.path)));
        }
        Some(_) => {}
    }
    Some(Placed { value: name.to_owned(), location: said.location.clone() })
}

/// Deals out GPUs: lists as they are, no GPU twice; then each number the lowest that nobody has.
pub fn gpus(processes: &mut [Built], problems: &mut Problems) {
    let mut owner: BTreeMap<u32, String> = BTreeMap::new();
    let said = |node: &Node| super::value::entries(node).and_then(|map| map.get("gpus")).cloned();
    for built in processes.iter_mut() {
        let Some(node) = said(&built.node) else { continue };
        if !matches!(node.value, NodeValue::List(_)) {
            if is_off(&node) {
                built.spec.gpus = Gpus::Off;
            }
            continue;
        }
        let mut own = Vec::new();
        for (index, item) in items(&node).unwrap_or_default().iter().enumerate() {
            let Some(gpu) = int(item).and_then(|gpu| u32::try_from(gpu).ok()) else { continue };
            if let Some(other) = owner.insert(gpu, built.spec.name.clone()) {
                problems.push(
                    Problem::new(format!("GPU {gpu} is listed by `{other}` already"))
                        .at(format!("{}.gpus[{}]", built.spec.path, index + 1))
                        .in_file(item.location.clone()),
                );
            }
            own.push(gpu);
        }
        built.spec.gpus = if own.is_empty() { Gpus::Off } else { Gpus::These(own) };
    }
    for built in processes {
        let Some(count) = said(&built.node).and_then(|node| int(&node)) else { continue };
        let mut own = Vec::new();
        let mut gpu = 0;
        while i64::try_from(own.len()).is_ok_and(|dealt| dealt < count.min(1024)) {
            if let std::collections::btree_map::Entry::Vacant(free) = owner.entry(gpu) {
                free.insert(built.spec.name.clone());
                own.push(gpu);
            }
            gpu += 1;
        }
        built.spec.gpus = if own.is_empty() { Gpus::Off } else { Gpus::These(own) };
    }
}

/// No two listeners have one fixed port, the collector's included.
pub fn ports(processes: &[Built], otel: &OtelSpec, problems: &mut Problems) {
    let mut holders: BTreeMap<u16, (String, Location)> = BTreeMap::new();
    if otel.enabled {
        let own = [("grpc", otel.ports.grpc), ("http", otel.ports.http), ("health", otel.ports.health)];
        for (key, port) in own {
            hold(format!("otel.ports.{key}"), port, &otel.location, &mut holders, problems);
        }
    }
    for Built { spec, .. } in processes {
        let own = spec.port.iter().map(|port| ("port".to_owned(), port));
        let further = spec.ports.iter().map(|(key, port)| (format!("ports.{key}"), port));
        for (key, port) in own.chain(further) {
            hold(format!("{}.{key}", spec.path), port.value, &port.location, &mut holders, problems);
        }
    }
}

fn hold(
    path: String,
    port: PortChoice,
    location: &Location,
    holders: &mut BTreeMap<u16, (String, Location)>,
    problems: &mut Problems,
) {
    let PortChoice::Fixed(number) = port else { return };
    if let Some((other, place)) = holders.get(&number) {
        problems.push(
            Problem::new(format!("port {number} is also asked for by `{other}` ({place})"))
                .at(path)
                .in_file(location.clone())
                .hint("give one of them another port, or `auto`"),
        );
    } else {
        holders.insert(number, (path, location.clone()));
    }
}
