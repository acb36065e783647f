//! `examples/quickstart`, end to end: with gymrun's own collector, with the real otelcol, and with an endpoint that wants a token.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod harness;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use harness::{GOOD, Job, Running, Sink, Telemetry, Watched, component, gymrun, python};
use serde_json::Value;

const JOB: &str = "examples/quickstart/job.lua";
const SERVERS: [&str; 3] = ["agent", "policy_model", "weather"];
const TOKEN: &str = "t0ken-th4t-must-n0t-be-seen";

/// The job. On a loaded machine a request of its servers may take longer than they wait for one by themselves: it is sent
/// again then, and what was taken the first time is there twice.
fn example(test: &str) -> Job {
    Job::example(JOB, test).variable("QUICKSTART_REQUEST_SECONDS", "30")
}

/// One run with gymrun's own collector, which several tests look at.
static EMBEDDED: LazyLock<Option<Watched>> = LazyLock::new(|| python().map(|_| example("quickstart-embedded").watch()));

#[test]
fn it_exits_with_zero_and_leaves_eight_rollouts() {
    let Some(run) = EMBEDDED.as_ref() else { return };
    run.ended.assert_code(0);
    let rollouts = run.directory.json_lines("artifacts/rollouts.jsonl");
    assert_eq!(rollouts.len(), 8);
    assert!(rollouts.iter().all(|rollout| rollout["reward"] == 1.0));
    assert_eq!(run.directory.json("result.json")["class"], "ok");
    for name in SERVERS.into_iter().chain(["driver", "otel_collector"]) {
        assert!(run.directory.path(&format!("logs/{name}.log")).exists(), "no log of {name}");
    }
    // What the driver prints is shown and kept.
    let shown = &run.ended.stdout;
    assert!(shown.contains("8 rollouts, mean reward 1.00"), "{shown}");
    assert!(run.directory.text("logs/driver.log").contains("8 rollouts, mean reward 1.00"));
}

#[test]
fn every_rollout_is_one_trace_over_three_servers() {
    let Some(run) = EMBEDDED.as_ref() else { return };
    check_traces(run);
}

fn check_traces(run: &Watched) {
    let traces = run.directory.telemetry().spans_by_trace();
    let jobs: Vec<_> =
        traces.values().filter(|spans| spans.iter().any(|span| span.producer() == "nemo-gym/orchestrator")).collect();
    assert_eq!(jobs.len(), 1, "gymrun's own trace");
    let job = &jobs[0][0].trace_id;

    let rollouts: Vec<_> = traces.values().filter(|spans| spans.iter().any(|span| span.name == "rollout")).collect();
    assert_eq!(rollouts.len(), 8);
    assert_eq!(traces.len(), 9, "{:?}", traces.keys());
    for spans in rollouts {
        let producers: BTreeSet<_> = spans.iter().map(harness::Span::producer).collect();
        assert_eq!(
            producers,
            BTreeSet::from(["nemo-gym", "nemo-gym/agent", "nemo-gym/policy_model", "nemo-gym/weather"])
        );
        let ids: BTreeSet<_> = spans.iter().map(|span| span.id.as_str()).collect();
        assert_eq!(ids.len(), spans.len());
        let roots: Vec<_> = spans.iter().filter(|span| span.parent.is_empty()).collect();
        assert_eq!(roots.len(), 1);
        assert_eq!(roots[0].links.iter().map(|link| &link.0).collect::<Vec<_>>(), [job], "linked to the job's trace");
        assert!(
            spans.iter().all(|span| span.parent.is_empty() || ids.contains(span.parent.as_str())),
            "a parent is missing"
        );
        for name in
            ["POST /run", "gym.rollout", "POST /seed_session", "POST /get_weather", "POST /verify", "gym.verify"]
        {
            assert!(spans.iter().any(|span| span.name == name), "{name} is missing");
        }
    }
}

#[test]
fn log_records_arrive_with_their_producers() {
    let Some(run) = EMBEDDED.as_ref() else { return };
    let logs = run.directory.telemetry().log_bodies();
    assert_eq!(logs.iter().filter(|(who, body)| who == "nemo-gym/agent" && body.starts_with("rollout for")).count(), 8);
    assert_eq!(logs.iter().filter(|(who, body)| who == "nemo-gym/weather" && body.starts_with("asked for")).count(), 8);
}

#[test]
fn scraped_metrics_keep_their_types_and_lose_their_colons() {
    let Some(run) = EMBEDDED.as_ref() else { return };
    check_scraped(&run.directory.telemetry());
}

