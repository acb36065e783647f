//! Processes as units of the plan.

use indexmap::IndexMap;

use super::spec::{Detail, ProcessSpec, Spec, TargetSpec};
use crate::plan::{
    COLLECTOR, Kind, OnExit, PortChoice, Probe, ProbeKind, Question, Readiness, Reference, ScrapeTarget, Stdin,
    StopPolicy, Text, Tree, Unit, Variable,
};

/// Statuses of a good answer.
const GOOD: (u16, u16) = (200, 299);
/// Seconds that one request of the collector's health check may take.
const REQUEST_SECONDS: f64 = 5.0;

/// A service, a server or the driver.
pub fn unit(spec: &ProcessSpec, argv: Vec<Text>, cwd: String, env: IndexMap<String, Variable>) -> Unit {
    Unit {
        name: spec.name.clone(),
        kind: spec.kind,
        type_name: spec.type_name.clone(),
        location: spec.location.clone(),
        argv,
        cwd,
        env,
        port: spec.port.as_ref().map(|port| port.value),
        ports: spec.ports.iter().map(|(key, port)| (key.clone(), port.value)).collect(),
        depends_on: spec.depends_on.iter().map(|name| name.value.clone()).collect(),
        readiness: spec.readiness.clone(),
        liveness: spec.liveness.clone(),
        on_exit: spec.on_exit,
        stop: spec.stop,
        log: spec.log,
        log_rotation: spec.log_rotation,
        stdin: match &spec.detail {
            Detail::Driver(driver) => driver.stdin,
            _ => Stdin::Null,
        },
        model: spec.model.as_ref().map(|model| model.value.clone()),
    }
}

/// The ports of the collector: its listeners, and for an otelcol its own metrics.
pub fn collector_ports(spec: &Spec) -> IndexMap<String, PortChoice> {
    let ports = &spec.otel.ports;
    let mut all = IndexMap::from([
        ("grpc".to_owned(), ports.grpc),
        ("http".to_owned(), ports.http),
        ("health".to_owned(), ports.health),
    ]);
    if spec.otel.binary.is_some() {
        all.insert("metrics".into(), PortChoice::Auto);
    }
    all
}

/// `127.0.0.1:${port:otel_collector.KEY}`.
pub fn collector_address(key: &str) -> Text {
    let mut text = Text::literal("127.0.0.1:");
    text.push_reference(Reference::Port { process: COLLECTOR.into(), key: Some(key.into()) });
    text
}

/// The collector. Its death is a warning: telemetry does not change the result once it has been healthy.
pub fn collector_unit(spec: &Spec, argv: Vec<Text>, cwd: String, env: IndexMap<String, Variable>) -> Unit {
    Unit {
        name: COLLECTOR.into(),
        kind: Kind::Collector,
        type_name: COLLECTOR.into(),
        location: spec.otel.location.clone(),
        argv,
        cwd,
        env,
        port: None,
        ports: collector_ports(spec),
        depends_on: Vec::new(),
        readiness: Readiness::Probe(Probe {
            question: Question {
                kind: ProbeKind::Http { paths: vec!["/".into()], statuses: vec![GOOD] },
                host: Some(Text::reference(Reference::Host { process: COLLECTOR.into() })),
                port: Some(Text::reference(Reference::Port { process: COLLECTOR.into(), key: Some("health".into()) })),
                request_timeout_seconds: REQUEST_SECONDS,
            },
            timeout_seconds: f64::from(u32::try_from(spec.otel.health_check_timeout_seconds).unwrap_or(u32::MAX)),
            interval_seconds: None,
        }),
        liveness: None,
        on_exit: OnExit::Ignore,
        stop: StopPolicy { signal: spec.collector_stop_signal, grace_seconds: spec.otel.shutdown_wait_seconds },
        log: spec.collector_log,
        log_rotation: spec.collector_log_rotation,
        stdin: Stdin::Null,
        model: None,
    }
}

/// `text` in which `self` is `process`.
pub fn of(text: &Text, process: &str) -> Text {
    let mut text = text.clone();
    text.change_references(|reference| reference.of(process));
    text
}

/// Every other key of a target, as the plan shows it.
fn rest_of(target: &TargetSpec) -> IndexMap<String, Tree> {
    let text = |text: &String| Tree::Text(Text::literal(text));
    let mut rest = IndexMap::new();
    let mut put = |key: &str, value: Option<Tree>| {
        if let Some(value) = value {
            rest.insert(key.to_owned(), value);
        }
    };
    put("scrape_interval_seconds", target.scrape_interval_seconds.and_then(|s| i64::try_from(s).ok()).map(Tree::Int));
    put("metrics_path", target.metrics_path.as_ref().map(text));
    put("scheme", target.scheme.as_ref().map(text));
    put("honor_labels", target.honor_labels.map(Tree::Bool));
    put("bearer_env", target.bearer_env.as_ref().map(text));
    let params = target.params.iter().map(|(key, list)| (key.clone(), Tree::List(list.iter().map(text).collect())));
    put("params", (!target.params.is_empty()).then(|| Tree::Map(params.collect())));
    for (key, list) in
        [("relabel_configs", &target.relabel_configs), ("metric_relabel_configs", &target.metric_relabel_configs)]
    {
        put(key, (!list.is_empty()).then(|| Tree::List(list.clone())));
    }
    rest
}

/// A target of the plan.
pub fn scrape_target(target: &TargetSpec) -> ScrapeTarget {
    ScrapeTarget {
        job_name: target.job_name.clone(),
        targets: target.targets.clone(),
        labels: target.labels.clone(),
        rest: rest_of(target),
    }
}
