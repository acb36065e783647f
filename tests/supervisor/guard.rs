//! The guard of a job's cgroup: what it takes, and when it goes.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::cases::Case;
use crate::harness::processes::{Process, descendants_of};
use crate::harness::{Place, eventually};
use crate::job::Job;
use crate::jobs::driver;

pub const CASES: &[Case] = &[
    ("the_guard_has_next_to_no_memory_of_its_own", the_guard_has_next_to_no_memory_of_its_own),
    ("the_guard_is_gone_before_gymrun_is", the_guard_is_gone_before_gymrun_is),
];

fn guard_of(running: &Job) -> Process {
    let is_guard = |process: &Process| {
        fs::read_to_string(format!("/proc/{}/comm", process.pid)).is_ok_and(|name| name.trim() == "job-guard")
    };
    // It takes its name when it runs.
    eventually("a guard", || descendants_of(running.pid()).into_iter().find(is_guard))
}

fn the_guard_has_next_to_no_memory_of_its_own() {
    let Some(place) = Place::make(true, None) else { return };
    let running = Job::start_in(place, &json!({"driver": driver("append:@DIR/up:x wait:@DIR/end exit:0")}));
    running.wait_for("up");
    let guard = guard_of(&running);
    // Of the parent's heap there is nothing, and of the rest no more than a few pages.
    eventually("the guard has given back what it had", || {
        let maps = fs::read_to_string(format!("/proc/{}/smaps", guard.pid)).expect("it lives");
        let (mut written, mut heap, mut in_heap) = (0, 0, false);
        for line in maps.lines() {
            let mut words = line.split_whitespace();
            let (name, value) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let kibibytes = || value.parse::<u64>().expect("a number");
            match name {
                "Private_Dirty:" => written += kibibytes(),
                "Rss:" if in_heap => heap += kibibytes(),
                _ if !name.ends_with(':') => in_heap = line.ends_with("[heap]"),
                _ => {}
            }
        }
        (heap == 0 && written < 256).then_some(())
    });
    fs::write(running.path("end"), "").expect("a scratch file");
    assert_eq!(running.end().code, Some(0));
}

fn the_guard_is_gone_before_gymrun_is() {
    // One that is told to end, but does not get to it.
    let Some(place) = Place::make(true, None) else { return };
    let running = Job::start_in(place, &json!({"driver": driver("append:@DIR/up:x wait:@DIR/end exit:0")}));
    running.wait_for("up");
    let guard = guard_of(&running);
    kill(Pid::from_raw(guard.pid.cast_signed()), Signal::SIGSTOP).expect("it lives");
    fs::write(running.path("end"), "").expect("a scratch file");
    assert_eq!(running.end().code, Some(0));
    assert!(guard.is_gone());
}