fn check_scraped(telemetry: &Telemetry) {
    for (name, kind, monotonic) in [
        ("vllm_num_requests_running", "gauge", false),
        ("vllm_kv_cache_usage_perc", "gauge", false),
        ("vllm_prompt_tokens_total", "sum", true),
        ("vllm_generation_tokens_total", "sum", true),
        ("vllm_request_success_total", "sum", true),
        ("vllm_time_to_first_token_seconds", "histogram", false),
        ("vllm_e2e_request_latency_seconds", "histogram", false),
    ] {
        let metrics = telemetry.metrics_named(name);
        assert!(metrics.len() >= 3, "{name}: {} times in a job of some seconds", metrics.len());
        for metric in metrics {
            assert_eq!((metric.kind, metric.monotonic), (kind, monotonic), "{name}");
            assert_eq!(metric.producer(), "gym-vllm/policy_model");
        }
    }
    assert!(telemetry.metrics().iter().all(|metric| !metric.name.contains(':')));

    // The last scrape is made after the driver has ended, so that it has everything: two answers of the model for each of eight rollouts.
    let last = of_model(telemetry, "vllm_e2e_request_latency_seconds").into_iter().max_by_key(time).unwrap();
    assert_eq!(last["count"], "16");
    let up = of_model(telemetry, "up").into_iter().find(|point| time(point) == time(&last)).unwrap();
    assert_eq!(up["asDouble"], 1.0);
}

/// The points of the metric of that name which the model server's page gave. An otelcol goes on to scrape while the servers stop; what it then writes
/// says that there is no value, and is left out.
fn of_model(telemetry: &Telemetry, name: &str) -> Vec<Value> {
    let metrics =
        telemetry.metrics_named(name).into_iter().filter(|metric| metric.producer() == "gym-vllm/policy_model");
    metrics.flat_map(|metric| metric.points).filter(|point| point["flags"] != 1).collect()
}

fn time(point: &Value) -> u64 {
    point["timeUnixNano"].as_str().unwrap().parse().unwrap()
}

#[test]
fn the_memory_of_each_server_and_of_the_host_is_there() {
    let Some(run) = EMBEDDED.as_ref() else { return };
    check_memory(&run.directory.telemetry(), &run.directory.json("result.json"));
}

fn check_memory(telemetry: &Telemetry, result: &Value) {
    for name in ["gym.server.memory.usage", "gym.server.memory.sampled_peak"] {
        let mut seen = BTreeSet::new();
        for metric in telemetry.metrics_named(name) {
            assert_eq!(
                (metric.kind, metric.unit.as_str(), metric.producer()),
                ("gauge", "By", "nemo-gym/orchestrator")
            );
            for point in metric.points {
                let attributes = harness::attributes(&point["attributes"]);
                assert!(attributes["process.pid"].as_str().unwrap().parse::<u32>().unwrap() > 1);
                let text = |key: &str| attributes[key].as_str().unwrap().to_owned();
                seen.insert((text("nemo.gym.server.name"), text("nemo.gym.server.type"), text("memory.type")));
            }
        }
        let types = [
            ("agent", "responses_api_agents"),
            ("policy_model", "responses_api_models"),
            ("weather", "resources_servers"),
        ];
        let expected = types
            .iter()
            .flat_map(|(name, kind)| ["pss", "rss"].map(|memory| ((*name).into(), (*kind).into(), memory.into())));
        assert_eq!(seen, expected.collect(), "{name}");
    }
    for name in
        ["gym.host.memory.usage", "gym.host.memory.available", "gym.host.memory.total", "gym.host.memory.sampled_peak"]
    {
        let metrics = telemetry.metrics_named(name);
        assert!(!metrics.is_empty(), "{name} is missing");
        assert!(metrics.iter().all(|metric| metric.kind == "gauge" && metric.unit == "By"), "{name}");
    }
    for (name, key) in [("usage", "used"), ("sampled_peak", "peak"), ("limit", "limit")] {
        let metrics = telemetry.metrics_named(&format!("gym.cgroup.memory.{name}"));
        assert_eq!(metrics.is_empty(), result["cgroup_memory"][key].is_null(), "{name}: {result}");
        assert!(metrics.iter().all(|metric| metric.kind == "gauge" && metric.unit == "By"), "{name}");
    }
    let processes = telemetry.metrics_named("gym.server.processes");
    assert!(!processes.is_empty() && processes.iter().all(|metric| metric.unit == "{process}"));
    assert!(!telemetry.metrics_named("gym.servers.active").is_empty());
}

#[test]
fn every_resource_says_whose_it_is() {
    let Some(run) = EMBEDDED.as_ref() else { return };
    let telemetry = run.directory.telemetry();
    check_identity(&telemetry.without(OWN_PRODUCER));
    // What the collector says about itself at the end is stamped like the rest.
    let own: Vec<_> =
        telemetry.resources().into_iter().filter(|(_, r)| r["service.name.override"] == OWN_PRODUCER).collect();
    assert_eq!(own.len(), 1);
    for (key, value) in [("run_id", "j1"), ("benchmark", "quickstart"), ("service.name", "nemo-gym")] {
        assert_eq!(own[0].1.get(key), Some(&Value::from(value)), "{key}");
    }
    let received = telemetry.metrics_named("gym.collector.received");
    assert!(received.iter().any(|metric| !metric.points.is_empty()), "{received:?}");
}

