//! A wall clock that is set back and forth by hours, each time it is read.
//!
//! The executable has its own `clock_gettime`, which the standard library calls like any other: so the gymrun under test can
//! be given a wild wall clock without touching the machine's.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use serde_json::{Value, json};

use crate::cases::Case;
use crate::job::{Ended, Job};
use crate::jobs::{child, driver, server, with};

pub const CASES: &[Case] = &[
    (
        "a_wild_wall_clock_cuts_no_limit_short_and_draws_none_out",
        a_wild_wall_clock_cuts_no_limit_short_and_draws_none_out,
    ),
    ("a_wild_wall_clock_does_not_disturb_a_run", a_wild_wall_clock_does_not_disturb_a_run),
];

/// The variable that makes a gymrun's wall clock wild.
pub const WILD: &str = "TEST_WILD_CLOCK";

static IS_WILD: AtomicBool = AtomicBool::new(false);
static READINGS: AtomicI64 = AtomicI64::new(0);

/// Whether the clock of this process is wild from now on.
pub fn set_wild(wild: bool) {
    IS_WILD.store(wild, Ordering::Relaxed);
}

/// The clocks of this process. The wall clock is off by another number of hours at each reading, before or behind.
///
/// # Safety
/// `time` is valid for a write, as for the C function of this name.
#[expect(unsafe_code, reason = "it stands in the place of a function of C")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: libc::clockid_t, time: *mut libc::timespec) -> libc::c_int {
    // SAFETY: the kernel writes where the caller says.
    let result = unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) };
    if result == 0 && clock == libc::CLOCK_REALTIME && IS_WILD.load(Ordering::Relaxed) {
        let number = READINGS.fetch_add(1, Ordering::Relaxed);
        let hours = (number % 7 + 1) * if number % 2 == 0 { -1 } else { 1 };
        // SAFETY: the kernel has just written there.
        unsafe { (*time).tv_sec += hours * 3600 };
    }
    i32::try_from(result).unwrap_or(-1)
}

fn wildly(description: &Value) -> Ended {
    let ended = Job::start_with(description, |command| {
        command.env(WILD, "1");
    })
    .end();
    // The proof that it was wild: times for people jump, what decides does not.
    let seconds = |event: &Value| event["time"].as_str().unwrap_or_default()[11..13].parse::<i64>().expect("hours");
    let hours: std::collections::BTreeSet<i64> = ended.events.iter().map(seconds).collect();
    assert!(hours.len() > 3, "{hours:?}");
    let elapsed: Vec<f64> = ended.events.iter().filter_map(|event| event["elapsed_seconds"].as_f64()).collect();
    assert!(elapsed.is_sorted() && elapsed.last().is_some_and(|last| (0.0..3000.0).contains(last)), "{elapsed:?}");
    let result: Value = serde_json::from_slice(&ended.file("result.json")).expect("a result");
    let duration = result["duration_seconds"].as_f64().expect("a number");
    // Events tell microseconds.
    assert!(elapsed.last().is_some_and(|last| (duration - last).abs() < 1e-5), "{duration} {elapsed:?}");
    ended
}

/// The seconds between two events of a process.
fn between(ended: &Ended, process: &str, first: &str, second: &str) -> f64 {
    let at = |kind| ended.the(kind, process)["elapsed_seconds"].as_f64().expect("a number");
    at(second) - at(first)
}

fn a_wild_wall_clock_cuts_no_limit_short_and_draws_none_out() {
    let late = with(server("ignore:TERM forever"), "health_check", json!({"timeout_seconds": 1}));
    let ended = wildly(&json!({"servers": {
        "other": server("serve:${port:self} forever"),
        "late": with(with(late, "grace_seconds", 0.5), "depends_on", json!(["other"])),
    }}));
    assert_eq!((ended.code, ended.class()), (Some(125), "start_failed"));
    assert_eq!(ended.the("process_not_ready", "late")["after_seconds"], json!(1.0));
    // What is said a moment later than it happens may be said by a moment less later.
    assert!(between(&ended, "late", "process_started", "process_not_ready") > 0.9);
    assert!(between(&ended, "late", "process_stopping", "process_killed") > 0.4);
    let ended = wildly(&json!({
        "servers": {"a": server("serve:${port:self} forever"), "b": server("serve:${port:self} forever")},
        "driver": driver("forever"),
        "time_limit_seconds": 1,
    }));
    assert_eq!((ended.code, ended.class()), (Some(124), "time_limit"));
}

fn a_wild_wall_clock_does_not_disturb_a_run() {
    let once =
        "unless:@DIR/again { append:@DIR/again:x serve:${port:self} wait:@DIR/die exit:1 } serve:${port:self} forever";
    let restarted = with(server(once), "on_exit", "restart");
    let ended = wildly(&json!({
        "interval_seconds": 0.05,
        "pss": true,
        "services": {"model": {
            "command": child("until:${port:self}:@DIR/loaded append:@DIR/loaded:x forever"),
            "port": "auto",
            "health_check": {"timeout_seconds": 120, "interval_seconds": 0.01},
            "liveness": {"interval_seconds": 0.05},
        }},
        "servers": {"a": with(restarted, "restart", json!({"limit": 1, "window_seconds": 60, "backoff_seconds": 0.2}))},
        "driver": driver("append:@DIR/die:x sleep:1"),
    }));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.the("process_restarting", "a")["number"], json!(1));
    assert!(ended.all("process_hung").is_empty());
    // Each at its time, and none made up.
    let samples = ended.all("memory_sampled");
    let most = samples.last().and_then(|sample| sample["elapsed_seconds"].as_f64()).expect("a sample") / 0.05;
    assert!(samples.len() >= 2 && samples.len() as f64 <= most + 2.0, "{} of {most}", samples.len());
}
