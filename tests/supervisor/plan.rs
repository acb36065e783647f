//! Plans for tests, from the keys of a job file.

use std::path::Path;

use gymrun::plan::{
    CollectorPlan, Exhausted, Kind, Liveness, LogMode, MemoryPlan, MemoryScope, OnExit, Plan, PortChoice, PortPolicy,
    Probe, ProbeKind, Question, Readiness, Reference, RestartPolicy, Rotation, Stdin, StopPolicy, StopSignal,
    TelemetryPlan, Text, Tree, Unit, Value as PlanValue, Variable, VariableValue,
};
use serde_json::Value;

/// The plan that a compiled job would be.
pub fn plan(job: &Value, dir: &Path) -> Plan {
    let mut units = Vec::new();
    let collector = job["otel"].as_object().map(|_| collector(&job["otel"]));
    for (group, kind) in [("services", Kind::Service), ("servers", Kind::Server)] {
        let members = job[group].as_object().cloned().unwrap_or_default();
        units.extend(members.iter().map(|(name, value)| unit(name, kind, value, dir)));
    }
    // Start order, as a compiled plan has it.
    let mut ordered: Vec<Unit> = Vec::new();
    if collector.is_some() {
        let mut unit = unit("otel_collector", Kind::Collector, &job["otel"], dir);
        unit.port = None;
        unit.ports.insert("health".into(), PortChoice::Range(13_133, 13_233));
        ordered.push(unit);
    }
    while !units.is_empty() {
        let able = units.iter().position(|u: &Unit| u.depends_on.iter().all(|d| ordered.iter().any(|o| o.name == *d)));
        ordered.push(units.remove(able.expect("no circle")));
    }
    if job["driver"].is_object() {
        ordered.push(unit("driver", Kind::Driver, &job["driver"], dir));
    }
    Plan {
        name: "test".into(),
        job_id: job["job_id"].as_str().expect("an id").to_owned(),
        user: "tester".into(),
        cluster: "local".into(),
        job_file: "job.json".into(),
        site: Vec::new(),
        output_path: dir.display().to_string(),
        job_dir: dir.display().to_string(),
        time_limit_seconds: job["time_limit_seconds"].as_f64(),
        ports: PortPolicy { auto: auto_ports(job), avoid: Vec::new() },
        collector,
        telemetry: TelemetryPlan {
            enabled: false,
            service_group: "nemo-gym".into(),
            run_id: "run".into(),
            traces_enabled: true,
            metrics_enabled: true,
            endpoint: None,
            memory: MemoryPlan {
                enabled: job["pss"].as_bool().unwrap_or_default(),
                interval_seconds: job["interval_seconds"].as_f64().unwrap_or(0.1),
                pss_interval_seconds: job["pss_interval_seconds"].as_f64().unwrap_or(0.1),
                pss_rss_change: job["pss_rss_change"].as_f64().unwrap_or(0.2),
                include: vec![MemoryScope::Servers, MemoryScope::Services],
            },
        },
        attributes: Default::default(),
        scrape: Vec::new(),
        files: Vec::new(),
        units: ordered,
        warnings: Vec::new(),
    }
}

fn auto_ports(job: &Value) -> (u16, u16) {
    let end = |index: usize| job["auto_ports"][index].as_u64().and_then(|n| u16::try_from(n).ok());
    (end(0).unwrap_or(21_000), end(1).unwrap_or(29_999))
}

fn health() -> Text {
    Text::reference(Reference::Port { process: "otel_collector".into(), key: Some("health".into()) })
}

fn collector(otel: &Value) -> CollectorPlan {
    let mut own_metrics = Text::literal("127.0.0.1:");
    own_metrics.push(&health());
    let embedded = otel["embedded"].as_bool().unwrap_or(true);
    let receivers = Tree::Map([("prometheus".to_owned(), Tree::Null)].into_iter().collect());
    CollectorPlan {
        embedded,
        required: otel["required"].as_bool().unwrap_or_default(),
        endpoint: None,
        scrape_interval_seconds: 1.0,
        final_scrape_grace_seconds: otel["final_scrape_grace_seconds"].as_f64().unwrap_or(20.0),
        shutdown_wait_seconds: otel["shutdown_wait_seconds"].as_f64().unwrap_or(30.0),
        own_metrics: (!embedded).then_some(own_metrics),
        config: Tree::Map([("receivers".to_owned(), receivers)].into_iter().collect()),
    }
}

/// `${port:NAME}` and `${url:NAME}`; `self` is the unit.
fn text(text: &str, own: &str) -> Text {
    let mut out = Text::default();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (inner, tail) = after.split_once('}').expect("a closing brace");
        let (kind, name) = inner.split_once(':').expect("kind and name");
        let process = name.strip_prefix("self").map_or_else(|| name.to_owned(), |key| format!("{own}{key}"));
        out.push_literal(before);
        out.push_reference(match kind {
            "port" => match process.split_once('.') {
                Some((process, key)) => Reference::Port { process: process.into(), key: Some(key.into()) },
                None => Reference::Port { process, key: None },
            },
            "url" => Reference::Url { process },
            "secret" => Reference::Secret { name: process, default: None },
            _ => panic!("no such reference: {inner}"),
        });
        rest = tail;
    }
    out.push_literal(rest);
    out
}

fn texts(value: &Value, own: &str) -> Vec<Text> {
    value.as_array().into_iter().flatten().map(|word| text(word.as_str().expect("text"), own)).collect()
}

