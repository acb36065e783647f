//! `log`, `log_max_bytes`, `log_keep`.

use super::case::{Case, good, process};
use crate::plan::{LogMode, Rotation};

#[test]
fn rotation_is_for_piped_logs_and_keeps_three() {
    let spec = good(
        "name: x\nservices:\n  a: {command: [x], log: pipe, log_max_bytes: 1000}\n  b: {command: [x], log: pipe}\n\
         driver: {command: [x], log_max_bytes: 5000000, log_keep: 9}\n",
    );
    assert_eq!(process(&spec, "a").log_rotation, Some(Rotation { max_bytes: 1000, keep: 3 }));
    assert_eq!(process(&spec, "b").log_rotation, None);
    // The driver's is piped without saying so.
    assert_eq!(process(&spec, "driver").log_rotation, Some(Rotation { max_bytes: 5_000_000, keep: 9 }));
}

#[test]
fn what_cannot_be_rotated_is_a_mistake_with_its_place() {
    let said = Case {
        job: "name: x\nservices:\n  a:\n    command: [x]\n    log_max_bytes: 5000\n  b:\n    command: [x]\n    log: pipe\n    log_max_bytes: 10\n    log_keep: 0\n  c:\n    command: [x]\n    log: pipe\n    log_keep: 2\n\
              driver:\n  command: [x]\n  log: file\n  log_max_bytes: 5000\n",
        ..Case::default()
    }
    .said();
    for part in [
        "services.a.log_max_bytes: `log_max_bytes` needs `log = \"pipe\"`\n  --> jobs/job.yaml:5\n  hint: write `log = \"pipe\"`",
        "services.b.log_max_bytes: a whole number, 1000 or more, is due, not `10`\n  --> jobs/job.yaml:9",
        "services.b.log_keep: a whole number from 1 to 1000 is due, not `0`\n  --> jobs/job.yaml:10",
        "services.c.log_keep: there are no older logs to keep",
        "driver.log_max_bytes: `log_max_bytes` needs `log = \"pipe\"`\n  --> jobs/job.yaml:18",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
}

#[test]
fn defaults_reach_all_but_those_that_own_their_log() {
    let site = "
otel: {endpoint: false, service_name: s}
process_defaults:
  all: {log: pipe, log_max_bytes: 4000, log_keep: 5}
  services: {log: file}
";
    let job = "
name: x
services:
  a: {command: [x]}
  b: {command: [x], log: pipe}
servers:
  s: {type: resources_servers, command: [x]}
  t: {type: resources_servers, command: [x], log: file}
driver: {command: [x], log_keep: 1}
";
    let spec = Case { site, job, ..Case::default() }.good();
    let of = |name: &str| (process(&spec, name).log, process(&spec, name).log_rotation.map(|r| (r.max_bytes, r.keep)));
    assert_eq!(of("a"), (LogMode::File, None));
    assert_eq!(of("b"), (LogMode::Pipe, None));
    assert_eq!(of("s"), (LogMode::Pipe, Some((4000, 5))));
    assert_eq!(of("t"), (LogMode::File, None));
    assert_eq!(of("driver"), (LogMode::Pipe, Some((4000, 1))));
    assert_eq!(spec.collector_log_rotation, Some(Rotation { max_bytes: 4000, keep: 5 }));
    // How many: for those that have older ones at all.
    let site = "otel: {endpoint: false, service_name: s}\nprocess_defaults: {all: {log_keep: 5}}";
    let said = Case { site, job, ..Case::default() }.said();
    assert!(said.starts_with("error: driver.log_keep: ") && said.matches("error").count() == 1, "{said}");
    // Whoever sets a limit for all has to say that they are piped.
    let site = "otel: {endpoint: false, service_name: s}\nprocess_defaults: {all: {log_max_bytes: 4000}}";
    let said = Case { site, job, ..Case::default() }.said();
    for part in ["services.a.log_max_bytes", "process_defaults.collector.log_max_bytes", "--> site/here.yaml:2"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(!said.contains("services.b") && !said.contains("servers.t"), "{said}");
}
