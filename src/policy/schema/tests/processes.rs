//! Kinds, defaults, GPUs.

use super::case::{Case, good, http, process};
use crate::plan::{Exhausted, Kind, LogMode, OnExit, PortChoice, ProbeKind, Readiness, StopSignal};
use crate::policy::spec::{CommandSpec, Detail, EnvValue, Gpus};

const KINDS: &str = "
name: x
services:
  v: {type: vllm, model: m}
  c: {command: [x]}
  t: {type: task, command: [x]}
servers:
  s: {type: resources_servers, command: [x]}
  i: {type: responses_api_models, implementation: openai_model}
driver: {command: [x]}
";

#[test]
fn each_kind_brings_its_defaults() {
    let spec = good(KINDS);
    let vllm = process(&spec, "v");
    assert_eq!(vllm.port.as_ref().unwrap().value, PortChoice::Fixed(8000));
    assert_eq!(http(vllm), (vec!["/health".to_owned()], 1800.0));
    assert!(vllm.metrics.is_some());
    assert_eq!(vllm.command, CommandSpec::Own);
    assert_eq!(vllm.served_model_name.as_deref(), Some("m"));
    let Detail::Vllm(detail) = &vllm.detail else { panic!() };
    assert_eq!((detail.executable.as_slice(), detail.tensor_parallel_size), (["vllm".to_owned()].as_slice(), 1));
    assert_eq!(detail.data_parallel_rpc_port, PortChoice::Fixed(13345));
    let command = process(&spec, "c");
    assert_eq!((command.port.as_ref(), &command.readiness), (None, &Readiness::Started));
    assert_eq!((command.stop.signal, command.stop.grace_seconds), (StopSignal::Term, 10.0));
    assert_eq!((command.log, command.on_exit), (LogMode::File, OnExit::Stop));
    assert_eq!(process(&spec, "t").readiness, Readiness::Exited { timeout_seconds: None });
    let server = process(&spec, "s");
    assert_eq!(server.port.as_ref().unwrap().value, PortChoice::Auto);
    assert_eq!(http(server), (vec!["/readyz".to_owned(), "/health".to_owned(), "/".to_owned()], 600.0));
    assert_eq!((server.stop.signal, server.stop.grace_seconds), (StopSignal::Int, 5.0));
    assert!(server.metrics.is_none());
    assert_eq!(process(&spec, "i").command, CommandSpec::Own);
    let driver = process(&spec, "driver");
    assert_eq!((driver.kind, driver.log), (Kind::Driver, LogMode::Pipe));
    assert_eq!(spec.policy_model.as_ref().unwrap().value, "v");
    assert_eq!((spec.cluster.as_str(), spec.output_path.as_str()), ("here", "/home/tester/gymrun-jobs"));
}

