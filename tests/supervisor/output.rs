//! What processes write: kept byte for byte, and shown.

use std::process::Stdio;
use std::time::Duration;

use serde_json::json;

use crate::cases::Case;
use crate::job::{Job, job};
use crate::jobs::{child, driver, server, with};

pub const CASES: &[Case] = &[
    ("output_is_kept_and_shown_byte_for_byte", output_is_kept_and_shown_byte_for_byte),
    ("closed_outputs_cost_nothing", closed_outputs_cost_nothing),
    ("a_reader_that_goes_away_changes_nothing", a_reader_that_goes_away_changes_nothing),
    ("a_slow_reader_does_not_cost_the_log_a_byte", a_slow_reader_does_not_cost_the_log_a_byte),
    ("piped_lines_are_whole_and_prefixed", piped_lines_are_whole_and_prefixed),
];

fn output_is_kept_and_shown_byte_for_byte() {
    let steps =
        "print:before repeat:{:204800 bytes:0a print:after bytes:88ff0a flood:8 eprint:apart bytes:6e6f20656e64";
    let ended =
        job(&json!({"driver": driver(steps), "servers": {"a": {"command": child("print:kept bytes:88ff forever")}}}));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let mut expected = b"before\n".to_vec();
    expected.extend(b"{".repeat(200 * 1024));
    expected.extend(b"\nafter\n\x88\xff\n");
    let flood = ended.stdout.len() - expected.len() - b"no end".len();
    assert!(flood > 8 << 20);
    assert!(ended.stdout.starts_with(&expected) && ended.stdout.ends_with(b"x\nno end"));
    assert!(ended.stderr.lines().any(|line| line == "apart"));
    // The log has both streams.
    let log = ended.file("logs/driver.log");
    assert_eq!(log.len(), ended.stdout.len() + b"apart\n".len());
    assert!(log.starts_with(&expected));
    assert_eq!(ended.file("logs/a.log"), b"kept\n\x88\xff");
}

fn closed_outputs_cost_nothing() {
    let running = Job::start(&json!({
        // No samples, which cost something.
        "interval_seconds": 3600,
        "servers": {"a": with(server("close serve:${port:self} append:@DIR/up:x forever"), "log", "pipe")},
        // It closes its own, too.
        "driver": driver("close wait:@DIR/seen exit:3"),
    }));
    running.wait_for("up");
    let cpu = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", running.pid())).expect("it runs");
        let fields: Vec<&str> = stat.rsplit_once(')').expect("a stat").1.split_ascii_whitespace().collect();
        fields[11].parse::<u64>().expect("a number") + fields[12].parse::<u64>().expect("a number")
    };
    running.wait_for_event("process_started", "driver");
    let before = cpu();
    std::thread::sleep(Duration::from_secs(1));
    assert!(cpu() - before < 20, "a pipe that is closed must not be read again and again");
    std::fs::write(running.path("seen"), "").expect("a scratch file");
    let ended = running.end();
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    // Both ran to the end.
    assert_eq!(ended.the("process_exited", "a")["expected"], json!(true));
}

fn a_reader_that_goes_away_changes_nothing() {
    let running = Job::start_with(&json!({"driver": driver("flood:4 append:@DIR/flooded:x exit:3")}), |command| {
        command.stdout(Stdio::piped());
    });
    let ended = running.end_without_reading();
    assert_eq!(ended.code, Some(3));
    assert!(ended.file("logs/driver.log").len() > 4 << 20);
}

fn a_slow_reader_does_not_cost_the_log_a_byte() {
    // Nobody reads gymrun's stdout until the job is over.
    let running = Job::start(&json!({"driver": driver("repeat:x:600000 print:end")}));
    running.wait_for_event("job_ended", "");
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let log = ended.file("logs/driver.log");
    assert_eq!(log.len(), 600_004);
    assert!(log.starts_with(&ended.stdout) && log.ends_with(b"xend\n"));
    // What could not be shown is said.
    let lost = ended.the("warning", "driver")["message"].as_str().unwrap_or_default().to_owned();
    assert!(lost.contains("the end of its output is not shown"), "{lost}");
}

fn piped_lines_are_whole_and_prefixed() {
    let ended = job(&json!({
        "servers": {"a": with(server("print:one print:two serve:${port:self} forever"), "log", "pipe")},
        "driver": driver("exit:0"),
    }));
    assert_eq!(ended.code, Some(0));
    for line in [" [a] one", " [a] two"] {
        assert!(ended.stderr.lines().any(|l| l.ends_with(line)), "{}", ended.stderr);
    }
    assert_eq!(ended.file("logs/a.log"), b"one\ntwo\n");
}
