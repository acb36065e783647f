//! `examples/nemo-gym`, end to end, with the real NeMo Gym.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test may panic and print")]

mod harness;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use harness::{Job, Watched, component};

const JOB: &str = "examples/nemo-gym/job.lua";
/// Spans of a rollout with one tool call, with the span groups of this job.
const SPANS: usize = 52;
const SERVERS: [&str; 3] = ["example_single_tool_call", "my_agent", "policy_model"];

/// One run, which several tests look at.
static RUN: LazyLock<Option<Watched>> = LazyLock::new(|| {
    let venv = component("nemo-gym", "GYMRUN_TEST_GYM_VENV")?;
    Some(Job::example(JOB, "nemo-gym").variable("GYM_VENV", venv.to_str().unwrap()).watch())
});

#[test]
fn it_exits_with_zero_and_leaves_all_rollouts() {
    let Some(run) = RUN.as_ref() else { return };
    run.ended.assert_code(0);
    let rollouts = run.directory.json_lines("artifacts/rollouts.jsonl");
    assert_eq!(rollouts.len(), 10, "five tasks, two repeats");
    assert!(rollouts.iter().all(|rollout| rollout["reward"] == 1.0));

    let ready = &run.directory.events("all_ready")[0];
    println!(
        "all ready after {} s; the three servers started by a shell script, without a collector and a policy: 3.3 s",
        ready["after_seconds"]
    );
}

#[test]
fn every_rollout_is_one_whole_trace() {
    let Some(run) = RUN.as_ref() else { return };
    // The compatibility module has each request begin in a context of its own, so this holds on a busy machine too.
    assert_eq!(whole_traces(run), 10, "rollouts with a trace of their own, of ten");
}

/// Checks that all spans of all rollouts are there, and returns how many rollouts have a trace of their own, complete and over all three servers.
fn whole_traces(run: &Watched) -> usize {
    let traces = run.directory.telemetry().spans_by_trace();
    let (jobs, traces): (Vec<_>, Vec<_>) =
        traces.into_values().partition(|spans| spans.iter().any(|span| span.producer() == "nemo-gym/orchestrator"));
    assert_eq!(jobs.len(), 1, "gymrun's own trace");
    assert!(!traces.iter().flatten().any(|span| span.name.starts_with("GET")), "a health poll");

    let (mut spans_of_rollouts, mut rollouts, mut alone) = (0, 0, 0);
    for spans in traces {
        // When all rollouts are done, `gym eval run` asks the agent for their aggregate.
        let spans: Vec<_> = spans.iter().filter(|span| !is_aggregate(span)).collect();
        let count = spans.iter().filter(|span| span.name == "gym.rollout").count();
        let producers: BTreeSet<_> = spans.iter().map(|span| span.producer().to_owned()).collect();
        spans_of_rollouts += spans.len();
        rollouts += count;
        alone += usize::from(
            count == 1 && spans.len() == SPANS && producers == SERVERS.map(|name| format!("nemo-gym/{name}")).into(),
        );
    }
    // The last rollout has as many as the first: none was lost at the stop.
    assert_eq!((rollouts, spans_of_rollouts), (10, 10 * SPANS));
    alone
}

fn is_aggregate(span: &harness::Span) -> bool {
    let url = span.attributes.get("url.full").and_then(serde_json::Value::as_str).unwrap_or_default();
    span.name.contains("/aggregate_metrics") || url.ends_with("/aggregate_metrics")
}

#[test]
fn the_memory_of_each_server_is_there() {
    let Some(run) = RUN.as_ref() else { return };
    let metrics = run.directory.telemetry().metrics_named("gym.server.memory.usage");
    let points =
        metrics.iter().flat_map(|metric| &metric.points).map(|point| harness::attributes(&point["attributes"]));
    let seen: BTreeSet<_> =
        points.map(|attributes| attributes["nemo.gym.server.name"].as_str().unwrap().to_owned()).collect();
    assert!(SERVERS.iter().all(|name| seen.contains(*name)), "{seen:?}");
}

#[test]
fn the_servers_own_metrics_are_there() {
    let Some(run) = RUN.as_ref() else { return };
    let telemetry = run.directory.telemetry();
    for (name, producer) in
        [("gym.rollout.duration_ms", "my_agent"), ("gym.verify.duration_ms", "example_single_tool_call")]
    {
        let metrics = telemetry.metrics_named(name);
        assert!(metrics.iter().any(|metric| metric.producer() == format!("nemo-gym/{producer}")), "{name}");
    }
}

#[test]
fn no_ray_runs() {
    let Some(run) = RUN.as_ref() else { return };
    assert!(run.seen_of_job.iter().any(|line| line.ends_with("app.py")), "{:?}", run.seen_of_job);
    let ray: Vec<_> = run
        .seen_of_job
        .iter()
        .filter(|line| ["raylet", "gcs_server", "ray::"].iter().any(|word| line.contains(word)))
        .collect();
    assert!(ray.is_empty(), "{ray:?}");
}

#[test]
fn the_patched_nemo_lens_is_a_warning_with_a_way_out() {
    let Some(run) = RUN.as_ref() else { return };
    let warnings = run.directory.events("warning");
    let of_lens: Vec<_> =
        warnings.iter().filter(|event| event["message"].as_str().unwrap().contains("nemo-lens")).collect();
    assert!(!of_lens.is_empty(), "{warnings:?}");
    assert!(of_lens.iter().all(|event| event["hint"].is_string()), "{of_lens:?}");
}
