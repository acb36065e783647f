//! From layers to a [`Spec`], with everything that is wrong.

use indexmap::IndexMap;

use super::check::table;
use super::fields::Fields;
use super::hooks::{check_targets, take, typed_attributes, typed_targets};
use super::kinds::{Table, TextRule};
use super::logs::{log, settle_keep, stack};
use super::names;
use super::otel::{empty, otel};
use super::path::{Path, below};
use super::process::environment;
use super::processes::{Builder, Built, configuration, server_types};
use super::references::References;
use super::tables::{self, EITHER, JOB, SITE};
use super::telemetry::telemetry;
use super::value::{document, entries, found, int, items, literal, port_range};
use crate::diag::{Location, Problem, Problems};
use crate::inputs::{Layers, Node, NodeValue, World, merge, prune};
use crate::plan::{DRIVER, Kind, LogMode, OUTPUT_PATH, PortPolicy, Rotation, StopSignal};
use crate::policy::spec::{Containers, EnvSpec, FragmentSpec, Placed, Spec};

/// A job that has been checked.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The job typed. Where `problems` has an error, what is wrong in it stands as its default: it is good for finding
    /// more that is wrong, not for running.
    pub spec: Spec,
    /// The layers merged, hooks and removal marks taken out.
    pub merged: Node,
    /// All that is wrong, and warnings.
    pub problems: Problems,
}

/// Checks the layers of a job, merges them, types them. Everything that is wrong is found in one go.
#[must_use]
pub fn check(layers: Layers, job_id: &str, world: &World) -> Checked {
    let mut problems = Problems::new();
    let job_location = layers.job.location.clone();
    let mut fragments = Vec::new();
    let mut merged = empty();
    for mut fragment in layers.fragments {
        let mut hooks = IndexMap::new();
        if let NodeValue::Map(keys) = &mut fragment.node.value {
            hooks = take(keys, &mut problems);
        }
        let node = root(fragment.node, &SITE, "a site fragment", &mut problems);
        fragments.push(FragmentSpec { source: fragment.source, hooks });
        merged = merge(merged, node);
    }
    merged = merge(merged, root(layers.job, &JOB, "a job", &mut problems));
    merged = merge(merged, root(layers.settings, &EITHER, "the command line", &mut problems));
    prune(&mut merged);
    merged.location = job_location;

    // Processes are checked with their defaults below them; the rest as it stands.
    let part = |key: &str| entries(&merged).and_then(|map| map.get(key));
    let (services, servers, driver) = (part("services"), part("servers"), part(DRIVER));
    let mut rest = merged.clone();
    if let NodeValue::Map(map) = &mut rest.value {
        map.retain(|key, _| !["services", "servers", DRIVER].contains(&key.as_str()));
    }
    table(&rest, &EITHER, &Path::Of(""), &mut problems);
    if let Some(scrape) = part("scrape") {
        check_targets(scrape, "scrape", &mut problems);
    }

    let mut builder = Builder {
        defaults: part("process_defaults"),
        server_types: server_types(servers),
        world,
        problems: &mut problems,
    };
    let mut processes = builder.group("services", services, Kind::Service, &tables::SERVICE);
    processes.extend(builder.group("servers", servers, Kind::Server, &tables::SERVER));
    names::unique(&processes, builder.problems);
    let groups = [services, servers].into_iter().flatten().filter_map(entries);
    let all: Vec<&str> = groups.flat_map(IndexMap::keys).map(String::as_str).collect();
    names::dependencies(&processes, &all, builder.problems);
    let driver = driver.and_then(|node| builder.process(DRIVER, DRIVER, node, Kind::Driver, &tables::DRIVER));
    let policy_model = names::policy_model(driver.as_ref().map(|built| &built.node), &processes, &mut problems);
    processes.extend(driver);
    names::gpus(&mut processes, &mut problems);

    let fields = Fields::new(&merged, &EITHER);
    let nothing = Node { value: NodeValue::Map(IndexMap::new()), location: merged.location.clone() };
    let otel = otel(part("otel").unwrap_or(&nothing), world, &mut problems);
    let telemetry = telemetry(part("telemetry").unwrap_or(&nothing), &otel, job_id, world, &mut problems);
    let mut unheard = Problems::new();
    let heard = if otel.enabled { &mut problems } else { &mut unheard };
    let collector = collector_defaults(part("process_defaults"), heard);
    names::ports(&processes, &otel, &mut problems);
    references(&merged, &processes, otel.enabled, world, &mut problems);

    let driver = match processes.last() {
        Some(built) if built.spec.kind == Kind::Driver => processes.pop(),
        _ => None,
    };
    let topmost = fragments.last().map_or_else(|| "local".to_owned(), |fragment| fragment.source.name.clone());
    let spec = Spec {
        name: fields.text("name").unwrap_or_default(),
        location: merged.location.clone(),
        output_path: fields.path("output_path", false, world).unwrap_or_else(|| {
            let default = world.working_directory.join(OUTPUT_PATH);
            default.display().to_string()
        }),
        time_limit_seconds: fields.num("time_limit_seconds"),
        cluster: fields.text("cluster").unwrap_or(topmost),
        containers: match fields.text("containers").as_deref() {
            Some("ignore") => Containers::Ignore,
            Some("refuse") => Containers::Refuse,
            _ => Containers::Use,
        },
        processes: processes.into_iter().map(|built| built.spec).collect(),
        driver: driver.map(|built| built.spec),
        policy_model,
        telemetry,
        otel,
        collector_env: collector.env,
        collector_stop_signal: collector.stop_signal,
        collector_log: collector.log,
        collector_log_rotation: collector.log_rotation,
        attributes: typed_attributes(part("attributes")),
        scrape: part("scrape").map(typed_targets).unwrap_or_default(),
        files: files(&fields),
        gym_config: configuration(part("gym_config")),
        ports: ports(part("ports")),
        stage: fields.items("stage").iter().filter_map(|node| super::fields::path(node, false, world)).collect(),
        fragments,
    };
    Checked { spec, merged, problems }
}