fn unit(name: &str, kind: Kind, job: &Value, dir: &Path) -> Unit {
    let string = |key: &str| job[key].as_str();
    let probed = job["health_check"].as_object().map(|_| &job["health_check"]);
    let port = match &job["port"] {
        Value::Number(number) => {
            Some(PortChoice::Fixed(number.as_u64().and_then(|n| u16::try_from(n).ok()).expect("a port")))
        }
        Value::String(text) => Some(match text.split_once('-') {
            Some((low, high)) => PortChoice::Range(low.parse().expect("a port"), high.parse().expect("a port")),
            None => PortChoice::Auto,
        }),
        _ => None,
    };
    let env = job["env"].as_object().cloned().unwrap_or_default();
    Unit {
        name: name.to_owned(),
        kind,
        type_name: string("type").unwrap_or("command").to_owned(),
        location: gymrun::diag::Location::new("job.json", 1),
        argv: texts(&job["command"], name),
        cwd: string("cwd").map_or_else(|| dir.display().to_string(), str::to_owned),
        env: env
            .iter()
            .map(|(key, value)| {
                let value =
                    value.as_str().map_or(VariableValue::Unset, |v| VariableValue::Set(PlanValue::Text(text(v, name))));
                (key.clone(), Variable { value, source: "test".into(), masked: None })
            })
            .collect(),
        port,
        ports: Default::default(),
        depends_on: job["depends_on"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|d| d.as_str().map(str::to_owned))
            .collect(),
        readiness: match (probed, string("type")) {
            (Some(probe), _) => Readiness::Probe(self::probe(probe, name, port)),
            (None, Some("task")) => Readiness::Exited { timeout_seconds: None },
            (None, _) => Readiness::Started,
        },
        liveness: job.get("liveness").map(|liveness| Liveness {
            question: question(liveness, name, port),
            interval_seconds: liveness["interval_seconds"].as_f64().unwrap_or(0.05),
            failure_threshold: 2,
        }),
        on_exit: on_exit(job),
        stop: StopPolicy {
            signal: StopSignal::parse(string("stop_signal").unwrap_or("TERM")).expect("a signal"),
            grace_seconds: job["grace_seconds"].as_f64().unwrap_or(10.0),
        },
        log: match (string("log"), kind) {
            (Some("pipe"), _) | (None, Kind::Driver) => LogMode::Pipe,
            _ => LogMode::File,
        },
        log_rotation: job["log_max_bytes"].as_u64().map(|max_bytes| Rotation {
            max_bytes,
            keep: job["log_keep"].as_u64().map_or(3, |keep| u32::try_from(keep).expect("a small number")),
        }),
        stdin: Stdin::Null,
        model: None,
    }
}

fn on_exit(job: &Value) -> OnExit {
    match job["on_exit"].as_str() {
        Some("ignore") => OnExit::Ignore,
        Some("restart") => {
            let restart = &job["restart"];
            OnExit::Restart(RestartPolicy {
                limit: restart["limit"].as_u64().map_or(5, |limit| u32::try_from(limit).expect("a small number")),
                window_seconds: restart["window_seconds"].as_f64().unwrap_or(300.0),
                backoff_seconds: restart["backoff_seconds"].as_f64().unwrap_or(0.01),
                backoff_max_seconds: restart["backoff_max_seconds"].as_f64().unwrap_or(0.1),
                also_dependants: restart["also_dependants"].as_bool().unwrap_or(false),
                exhausted: if restart["exhausted"] == "ignore" { Exhausted::Ignore } else { Exhausted::Stop },
            })
        }
        _ => OnExit::Stop,
    }
}

fn probe(probe: &Value, own: &str, port: Option<PortChoice>) -> Probe {
    Probe {
        question: question(probe, own, port),
        timeout_seconds: probe["timeout_seconds"].as_f64().unwrap_or(120.0),
        interval_seconds: probe["interval_seconds"].as_f64(),
    }
}

fn question(probe: &Value, own: &str, port: Option<PortChoice>) -> Question {
    let kind = match probe["type"].as_str().unwrap_or("http") {
        "tcp" => ProbeKind::Tcp,
        "exec" => ProbeKind::Exec { command: texts(&probe["command"], own) },
        _ => ProbeKind::Http {
            paths: match probe["path"].as_array() {
                Some(paths) => paths.iter().filter_map(|path| path.as_str().map(str::to_owned)).collect(),
                None => vec![probe["path"].as_str().unwrap_or("/health").to_owned()],
            },
            statuses: vec![if probe["statuses"] == "any" { (100, 599) } else { (200, 299) }],
        },
    };
    let of_host = !matches!(kind, ProbeKind::Exec { .. });
    Question {
        kind,
        host: of_host.then(|| Text::from(probe["host"].as_str().unwrap_or("127.0.0.1"))),
        // As a compiled plan has it: a fixed port is a number.
        port: of_host.then(|| match (own, port) {
            _ if probe["port"].is_string() => text(probe["port"].as_str().expect("text"), own),
            ("otel_collector", _) => health(),
            (_, Some(PortChoice::Fixed(port))) => Text::from(port.to_string()),
            _ => Text::reference(Reference::Port { process: own.to_owned(), key: None }),
        }),
        request_timeout_seconds: probe["request_timeout_seconds"].as_f64().unwrap_or(5.0),
    }
}
