//! The job's collector: first, last, asked, and what its end means.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::cases::Case;
use crate::harness::eventually;
use crate::job::{Job, job};
use crate::jobs::{child, driver, server, with};

pub const CASES: &[Case] = &[
    ("the_collector_is_first_and_last", the_collector_is_first_and_last),
    ("an_otelcol_is_waited_for_and_asked", an_otelcol_is_waited_for_and_asked),
    ("a_second_signal_does_not_wait_for_the_collector", a_second_signal_does_not_wait_for_the_collector),
    ("a_hurry_while_it_drains_is_passed_on", a_hurry_while_it_drains_is_passed_on),
    ("a_collector_that_ends_badly_is_unmet", a_collector_that_ends_badly_is_unmet),
    ("a_collector_that_dies_changes_nothing_unless_required", a_collector_that_dies_changes_nothing_unless_required),
    ("a_collector_that_does_not_start_ends_the_job", a_collector_that_does_not_start_ends_the_job),
];

const DRAINS: &str = "trap:TERM:@DIR/order:collector-TERM:0:0 collector:${port:self.health}:@DIR/order forever";

fn draining(report: &str) -> Value {
    let steps = format!("append:@DIR/order:collector write:@DIR/otel/delivery.json:{report} {DRAINS}");
    json!({"command": child(&steps), "health_check": {"path": "/"}})
}

fn the_collector_is_first_and_last() {
    // Much more than all of it takes.
    let patient = |otel: Value| with(otel, "shutdown_wait_seconds", 600);
    let report = r#"{"traces":{"received":8,"written":8,"rejected":2},"last_error":"500"}"#;
    for (required, code, class) in [(false, 0, "ok"), (true, 125, "telemetry_undelivered")] {
        let ended = job(&json!({
            "otel": patient(with(draining(report), "required", required)),
            "servers": {"a": server("append:@DIR/order:server trap:TERM:@DIR/order:server-TERM:0:0 serve:${port:self} forever")},
            "driver": driver("append:@DIR/order:driver"),
        }));
        assert_eq!((ended.code, ended.class()), (Some(code), class), "{}", ended.stderr);
        let order = ended.lines("order");
        assert_eq!(order[..4], ["collector", "server", "driver", "/-/scrape?last=true"]);
        assert_eq!(order[4..6], ["server-TERM", "server-TERM gone"]);
        let seconds: f64 = order[6].strip_prefix("/-/stop?seconds=").and_then(|s| s.parse().ok()).expect("a limit");
        assert!((500.0..=600.0).contains(&seconds), "{seconds}");
        assert_eq!(order[7..], ["collector-TERM", "collector-TERM gone"]);
        assert_eq!(ended.all("last_scrape")[0]["forced"], json!(true));
        assert_eq!(ended.all("delivered")[0]["traces"]["rejected"], json!(2));
    }
}

fn an_otelcol_is_waited_for_and_asked() {
    let otel = json!({
        "command": child(DRAINS), "embedded": false, "health_check": {"path": "/"}, "final_scrape_grace_seconds": 0.3
    });
    let mut brief = json!({"otel": otel, "driver": driver("exit:4")});
    let ended = job(&brief);
    assert_eq!(ended.code, Some(4), "{}", ended.stderr);
    let scrape = ended.all("last_scrape")[0];
    assert_eq!(scrape["forced"], json!(false));
    assert!(scrape["seconds"].as_f64() >= Some(0.3));
    assert_eq!(ended.all("delivered")[0]["traces"]["received"], json!(3));
    // A signal cuts the wait short, and the driver's code stands.
    brief["otel"]["final_scrape_grace_seconds"] = json!(600);
    let running = Job::start(&brief);
    running.wait_for_event("process_gone", "driver");
    running.signal(Signal::SIGTERM);
    let ended = running.end();
    assert_eq!(ended.code, Some(4));
}