/// The report of gymrun's own collector, which an otelcol does not have.
const OWN_PRODUCER: &str = "nemo-gym/collector";

fn check_identity(telemetry: &Telemetry) {
    let mut signals = BTreeSet::new();
    let mut producers = BTreeSet::new();
    for (signal, resource) in telemetry.resources() {
        signals.insert(signal);
        for (key, value) in
            [("run_id", "j1"), ("benchmark", "quickstart"), ("cluster", "local"), ("service.name", "nemo-gym")]
        {
            assert_eq!(resource.get(key), Some(&Value::from(value)), "{signal}: {key} of {resource:?}");
        }
        assert!(resource.get("user").and_then(Value::as_str).is_some_and(|user| !user.is_empty()));
        let producer = resource.get("service.name.override").and_then(Value::as_str).unwrap_or_default();
        assert!(!producer.is_empty(), "{signal}: {resource:?}");
        producers.insert(producer.to_owned());
    }
    assert_eq!(signals, BTreeSet::from(["logs", "metrics", "traces"]));
    let expected = [
        "nemo-gym",
        "nemo-gym/agent",
        "nemo-gym/policy_model",
        "nemo-gym/weather",
        "nemo-gym/orchestrator",
        "gym-vllm/policy_model",
    ];
    assert_eq!(producers, expected.map(str::to_owned).into());
}

#[test]
fn spans_become_metrics() {
    let Some(run) = EMBEDDED.as_ref() else { return };
    let telemetry = run.directory.telemetry();
    for (name, kind) in [("traces.span.metrics.calls", "sum"), ("traces.span.metrics.duration", "histogram")] {
        let metrics = telemetry.metrics_named(name);
        assert!(!metrics.is_empty() && metrics.iter().all(|metric| metric.kind == kind), "{name}");
    }
}

#[test]
fn the_collector_reports_that_nothing_was_lost() {
    let Some(run) = EMBEDDED.as_ref() else { return };
    let delivery = run.directory.json("otel/delivery.json");
    let telemetry = run.directory.telemetry();
    assert_eq!(delivery["traces"]["written"], telemetry.spans().len(), "{delivery}");
    for signal in ["traces", "metrics", "logs"] {
        let dropped = delivery[signal]["dropped"].as_object().map_or(0, serde_json::Map::len);
        assert_eq!((dropped, delivery[signal]["rejected"].as_u64()), (0, Some(0)), "{delivery}");
    }
}

#[test]
fn the_yaml_job_is_the_same_plan() {
    let plans = ["examples/quickstart/job.lua", "examples/quickstart/job.yaml"].map(|file| {
        let plan = &["plan", file, "--format", "json", "--output-path", "out", "--job-id", "j1"];
        let ended = Running::start(&mut gymrun(plan)).end();
        ended.assert_code(0);
        let plan: Value = serde_json::from_str(&ended.stdout).unwrap();
        without_places(&plan)
    });
    let [lua, yaml] = plans.map(|plan| serde_json::to_string_pretty(&plan).unwrap());
    let differences: Vec<_> = lua.lines().zip(yaml.lines()).filter(|(lua, yaml)| lua != yaml).collect();
    assert_eq!(lua, yaml, "{differences:#?}");
}

/// A plan without what tells where in the author's file things stand.
fn without_places(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(key, _)| *key != "location")
            .map(|(key, value)| (key.clone(), without_places(value)))
            .collect(),
        Value::Array(list) => list.iter().map(without_places).collect(),
        Value::String(text) => {
            let place = regex::Regex::new(r"job\.(lua|yaml)(:\d+)?").unwrap();
            Value::from(place.replace_all(text, "JOB").into_owned())
        }
        other => other.clone(),
    }
}

#[test]
fn the_real_otelcol_gives_the_same() {
    let (Some(otelcol), Some(ours)) = (component("otelcol", "GYMRUN_TEST_OTELCOL"), EMBEDDED.as_ref()) else { return };
    let theirs = example("quickstart-otelcol").set("otel.binary", otelcol.to_str().unwrap()).watch();
    theirs.ended.assert_code(0);
    assert!(
        theirs.seen_of_job.iter().any(|line| line.starts_with(otelcol.to_str().unwrap())),
        "{:?}",
        theirs.seen_of_job
    );

    check_traces(&theirs);
    let result = theirs.directory.json("result.json");
    let (ours, theirs) = (ours.directory.telemetry().without(OWN_PRODUCER), theirs.directory.telemetry());
    check_scraped(&theirs);
    check_memory(&theirs, &result);
    check_identity(&theirs);

    assert_eq!(metric_shapes(&ours), metric_shapes(&theirs), "metrics: producer, name, unit, type");
    assert_eq!(span_names(&ours), span_names(&theirs), "spans: producer, name");
    assert_eq!(resource_keys(&ours), resource_keys(&theirs), "resources: signal, producer, keys");
    assert_eq!(point_keys(&ours), point_keys(&theirs), "points: metric, keys");
    let bodies = |telemetry: &Telemetry| {
        telemetry.log_bodies().into_iter().filter(|(_, body)| !body.contains("port")).collect::<BTreeSet<_>>()
    };
    assert_eq!(bodies(&ours), bodies(&theirs));
}

