//! The real `node_exporter` beside a job, scraped as `otel.node_metrics_port` says.
#![expect(clippy::disallowed_methods, reason = "a test may start programs")]

mod harness;

use std::net::TcpStream;
use std::process::{Command, Stdio};

use harness::{Job, Program, component, eventually, free_port};

#[test]
fn the_metrics_of_the_node_are_there() {
    let Some(program) = component("node_exporter", "GYMRUN_TEST_NODE_EXPORTER") else { return };
    let port = free_port();
    let mut command = Command::new(program);
    command
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let _exporter = Program::start(&mut command);
    eventually("it listens", || TcpStream::connect(("127.0.0.1", port)).ok());

    let run = Job::example("examples/quickstart/job.lua", "node-exporter")
        .set("otel.node_metrics_port", &port.to_string())
        .watch();
    run.ended.assert_code(0);
    let telemetry = run.directory.telemetry();
    for (name, kind, monotonic) in [
        ("node_cpu_seconds_total", "sum", true),
        ("node_memory_MemTotal_bytes", "gauge", false),
        ("node_load1", "gauge", false),
        ("up", "gauge", false),
    ] {
        let metrics: Vec<_> =
            telemetry.metrics_named(name).into_iter().filter(|metric| metric.producer() == "node").collect();
        assert!(metrics.len() >= 2, "{name}: {} times", metrics.len());
        assert!(metrics.iter().all(|metric| (metric.kind, metric.monotonic) == (kind, monotonic)), "{name}");
    }
}
