//! A disk that is full: nobody is held up, and what is lost is counted.

use serde_json::{Value, json};

use crate::cases::Case;
use crate::harness::small_disk;
use crate::job::{Ended, Job};
use crate::jobs::{child, driver};

pub const CASES: &[Case] = &[
    ("a_full_disk_holds_up_nobody_and_is_counted", a_full_disk_holds_up_nobody_and_is_counted),
    ("a_log_goes_on_with_a_whole_line_once_there_is_room", a_log_goes_on_with_a_whole_line_once_there_is_room),
    ("a_limit_on_the_size_of_files_is_no_end", a_limit_on_the_size_of_files_is_no_end),
];

/// The end of a command line, before the executable and the directory of the job.
pub const RUN: [&str; 4] = ["sh", "-c", "exec \"$1\" run \"$2\"", "sh"];

/// Runs a job whose logs are on a disk of 1 MiB; they are in `kept` afterwards.
fn on_a_small_disk(description: &Value) -> Option<Ended> {
    let disk = small_disk("@DIR/logs", "@DIR/kept", 1024)?;
    let words: Vec<&str> = disk.iter().map(String::as_str).chain(RUN).collect();
    Some(Job::start_by(description, &words).end())
}

fn warnings(ended: &Ended, process: &str) -> Vec<String> {
    let own = ended.warnings().into_iter().filter(|event| event["process"] == process);
    own.map(|event| event["message"].as_str().unwrap_or_default().to_owned()).collect()
}

/// How many bytes `flood:MEBIBYTES` writes.
fn flood(mebibytes: usize) -> usize {
    mebibytes * 10_486 * 100
}

fn a_full_disk_holds_up_nobody_and_is_counted() {
    let Some(ended) = on_a_small_disk(&json!({"driver": driver("flood:3 exit:3")})) else { return };
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    // All of it is shown.
    assert_eq!(ended.stdout.len(), flood(3));
    let log = ended.file("kept/driver.log");
    assert!(log.len() > 900_000 && log.len() % 100 == 0 && log.ends_with(b"x\n"), "{}", log.len());
    let lost = flood(3) - log.len();
    assert_eq!(ended.the("log_ended", "driver")["lost_bytes"], lost);
    let said = warnings(&ended, "driver");
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("logs/driver.log` cannot be written: No space left"), "{said:?}");
    assert!(said[1].starts_with(&format!("{lost} bytes of its output are not in its log")), "{said:?}");
}

fn a_log_goes_on_with_a_whole_line_once_there_is_room() {
    let steps = "fill:@DIR/logs/filler:700000 flood:1 print:torn says:@DIR/events.jsonl:cannot_be_written \
                 remove:@DIR/logs/filler print:after exit:0";
    let Some(ended) = on_a_small_disk(&json!({
        "servers": {"a": {"command": child("forever")}},
        "driver": driver(steps),
    })) else {
        return;
    };
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let log = ended.file("kept/driver.log");
    assert!(log.ends_with(b"after\n"), "{:?}", String::from_utf8_lossy(&log[log.len().saturating_sub(200)..]));
    let whole = |line: &str| line.len() == 99 || line == "torn" || line == "after";
    assert!(String::from_utf8_lossy(&log).lines().all(whole));
    let written = flood(1) + b"torn\nafter\n".len();
    assert_eq!(ended.the("log_ended", "driver")["lost_bytes"], written - log.len());
}

fn a_limit_on_the_size_of_files_is_no_end() {
    let limited = ["sh", "-c", "ulimit -f 1000; exec \"$1\" run \"$2\"", "sh"];
    let ended = Job::start_by(&json!({"driver": driver("flood:2 exit:3")}), &limited).end();
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert_eq!(ended.stdout.len(), flood(2));
    let lost = ended.the("log_ended", "driver")["lost_bytes"].as_u64().expect("a number");
    assert_eq!(lost + ended.file("logs/driver.log").len() as u64, flood(2) as u64);
    assert!(lost > 0);
}