fn a_second_signal_does_not_wait_for_the_collector() {
    // It answers its health check, and nothing that it is asked to do.
    for embedded in [true, false] {
        let otel = json!({
            "command": child("ignore:TERM collector:${port:self.health}:@DIR/order:hangs forever"),
            "embedded": embedded,
            "health_check": {"path": "/"},
            "shutdown_wait_seconds": 600,
            "final_scrape_grace_seconds": 0,
        });
        let running = Job::start(&json!({"otel": otel, "driver": driver("append:@DIR/up:x forever")}));
        running.wait_for("up");
        running.signal(Signal::SIGTERM);
        running.wait_for_event("process_gone", "driver");
        running.signal_until_it_ends(Signal::SIGTERM);
        let ended = running.end();
        assert_eq!(ended.code, Some(143), "{}", ended.stderr);
        assert_eq!(ended.the("process_exited", "otel_collector")["signal"], json!(9));
        assert_eq!(ended.events.last().expect("events")["event"], "job_ended");
    }
}

fn a_hurry_while_it_drains_is_passed_on() {
    let otel = json!({
        "command": child("ignore:TERM collector:${port:self.health}:@DIR/order forever"),
        "health_check": {"path": "/"},
        "shutdown_wait_seconds": 600,
    });
    let running = Job::start(&json!({"otel": otel, "driver": driver("exit:0")}));
    let limits = |running: &Job| -> Vec<f64> {
        let text = std::fs::read_to_string(running.path("order")).unwrap_or_default();
        text.lines().filter_map(|line| line.strip_prefix("/-/stop?seconds=")?.parse().ok()).collect()
    };
    let wait_for_limits = |count| {
        eventually(&format!("{count} limits"), || (limits(&running).len() >= count).then_some(()));
    };
    wait_for_limits(1);
    running.signal(Signal::SIGTERM);
    wait_for_limits(2);
    let limits = limits(&running);
    assert!(limits[0] > 500.0 && limits[1] <= 25.0, "{limits:?}");
    running.signal_until_it_ends(Signal::SIGTERM);
    assert_eq!(running.end().code, Some(0));
}

fn a_collector_that_ends_badly_is_unmet() {
    for (steps, wait, words) in
        [("trap:TERM:@DIR/order:c:0:3", 60.0, "exited 3"), ("ignore:TERM", 0.3, "had to be killed")]
    {
        for (required, code) in [(false, 0), (true, 125)] {
            let otel = json!({
                "command": child(&format!("{steps} collector:${{port:self.health}}:@DIR/order forever")),
                "embedded": false,
                "health_check": {"path": "/"},
                "shutdown_wait_seconds": wait,
                "final_scrape_grace_seconds": 0,
            });
            let ended = job(&json!({"otel": with(otel, "required", required), "driver": driver("exit:0")}));
            assert_eq!(ended.code, Some(code), "{}", ended.stderr);
            assert_eq!(ended.stderr.contains(words), required, "{}", ended.stderr);
        }
    }
}

fn a_collector_that_dies_changes_nothing_unless_required() {
    for (required, code) in [(false, 0), (true, 125)] {
        let otel = json!({"command": child("collector:${port:self.health}:@DIR/order wait:@DIR/ran raise:KILL"), "health_check": {"path": "/"}});
        let ended = job(&json!({
            "otel": with(otel, "required", required),
            "driver": driver("append:@DIR/ran:x says:@DIR/events.jsonl:the_collector_died"),
        }));
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        assert_eq!(ended.the("process_exited", "otel_collector")["signal"], json!(9));
        assert!(
            ended.warnings().iter().any(|w| w["message"].as_str().is_some_and(|m| m.contains("the collector died")))
        );
    }
}

fn a_collector_that_does_not_start_ends_the_job() {
    let ended = job(&json!({
        "otel": {"command": child("eprint:bad_configuration exit:1"), "health_check": {}},
        "servers": {"a": server("pid:@DIR/ran forever")},
        "driver": driver("pid:@DIR/ran"),
    }));
    assert_eq!((ended.code, ended.class()), (Some(125), "start_failed"));
    assert_eq!(ended.the("process_exited", "otel_collector")["last_lines"], json!(["bad_configuration"]));
    assert!(ended.file("ran").is_empty());
}