/// The keys of one layer that it may have; what is wrong with the others is said.
fn root(mut node: Node, of: &'static Table, what: &str, problems: &mut Problems) -> Node {
    let wrong = |message: String, location: &Location| Problem::new(message).in_file(location.clone());
    let NodeValue::Map(map) = &mut node.value else {
        let message = match node.value {
            NodeValue::Null => format!("{what} is due, but the file is empty"),
            _ => format!("{what} is due (a mapping), not {}", found(&node)),
        };
        problems.push(wrong(message, &node.location));
        return Node { value: NodeValue::Map(IndexMap::new()), location: node.location };
    };
    map.retain(|key, value| {
        if of.key(key).is_some() {
            return true;
        }
        let problem = wrong("unknown key".into(), &value.location).at(below("", key));
        let belongs = |other: &Table| other.key(key).is_some();
        problems.push(if belongs(&JOB) {
            problem.hint(format!("`{key}` belongs in a job, not in {what}"))
        } else if belongs(&SITE) {
            problem.hint(format!("`{key}` belongs in a site fragment, not in {what}"))
        } else {
            let known = of.keys().filter(|key| !key.later).map(|key| key.name);
            problem.suggest(key, known.collect::<std::collections::BTreeSet<_>>())
        });
        false
    });
    node
}

/// What `process_defaults` says of the collector.
struct CollectorDefaults {
    env: IndexMap<String, EnvSpec>,
    stop_signal: StopSignal,
    log: LogMode,
    log_rotation: Option<Rotation>,
}

fn collector_defaults(defaults: Option<&Node>, problems: &mut Problems) -> CollectorDefaults {
    let mut below = empty();
    for layer in ["all", "collector"] {
        if let Some(node) =
            defaults.and_then(entries).and_then(|map| map.get(layer)).filter(|node| entries(node).is_some())
        {
            below = stack(below, node.clone());
        }
    }
    settle_keep(&mut below, None);
    if let NodeValue::Map(map) = &mut below.value {
        map.retain(|key, _| tables::COLLECTOR_DEFAULTS.key(key).is_some());
    }
    let fields = Fields::new(&below, &tables::COLLECTOR_DEFAULTS);
    let (log, log_rotation) = log(&fields, "process_defaults.collector", LogMode::File, problems);
    CollectorDefaults {
        env: environment(fields.said("env")),
        stop_signal: fields.text("stop_signal").and_then(|name| StopSignal::parse(&name)).unwrap_or(StopSignal::Term),
        log,
        log_rotation,
    }
}

fn files(fields: &Fields<'_>) -> IndexMap<String, Placed<crate::plan::Value>> {
    let rule = TextRule { late: true, secret: false, integers: false, empty: true };
    fields
        .entries("files")
        .filter_map(|(name, node)| {
            Some((name.to_owned(), Placed { value: document(node, rule)?, location: node.location.clone() }))
        })
        .collect()
}

fn ports(node: Option<&Node>) -> PortPolicy {
    let default = empty();
    let fields = Fields::new(node.unwrap_or(&default), &tables::PORTS);
    let auto = fields.get("auto").and_then(|node| literal(&node).and_then(port_range)).unwrap_or((20000, 29999));
    let avoid = fields.said("avoid").and_then(items).unwrap_or_default();
    PortPolicy {
        auto,
        avoid: avoid.iter().filter_map(|item| int(item).and_then(|port| u16::try_from(port).ok())).collect(),
    }
}

/// Every reference in the job, each process's as its own.
fn references(merged: &Node, processes: &[Built], collector: bool, world: &World, problems: &mut Problems) {
    let part = |key: &str| entries(merged).and_then(|map| map.get(key));
    let files = part("files").and_then(entries).map(|map| map.keys().map(String::as_str).collect()).unwrap_or_default();
    let references = References { processes, collector, files, world };
    for built in processes {
        references.check(&built.node, &Path::Of(&built.spec.path), Some(&built.spec), problems);
    }
    for (key, node) in entries(merged).into_iter().flatten() {
        let elsewhere = ["services", "servers", DRIVER, "process_defaults"].contains(&key.as_str());
        // Without a collector nobody reads its headers.
        let unused = key == "otel" && !collector;
        if !elsewhere && !unused && EITHER.key(key).is_some_and(|key| !key.later) {
            references.check(node, &Path::Of(key), None, problems);
        }
    }
}
