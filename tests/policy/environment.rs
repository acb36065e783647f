//! The environment contract: which variables a process gets, and where each comes from.

use super::support::{folder, plan, unit, variable};

const JOB: &str = r#"
local gym = require "gymrun"
return gym.job {
  name = "x",
  services = { p = gym.vllm { model = "m", port = "auto", ports = { side = "auto" }, gpus = { 0, 2 } }, c = { command = { "c" } } },
  servers = { s = gym.server { type = "resources_servers", command = { "s" } } },
  telemetry = { enabled = true, span_groups = "per_rollout", memory_profiling = { enabled = true, interval_seconds = 0.5 } },
  driver = { policy_model = "p", command = { "d" }, env = { HF_TOKEN = "hf_secret", PLAIN = "a$b ${HOME}", NUMBER = 9464 } },
}
"#;

#[test]
fn every_field_of_the_block_reaches_the_process() {
    let plan = plan(JOB);
    let get = |name: &str| variable(&plan, "s", name).unwrap_or_default();
    for (name, value) in [
        ("NEMO_GYM_OTEL_ENABLED", "1"),
        ("NEMO_GYM_OTEL_SPAN_GROUPS", "per_rollout"),
        ("NEMO_GYM_OTEL_EXPORTER", "otlp"),
        ("NEMO_GYM_OTEL_TRACES_ENABLED", "1"),
        ("NEMO_GYM_OTEL_METRICS_ENABLED", "1"),
        ("NEMO_GYM_OTEL_LOGS_ENABLED", "1"),
        ("NEMO_GYM_OTEL_RUN_ID", "j1"),
        ("NEMO_GYM_OTEL_SERVICE_NAME_PER_SERVER", "1"),
        ("NEMO_GYM_OTEL_MEMORY_PROFILING_ENABLED", "1"),
        ("NEMO_GYM_OTEL_MEMORY_PROFILING_INTERVAL_SECONDS", "0.5"),
        ("NEMO_GYM_OTEL_SANDBOX_RESOURCE_SAMPLE_INTERVAL_SECONDS", "10"),
        ("OTEL_SERVICE_NAME", "nemo-gym"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:${port:otel_collector.http}"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://localhost:${port:otel_collector.grpc}"),
        ("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "grpc"),
        ("GYMRUN_NAME", "s"),
        ("GYMRUN_JOB_ID", "j1"),
        ("GYMRUN_JOB_DIR", "${job:dir}"),
        ("GYMRUN_PORT", "${port:s}"),
        ("PYTHONUNBUFFERED", "1"),
    ] {
        assert_eq!(get(name), value, "{name}");
    }
    let source = |name: &str| unit(&plan, "s").env[name].source.clone();
    assert_eq!(source("NEMO_GYM_OTEL_SPAN_GROUPS"), "telemetry: job.lua:3");
    assert_eq!(source("NEMO_GYM_OTEL_EXPORTER"), "telemetry: default");
    assert_eq!(source("NEMO_GYM_OTEL_LOGS_ENABLED"), "telemetry: otel.gym_logs");
    assert_eq!(source("OTEL_EXPORTER_OTLP_ENDPOINT"), "telemetry");
    assert_eq!(source("NEMO_GYM_CONFIG_DICT"), "gym");
}

#[test]
fn services_report_by_their_own_name() {
    let plan = plan(JOB);
    assert_eq!(variable(&plan, "p", "OTEL_SERVICE_NAME").as_deref(), Some("nemo-gym/p"));
    let attributes = variable(&plan, "p", "OTEL_RESOURCE_ATTRIBUTES").expect("set");
    assert_eq!(
        attributes,
        "nemo.gym.server.name=p,nemo.gym.server.type=service,nemo.gym.service_group=nemo-gym,nemo.run.id=j1"
    );
    assert_eq!(variable(&plan, "driver", "OTEL_SERVICE_NAME").as_deref(), Some("nemo-gym"));
    assert_eq!(variable(&plan, "p", "CUDA_VISIBLE_DEVICES").as_deref(), Some("0,2"));
    assert_eq!(variable(&plan, "p", "GYMRUN_PORT_SIDE").as_deref(), Some("${port:p.side}"));
    assert_eq!(variable(&plan, "c", "GYMRUN_PORT"), None);
    assert_eq!(variable(&plan, "p", "NEMO_GYM_CONFIG_DICT"), None);
}

#[test]
fn resource_attributes_are_encoded_and_added_to_inherited_ones() {
    let folder =
        folder(&[("job.lua", JOB)]).variable("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=dev, nemo.run.id=old");
    let mut request = folder.request("job.lua");
    request.set = vec!["telemetry.service_name=my, gym=ü".into()];
    let plan = gymrun::policy::load(request).unwrap_or_else(|problems| panic!("{problems}"));
    let attributes = variable(&plan, "p", "OTEL_RESOURCE_ATTRIBUTES").expect("set");
    assert!(attributes.starts_with("deployment.environment=dev,nemo.gym.server.name=p"), "{attributes}");
    assert!(attributes.contains("nemo.gym.service_group=my%2C%20gym%3D%C3%BC"), "{attributes}");
    assert!(attributes.ends_with("nemo.run.id=j1"), "{attributes}");
}

#[test]
fn the_driver_is_told_of_the_policy_model() {
    let plan = plan(JOB);
    for (name, value) in [
        ("NEMO_GYM_POLICY_BASE_URL", "${url:p}/v1"),
        ("NEMO_GYM_POLICY_MODEL_NAME", "m"),
        ("NEMO_GYM_POLICY_API_KEY", "dummy"),
        ("NEMO_GYM_BENCH_DIR", "${job:dir}"),
        ("TRACEPARENT", "${traceparent}"),
        ("NUMBER", "9464"),
        ("PLAIN", "a$b $${HOME}"),
        ("HF_TOKEN", "<HF_TOKEN>"),
    ] {
        assert_eq!(variable(&plan, "driver", name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(unit(&plan, "driver").env["HF_TOKEN"].source, "job.lua:3");
    assert!(!serde_json::to_string(&plan).expect("JSON").contains("hf_secret"));
}

#[test]
fn switched_off_nothing_is_injected() {
    let folder = folder(&[("job.lua", JOB)]);
    let mut request = folder.request("job.lua");
    request.set = vec!["telemetry.enabled=false".into()];
    let plan = gymrun::policy::load(request).expect("a plan");
    for name in ["p", "s", "driver"] {
        let otel: Vec<&String> = unit(&plan, name).env.keys().filter(|v| v.contains("OTEL")).collect();
        assert_eq!(otel, ["NEMO_GYM_OTEL_ENABLED"], "{name}");
        assert_eq!(variable(&plan, name, "NEMO_GYM_OTEL_ENABLED").as_deref(), Some("0"));
    }
    assert_eq!(variable(&plan, "driver", "TRACEPARENT"), None);
    assert!(plan.telemetry.endpoint.is_none() && !plan.telemetry.enabled);
}

#[test]
fn without_a_collector_the_inherited_endpoint_stays() {
    let folder = folder(&[("job.lua", JOB)]).variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://gateway:4318");
    let mut request = folder.request("job.lua");
    request.set = vec!["otel.enabled=false".into()];
    let plan = gymrun::policy::load(request).expect("a plan");
    assert_eq!(variable(&plan, "s", "NEMO_GYM_OTEL_ENABLED").as_deref(), Some("1"));
    assert_eq!(variable(&plan, "s", "OTEL_EXPORTER_OTLP_ENDPOINT"), None);
    assert_eq!(plan.telemetry.endpoint.as_ref().and_then(|e| e.as_literal()), Some("http://gateway:4318"));
    assert!(plan.collector.is_none() && plan.unit("otel_collector").is_none());
}

#[test]
fn loopback_goes_past_proxies() {
    let proxy = |variables: &[(&str, &str)]| {
        let mut folder = folder(&[("job.lua", JOB)]);
        for (name, value) in variables {
            folder = folder.variable(name, value);
        }
        let plan = folder.plan("job.lua");
        ["NO_PROXY", "no_proxy"].map(|name| variable(&plan, "s", name))
    };
    let both = |value: &str| [Some(value.to_owned()), Some(value.to_owned())];
    assert_eq!(proxy(&[]), both("localhost,127.0.0.1,::1"));
    assert_eq!(proxy(&[("NO_PROXY", ".corp,localhost")]), both(".corp,localhost,127.0.0.1,::1"));
    assert_eq!(
        proxy(&[("NO_PROXY", "a"), ("no_proxy", "b")]),
        [Some("a,localhost,127.0.0.1,::1".to_owned()), Some("b,localhost,127.0.0.1,::1".to_owned())]
    );
    assert_eq!(proxy(&[("no_proxy", "*")]), [None, None]);
}

#[test]
fn the_authors_variables_win_over_everything() {
    let plan = plan(
        r#"local gym = require "gymrun"
        return gym.job { name = "x", driver = { command = { "d" }, env = {
          NO_PROXY = "none", NEMO_GYM_OTEL_SPAN_GROUPS = "all", OTEL_EXPORTER_OTLP_ENDPOINT = false, GYMRUN_NAME = "other" } } }"#,
    );
    assert_eq!(variable(&plan, "driver", "NO_PROXY").as_deref(), Some("none"));
    assert_eq!(variable(&plan, "driver", "NEMO_GYM_OTEL_SPAN_GROUPS").as_deref(), Some("all"));
    assert_eq!(variable(&plan, "driver", "OTEL_EXPORTER_OTLP_ENDPOINT").as_deref(), Some("<unset>"));
}

#[test]
fn where_logs_go_and_how_is_said_together() {
    let env = |env: &str| {
        let plan = plan(&format!(
            "local gym = require 'gymrun'\nreturn gym.job {{ name = 'x', driver = {{ command = {{ 'd' }}, env = {{ {env} }} }} }}"
        ));
        ["ENDPOINT", "PROTOCOL"].map(|what| variable(&plan, "driver", &format!("OTEL_EXPORTER_OTLP_LOGS_{what}")))
    };
    let both = |endpoint: &str, protocol: &str| [Some(endpoint.to_owned()), Some(protocol.to_owned())];
    let ours = "http://localhost:${port:otel_collector.grpc}";
    assert_eq!(env(""), both(ours, "grpc"));
    assert_eq!(env("OTEL_EXPORTER_OTLP_PROTOCOL = 'http/protobuf'"), both(ours, "grpc"));
    assert_eq!(env("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL = 'http/json'"), both(ours, "http/json"));
    assert_eq!(
        env("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT = 'http://a/v1/logs'"),
        [Some("http://a/v1/logs".to_owned()), None]
    );
}

#[test]
fn the_collector_gets_no_telemetry_of_its_own() {
    let plan = plan(JOB);
    let names: Vec<&String> = unit(&plan, "otel_collector").env.keys().collect();
    assert!(!names.iter().any(|name| name.contains("OTEL") || name.contains("NEMO")), "{names:?}");
    assert!(names.iter().any(|name| *name == "GYMRUN_PORT_GRPC"), "{names:?}");
}

#[test]
fn what_a_python_already_has_stays_behind_ours() {
    let plan = folder(&[("job.lua", JOB)])
        .variable("PYTHONPATH", "/mine")
        .variable("OTEL_PYTHON_FASTAPI_EXCLUDED_URLS", "metrics")
        .plan("job.lua");
    assert_eq!(variable(&plan, "s", "PYTHONPATH").as_deref(), Some("${job:dir}/files/python:/mine"));
    assert_eq!(
        variable(&plan, "s", "OTEL_PYTHON_FASTAPI_EXCLUDED_URLS").as_deref(),
        Some("/(livez|readyz|healthz|health)?$,metrics")
    );
}
