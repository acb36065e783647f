//! Failures while statements run: what is kept, and what the sender sees; over HTTP and gRPC.

use std::fmt::Write as _;

use gymrun::otlp::Signal;
use serde_json::{Value, json};

use super::super::bed::{Case, both};
use super::super::requests::wire;
use super::super::rpc::export;
use super::tables::{in_order, request, send, whole};

/// One processor for each signal, each with its own file.
async fn each_signal(processors: [(&str, Value); 3]) {
    let (mut exporters, mut pipelines) = (String::new(), String::new());
    let mut declared = Vec::new();
    for (signal, (kind, settings)) in Signal::ALL.map(Signal::name).into_iter().zip(processors) {
        declared.push((format!("{kind}/{signal}"), settings.to_string()));
        writeln!(exporters, "  file/{signal}: {{path: $OUT/{signal}.jsonl}}").expect("memory");
        writeln!(
            pipelines,
            "    {signal}: {{receivers: [otlp], processors: [{kind}/{signal}], exporters: [file/{signal}]}}"
        )
        .expect("memory");
    }
    both(Case::new(whole(declared.into_iter(), exporters.trim(), pipelines.trim())), async |side| {
        for signal in Signal::ALL {
            send(side, signal, &request(signal, 2)).await;
            side.call(export(signal), wire(signal, &request(signal, 2)), false).await;
        }
        side.stop().await;
        for signal in Signal::ALL.map(Signal::name) {
            for message in side.messages(&format!("{signal}.jsonl")) {
                side.row(in_order(message));
            }
            side.row(json!({"end of": signal}));
        }
    })
    .await;
}

/// The first statement works, the second fails on some items, the third works again.
fn three(context: &str, list: &str, failing: &str) -> Vec<String> {
    vec![
        format!("set({context}.{list}[\"first\"], 1)"),
        failing.to_owned(),
        format!("set({context}.{list}[\"third\"], 1)"),
    ]
}

const SPAN: &str = r#"set(span.attributes["x"], ParseJSON(span.name))"#;
const POINT: &str = r#"set(datapoint.value_int, "x") where datapoint.attributes["p"] == "y""#;
const LOG: &str = r#"set(log.attributes["x"], log.body["a"])"#;

#[tokio::test]
async fn failing_statements_by_mode() {
    for mode in ["propagate", "ignore", "silent"] {
        let settings = |key: &str, statements| ("transform", json!({"error_mode": mode, key: statements}));
        each_signal([
            settings("trace_statements", three("span", "attributes", SPAN)),
            settings("metric_statements", three("datapoint", "attributes", POINT)),
            settings("log_statements", three("log", "attributes", LOG)),
        ])
        .await;
    }
}

/// The mode of a group, and a group after one that fails.
#[tokio::test]
async fn failing_statements_in_groups() {
    let group = |context: &str, mode: Option<&str>, statements: Value| {
        let mut group = json!({"context": context, "statements": statements});
        if let Some(mode) = mode {
            group["error_mode"] = json!(mode);
        }
        group
    };
    let after = |context: &str| group(context, None, json!([format!("set({context}.attributes[\"after\"], 1)")]));
    each_signal([
        (
            "transform",
            json!({"error_mode": "propagate",
                   "trace_statements": [group("span", Some("ignore"), json!([SPAN])), after("span")]}),
        ),
        (
            "transform",
            json!({"error_mode": "ignore",
                   "metric_statements": [after("datapoint"), group("datapoint", Some("propagate"), json!([POINT]))]}),
        ),
        (
            "transform",
            json!({"error_mode": "propagate", "log_statements": [
                {"context": "log", "error_mode": "silent", "conditions": ["body[\"a\"] == \"b\"", "severity_number == 9"],
                 "statements": ["set(severity_text, \"seen\")"]},
                after("log")]}),
        ),
    ])
    .await;
}

#[tokio::test]
async fn failing_conditions_by_mode() {
    for mode in ["propagate", "ignore", "silent"] {
        let settings = |key: &str, conditions: Value| ("filter", json!({"error_mode": mode, key: conditions}));
        each_signal([
            settings("traces", json!({"span": [r#"attributes["s"]["x"] == 1"#, r#"name == "root""#]})),
            settings("metrics", json!({"datapoint": [r#"attributes["p"]["x"] == 1"#, "count == 0"]})),
            settings("logs", json!({"log_record": [r#"body["a"] == "b""#, "severity_number == 17"]})),
        ])
        .await;
    }
}

/// A group's conditions that fail, and what names its contexts.
#[tokio::test]
async fn failing_conditions_that_name_contexts() {
    each_signal([
        (
            "filter",
            json!({"error_mode": "ignore", "trace_conditions": [
                {"error_mode": "propagate", "conditions": [r#"span.attributes["s"]["x"] == 1"#]}]}),
        ),
        (
            "filter",
            json!({"error_mode": "propagate", "metric_conditions": [
                r#"metric.name == "c""#, r#"datapoint.attributes["p"] == "y""#, r#"resource.attributes["idx"] == 1"#]}),
        ),
        (
            "filter",
            json!({"error_mode": "propagate", "log_conditions": [
                {"context": "log", "error_mode": "silent", "conditions": [r#"body["a"] == "b""#, "true"]}]}),
        ),
    ])
    .await;
}

/// What one pipeline changes, drops or refuses, the others do not see.
#[tokio::test]
async fn pipelines_beside_each_other() {
    let processors = [
        (
            "transform/a",
            json!({"trace_statements": ["set(span.name, \"a\")", "set(resource.attributes[\"a\"], 1)"],
                               "log_statements": ["set(log.body, \"a\")", "set(scope.name, \"a\")"],
                               "metric_statements": ["set(metric.name, \"a\")", "set(datapoint.attributes[\"a\"], 1)"]}),
        ),
        (
            "filter/b",
            json!({"traces": {"span": ["name == \"root\""]}, "logs": {"log_record": ["severity_number == 9"]},
                            "metrics": {"metric": ["name == \"c\""]}}),
        ),
        ("attributes/c", json!({"actions": [{"pattern": ".", "action": "delete"}]})),
        ("resource/d", json!({"attributes": [{"key": "host", "value": "d", "action": "upsert"}]})),
        (
            "transform/e",
            json!({"error_mode": "propagate", "trace_statements": [SPAN], "log_statements": [LOG],
                               "metric_statements": [POINT]}),
        ),
    ];
    let uses = ["", "transform/a", "filter/b", "attributes/c", "resource/d", "transform/a, filter/b, resource/d"];
    for refusing in ["", "transform/e"] {
        let (mut exporters, mut pipelines) = (String::new(), String::new());
        for (number, used) in uses.into_iter().chain(Some(refusing).filter(|used| !used.is_empty())).enumerate() {
            writeln!(exporters, "  file/{number}: {{path: $OUT/{number}.jsonl}}").expect("memory");
            for signal in Signal::ALL.map(Signal::name) {
                writeln!(
                    pipelines,
                    "    {signal}/{number}: {{receivers: [otlp], processors: [{used}], exporters: [file/{number}]}}"
                )
                .expect("memory");
            }
        }
        let declared = processors.iter().map(|(name, settings)| ((*name).to_owned(), settings.to_string()));
        both(Case::new(whole(declared, exporters.trim(), pipelines.trim())), async |side| {
            for signal in Signal::ALL {
                send(side, signal, &request(signal, 1)).await;
            }
            side.stop().await;
            for number in 0..uses.len() {
                side.messages(&format!("{number}.jsonl")).into_iter().for_each(|message| side.row(in_order(message)));
                side.row(json!({"end of": number}));
            }
        })
        .await;
    }
}
