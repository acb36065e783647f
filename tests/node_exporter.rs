//! The real `node_exporter` beside a job, scraped as `otel.node_metrics_port` says.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may panic and start programs")]

mod job;

use std::process::{Child, Command, Stdio};

use job::{Job, component};

/// Ends the exporter with the test.
struct Exporter(Child);

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_metrics_of_the_node_are_there() {
    let Some(program) = component("node_exporter", "GYMRUN_TEST_NODE_EXPORTER") else { return };
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new(program);
    command
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let _exporter = Exporter(command.spawn().unwrap());

    let run =
        Job::new("examples/quickstart/job.lua", "node-exporter").set("otel.node_metrics_port", &port.to_string()).run();
    run.assert_code(0);
    let telemetry = run.directory.telemetry();
    for (name, kind, monotonic) in [
        ("node_cpu_seconds_total", "sum", true),
        ("node_memory_MemTotal_bytes", "gauge", false),
        ("node_load1", "gauge", false),
        ("up", "gauge", false),
    ] {
        let metrics: Vec<_> =
            telemetry.metrics_named(name).into_iter().filter(|metric| metric.producer() == "node").collect();
        assert!(metrics.len() >= 5, "{name}: {} times", metrics.len());
        assert!(metrics.iter().all(|metric| (metric.kind, metric.monotonic) == (kind, monotonic)), "{name}");
    }
}