#[test]
fn process_defaults_stand_below_the_process_and_never_switch_on() {
    let site = "
otel: {endpoint: false, service_name: s}
process_defaults:
  all: {grace_seconds: 1, env: {A: all, B: all}, health_check: {timeout_seconds: 7}, metrics: {path: /m}, python: x}
  services: {executable: [./bin/vllm, serve], env: {B: group}, grace_seconds: 2}
  servers: {python: venv/bin/python, health_check: {path: /up}}
  driver: {stop_signal: SIGUSR1}
  collector: {env: {C: 1}, stop_signal: INT}
";
    let job = KINDS
        .replace("v: {type: vllm, model: m}", "v: {type: vllm, model: m, env: {A: own}, grace_seconds: 3}")
        .replace(
            "s: {type: resources_servers, command: [x]}",
            "s: {type: resources_servers, command: [x], metrics: true}",
        );
    let checked = Case { site, job: &job, ..Case::default() }.checked();
    // `python` is no key of every process.
    let said = checked.problems.to_string();
    assert!(said.contains("process_defaults.all.python: unknown key\n  --> site/here.yaml:4"), "{said}");
    assert_eq!(checked.problems.iter().count(), 1, "{said}");
    let spec = checked.spec;
    let value = |process: &str, name: &str| match &spec.process(process).unwrap().env[name].value {
        EnvValue::Set(crate::plan::Value::Text(text)) => text.as_literal().unwrap().to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!((value("v", "A"), value("v", "B")), ("own".into(), "group".into()));
    assert_eq!((value("driver", "A"), value("driver", "B")), ("all".into(), "all".into()));
    assert_eq!(process(&spec, "v").stop.grace_seconds, 3.0);
    assert_eq!(process(&spec, "c").stop.grace_seconds, 2.0);
    assert_eq!(process(&spec, "s").stop.grace_seconds, 1.0);
    // Off by kind stays off; a task's readiness stays, its limit applies.
    assert_eq!(process(&spec, "c").readiness, Readiness::Started);
    assert_eq!(process(&spec, "driver").readiness, Readiness::Started);
    assert_eq!(process(&spec, "t").readiness, Readiness::Exited { timeout_seconds: Some(7.0) });
    assert_eq!(http(process(&spec, "v")), (vec!["/health".to_owned()], 7.0));
    assert_eq!(http(process(&spec, "s")), (vec!["/up".to_owned()], 7.0));
    assert!(process(&spec, "c").metrics.is_none());
    assert_eq!(process(&spec, "s").metrics.as_ref().unwrap().path, "/m");
    assert_eq!(process(&spec, "v").metrics.as_ref().unwrap().path, "/m");
    // Paths belong to the file that says them; a bare name stays.
    let Detail::Vllm(vllm) = &process(&spec, "v").detail else { panic!() };
    assert_eq!(vllm.executable, ["/home/tester/site/bin/vllm", "serve"]);
    let Detail::Server(server) = &process(&spec, "i").detail else { panic!() };
    assert_eq!(server.python, "/home/tester/site/venv/bin/python");
    assert_eq!(process(&spec, "driver").stop.signal, StopSignal::Usr1);
    assert_eq!(spec.collector_stop_signal, StopSignal::Int);
    assert_eq!(spec.collector_env.keys().collect::<Vec<_>>(), ["A", "B", "C"]);
}

#[test]
fn a_wrong_default_is_said_once() {
    let site = "otel: {endpoint: false, service_name: s}\nprocess_defaults: {servers: {grace_seconds: x}}";
    let said = Case { site, job: KINDS, ..Case::default() }.said();
    assert_eq!(said.matches("is due").count(), 1, "{said}");
    assert!(said.contains("process_defaults.servers.grace_seconds"), "{said}");
}

#[test]
fn a_default_can_give_what_must_be_there() {
    let site = "otel: {endpoint: false, service_name: s}\nprocess_defaults: {services: {model: m}}";
    let spec = Case { site, job: "name: x\nservices: {v: {type: vllm}}", ..Case::default() }.good();
    assert_eq!(process(&spec, "v").model.as_ref().unwrap().value, "m");
}

#[test]
fn gpus_are_dealt_out() {
    let spec = good(
        "name: x\nservices:\n  a: {command: [x], gpus: 2}\n  b: {command: [x], gpus: [1, 3]}\n  c: {command: [x], gpus: false}\ndriver: {command: [x], gpus: 1}\n",
    );
    assert_eq!(process(&spec, "a").gpus, Gpus::These(vec![0, 2]));
    assert_eq!(process(&spec, "b").gpus, Gpus::These(vec![1, 3]));
    assert_eq!(process(&spec, "c").gpus, Gpus::Off);
    assert_eq!(process(&spec, "driver").gpus, Gpus::These(vec![4]));
}

#[test]
fn a_site_says_how_often_and_a_process_whether_it_is_restarted() {
    let site = "otel: {endpoint: false, service_name: s}\n\
                process_defaults: {servers: {restart: {limit: 2, exhausted: ignore}}}";
    let job = "
name: x
servers:
  again: {type: resources_servers, command: [x], on_exit: restart, liveness: {interval_seconds: 1}}
  once: {type: resources_servers, command: [x]}
";
    let spec = Case { site, job, ..Case::default() }.good();
    let OnExit::Restart(policy) = process(&spec, "again").on_exit else { panic!() };
    assert_eq!((policy.limit, policy.exhausted, policy.window_seconds), (2, Exhausted::Ignore, 300.0));
    assert_eq!((policy.backoff_seconds, policy.backoff_max_seconds, policy.also_dependants), (1.0, 30.0, false));
    assert_eq!(process(&spec, "once").on_exit, OnExit::Stop);
    let liveness = process(&spec, "again").liveness.as_ref().unwrap();
    assert_eq!((liveness.interval_seconds, liveness.failure_threshold), (1.0, 3));
    // What is asked is what makes it ready, unless it says otherwise.
    let ProbeKind::Http { paths, .. } = &liveness.question.kind else { panic!() };
    assert_eq!(paths, &["/readyz", "/health", "/"]);
    assert_eq!(process(&spec, "once").liveness, None);
}

#[test]
fn a_restart_policy_without_restarts_and_a_probe_without_a_port_are_mistakes() {
    let said = Case {
        job: "name: x\nservices:\n  a:\n    command: [x]\n    liveness: {}\n    restart: {limit: 2}\n  b: {type: task, command: [x], liveness: {}}",
        ..Case::default()
    }
    .said();
    for part in [
        "services.a.liveness: the check has no port to ask",
        "services.a.restart: the process is never restarted",
        "services.b.liveness",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
}
