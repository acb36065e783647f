//! The collector's configuration and the driver's environment against recorded ones of the reference.

use gymrun::plan::{Plan, Reference, Segment, Text, Tree, Value as PlanValue, VariableValue, escape_for_collector};
use serde_json::{Value, json};

use super::support::{argv, data, folder, unit};

fn plan(case: u32) -> Plan {
    let mut folder = folder(&[
        ("job.lua", &data(&format!("oracle/{case}/job.lua"))),
        ("site-fragments/hall.lua", &data("oracle/hall.lua")),
    ]);
    folder.world.user = "alice".into();
    let folder = folder
        .variable("SLURM_JOB_ID", "4242")
        .variable("OTEL_TOKEN", "s3cr3t")
        .variable("ORACLE_HF", "hf-fixed value");
    let mut request = folder.request("job.lua");
    request.job_id = Some("gym-job-20260101_000000".into());
    gymrun::policy::load(request).unwrap_or_else(|problems| panic!("case {case}:\n{problems}"))
}

/// The document as it is written, but for ports that are not chosen yet.
fn written(tree: &Tree) -> Value {
    match tree {
        Tree::Null => Value::Null,
        Tree::Bool(value) => json!(value),
        Tree::Int(value) => json!(value),
        Tree::Float(value) => json!(value),
        Tree::Text(text) => Value::String(written_text(text)),
        Tree::List(list) => list.iter().map(written).collect(),
        Tree::Map(map) => Value::Object(map.iter().map(|(key, value)| (key.clone(), written(value))).collect()),
    }
}

fn written_text(text: &Text) -> String {
    let segments = text.segments();
    let mut out = String::new();
    for (index, segment) in segments.iter().enumerate() {
        match segment {
            Segment::Literal(literal) => {
                let followed =
                    matches!(segments.get(index + 1), Some(Segment::Reference(Reference::CollectorEnv { .. })));
                out.push_str(&escape_for_collector(literal, followed));
            }
            Segment::Reference(reference) => out.push_str(&reference.to_string()),
        }
    }
    out
}

/// The reference's document with every deliberate difference applied (docs/collector-differences.md).
fn expected(case: u32) -> Value {
    let mut golden: Value = serde_json::from_str(&data(&format!("oracle/{case}/collector.json"))).expect("JSON");
    golden["extensions"]["health_check"]["endpoint"] = json!("127.0.0.1:13133");
    golden["receivers"]["otlp"]["protocols"]["grpc"] =
        json!({"endpoint": "127.0.0.1:4317", "max_recv_msg_size_mib": 20});
    golden["receivers"]["otlp"]["protocols"]["http"]["endpoint"] = json!("127.0.0.1:4318");
    golden["service"]["telemetry"]["metrics"] = json!({"readers": [{"pull": {"exporter": {"prometheus":
        {"host": "127.0.0.1", "port": "${port:otel_collector.metrics}"}}}}]});
    let token = &mut golden["processors"]["resource/managed"]["attributes"][0]["value"];
    assert_eq!(*token, json!("${env:OTEL_TOKEN}"));
    *token = json!("${env:OTEL_TOKEN}${env:GYMRUN_EMPTY:-}");
    golden
}

/// Scrape jobs are a set.
fn sort_scrape_jobs(document: &mut Value) {
    if let Some(Value::Array(jobs)) = document.pointer_mut("/receivers/prometheus/config/scrape_configs") {
        jobs.sort_by_key(|job| job["job_name"].as_str().map(str::to_owned));
    }
}

#[test]
fn collector_documents_are_the_references() {
    for case in [1, 2, 3, 5, 7, 9, 12] {
        let plan = plan(case);
        let mut document = written(&plan.collector.as_ref().expect("a collector").config);
        let mut golden = expected(case);
        sort_scrape_jobs(&mut document);
        sort_scrape_jobs(&mut golden);
        let [ours, theirs] =
            [&document, &golden].map(|json| serde_json::to_string_pretty(&sorted(json)).expect("JSON"));
        assert_eq!(ours, theirs, "case {case}");
    }
    assert!(plan(11).collector.is_none());
}

/// The same with keys in order.
fn sorted(json: &Value) -> Value {
    match json {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| key.as_str());
            Value::Object(entries.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect())
        }
        Value::Array(list) => list.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

#[test]
fn the_driver_gets_what_the_reference_gives_it() {
    for case in [1, 3, 5, 7, 9, 12] {
        let plan = plan(case);
        let golden: Value = serde_json::from_str(&data(&format!("oracle/{case}/driver_env.json"))).expect("JSON");
        for (name, value) in golden.as_object().expect("a map") {
            let ours = match &unit(&plan, "driver").env[name].value {
                VariableValue::Set(PlanValue::Text(text)) => text
                    .resolve(|reference| match reference {
                        Reference::Inherited { name, .. } => Ok(format!("runtime:{name}")),
                        Reference::Secret { name, .. } if name == "ORACLE_HF" => Ok("hf-fixed value".to_owned()),
                        other => Err(other.clone()),
                    })
                    .expect("no other reference"),
                other => panic!("case {case}: {name} is {other:?}"),
            };
            assert_eq!(&ours, value.as_str().expect("text"), "case {case}: {name}");
        }
    }
    for case in [2, 11] {
        let plan = plan(case);
        let telemetry: Vec<&String> = unit(&plan, "driver").env.keys().filter(|name| name.contains("OTEL")).collect();
        assert_eq!(telemetry, ["NEMO_GYM_OTEL_ENABLED"], "case {case}");
    }
}

#[test]
fn vllm_is_called_as_the_reference_calls_it() {
    let serve = |model: &str, rest: &[&str]| -> Vec<String> {
        ["vllm", "serve", model].iter().chain(rest).map(|word| (*word).to_owned()).collect()
    };
    assert_eq!(argv(&plan(1), "policy"), serve("tiny-chat", &["--port", "8000", "--tensor-parallel-size", "1"]));
    let plan_2 = plan(2);
    let trust = ["--port", "8000", "--tensor-parallel-size", "2", "--trust-remote-code"];
    assert_eq!(argv(&plan_2, "policy"), serve("tiny-chat", &trust));
    assert_eq!(argv(&plan_2, "judge"), serve("tiny-judge", &["--port", "8100", "--tensor-parallel-size", "4"]));
    let long = [
        "--port",
        "8000",
        "--tensor-parallel-size",
        "2",
        "--served-model-name",
        "chat/7b",
        "--pipeline-parallel-size",
        "2",
        "--max-model-len",
        "8192",
        "--hf-overrides",
        "{\"architectures\":[\"A B\"]}",
        "--data-parallel-size",
        "2",
    ];
    assert_eq!(argv(&plan(5), "policy"), serve("some-org/chat model-7b", &long));
}

#[test]
fn the_collector_gets_copies_of_what_its_document_names() {
    let plan = plan(1);
    let collector = unit(&plan, "otel_collector");
    for name in ["OTEL_TOKEN", "SLURM_JOB_ID"] {
        assert_eq!(
            collector.env[name].value,
            VariableValue::CollectorCopy { variable: name.into(), default: None },
            "{name}"
        );
    }
    assert_eq!(
        argv(&plan, "otel_collector"),
        ["otelcol-contrib", "--config", "/lustre/out/gym-job-20260101_000000/arith/otel/collector.yaml"]
    );
    assert!(!serde_json::to_string(&plan).expect("JSON").contains("s3cr3t"));
}