fn metric_shapes(telemetry: &Telemetry) -> BTreeSet<(String, String, String, &'static str, bool)> {
    let shape = |metric: harness::Metric| {
        (metric.producer().to_owned(), metric.name, metric.unit, metric.kind, metric.monotonic)
    };
    telemetry.metrics().into_iter().map(shape).collect()
}

fn span_names(telemetry: &Telemetry) -> BTreeSet<(String, String)> {
    telemetry.spans().into_iter().map(|span| (span.producer().to_owned(), span.name)).collect()
}

fn resource_keys(telemetry: &Telemetry) -> BTreeSet<(&'static str, String, Vec<String>)> {
    let keys = |(signal, resource): (&'static str, BTreeMap<String, Value>)| {
        let producer = resource["service.name.override"].as_str().unwrap_or_default().to_owned();
        (signal, producer, resource.into_keys().collect())
    };
    telemetry.resources().into_iter().map(keys).collect()
}

fn point_keys(telemetry: &Telemetry) -> BTreeSet<(String, Vec<String>)> {
    let mut found = BTreeSet::new();
    for metric in telemetry.metrics() {
        for point in &metric.points {
            found.insert((metric.name.clone(), harness::attributes(&point["attributes"]).into_keys().collect()));
        }
    }
    found
}

#[test]
fn the_token_reaches_the_endpoint_and_nothing_else() {
    let Some(_) = python() else { return };
    check_token(example("quickstart-token"));
}

#[test]
fn the_token_reaches_the_endpoint_and_nothing_else_with_otelcol() {
    let (Some(otelcol), Some(_)) = (component("otelcol", "GYMRUN_TEST_OTELCOL"), python()) else { return };
    check_token(example("quickstart-token-otelcol").set("otel.binary", otelcol.to_str().unwrap()));
}

fn check_token(job: Job) {
    let sink = Sink::start_alone(vec![GOOD]);
    let run = job
        .set("otel.endpoint", &sink.url())
        .set("otel.service_name", "evals")
        .set("otel.token_env", "QUICKSTART_TOKEN")
        .variable("QUICKSTART_TOKEN", TOKEN)
        .watch();
    run.ended.assert_code(0);

    let seen = sink.seen();
    let paths: BTreeSet<_> = seen.iter().map(|request| request.path.as_str()).collect();
    assert_eq!(paths, ["/v1/logs", "/v1/metrics", "/v1/traces"].into());
    assert!(seen.iter().all(|request| request.header("authorization") == Some(&format!("Bearer {TOKEN}"))));
    let resources: Vec<_> = seen.iter().flat_map(harness::Seen::resource_attributes).collect();
    assert!(!resources.is_empty());
    for resource in resources {
        for (key, value) in [("Authorization", TOKEN), ("service.name", "evals"), ("run_id", "j1")] {
            assert!(resource.contains(&(key.to_owned(), value.to_owned())), "{key} is not in {resource:?}");
        }
    }

    assert_eq!(run.directory.files_with(TOKEN), Vec::<std::path::PathBuf>::new());
    assert!(run.seen.iter().all(|line| !line.contains(TOKEN)), "in an argv");
    assert!(!run.ended.stdout.contains(TOKEN));
    assert!(!run.ended.stderr.contains(TOKEN));
}

#[test]
fn no_plan_has_the_token() {
    for more in [
        &["--format", "text"][..],
        &["--format", "json"],
        &["--format", "yaml"],
        &["--show", "collector"],
        &["--show", "environment"],
    ] {
        let mut command = gymrun(&[
            "plan",
            JOB,
            "--set",
            "otel.endpoint=http://127.0.0.1:9",
            "--set",
            "otel.token_env=QUICKSTART_TOKEN",
        ]);
        command.args(["--set", "otel.service_name=evals"]).args(more).env("QUICKSTART_TOKEN", TOKEN);
        let ended = Running::start(&mut command).end();
        ended.assert_code(0);
        assert!(!ended.stdout.contains(TOKEN), "{more:?}");
        assert!(!ended.stderr.contains(TOKEN), "{more:?}");
    }
}
