//! How jobs end, and in which order.

use nix::sys::signal::{SigSet, Signal};
use serde_json::json;

use crate::cases::Case;
use crate::harness::processes::is_ignored;
use crate::harness::{eventually, tell_beforehand};
use crate::job::{Job, job};
use crate::jobs::{child, driver, server, with};

pub const CASES: &[Case] = &[
    ("the_drivers_end_is_passed_on_exactly", the_drivers_end_is_passed_on_exactly),
    ("a_death_in_mid_run_ends_the_job", a_death_in_mid_run_ends_the_job),
    ("an_ignored_death_is_a_warning", an_ignored_death_is_a_warning),
    ("stop_order_is_the_reverse_of_the_start", stop_order_is_the_reverse_of_the_start),
    ("a_process_that_is_stopped_is_woken_to_obey", a_process_that_is_stopped_is_woken_to_obey),
    ("told_to_stop_in_order", told_to_stop_in_order),
    ("told_to_stop_by_a_signal_without_a_name", told_to_stop_by_a_signal_without_a_name),
    ("what_is_ignored_stays_ignored", what_is_ignored_stays_ignored),
    ("told_to_stop_before_it_can_hear", told_to_stop_before_it_can_hear),
    ("a_second_signal_kills_at_once", a_second_signal_kills_at_once),
    ("a_signal_with_its_echo_is_one", a_signal_with_its_echo_is_one),
    ("the_time_limit_is_124", the_time_limit_is_124),
];

fn the_drivers_end_is_passed_on_exactly() {
    for (steps, code, class) in [
        ("exit:0", 0, "ok"),
        ("exit:1", 1, "driver_failed"),
        ("exit:42", 42, "driver_failed"),
        ("exit:255", 255, "driver_failed"),
        ("raise:KILL", 137, "driver_failed"),
        ("raise:TERM", 143, "driver_failed"),
        ("raise:SEGV", 139, "driver_failed"),
    ] {
        // A server that exits 143 when it is stopped is no failure.
        let ended = job(
            &json!({"servers": {"a": server("trap:TERM:@DIR/a:a:0:143 serve:${port:self} forever")}, "driver": driver(steps)}),
        );
        assert_eq!((ended.code, ended.class()), (Some(code), class), "{steps}");
        let exited = ended.the("process_exited", "a");
        assert_eq!((&exited["code"], &exited["expected"]), (&json!(143), &json!(true)));
    }
}

fn a_death_in_mid_run_ends_the_job() {
    let running = Job::start(&json!({
        "servers": {"a": server("pid:@DIR/a eprint:last_words serve:${port:self} forever")},
        "driver": driver("append:@DIR/ran:x forever"),
    }));
    running.wait_for("ran");
    let pid: i32 = running.wait_for("a").trim().parse().expect("a pid");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGKILL).expect("it runs");
    let ended = running.end();
    assert_eq!((ended.code, ended.class()), (Some(125), "process_died"));
    let died = ended.the("process_exited", "a");
    assert_eq!((&died["signal"], &died["was_ready"]), (&json!(9), &json!(true)));
    assert_eq!(died["last_lines"], json!(["last_words"]));
    assert_eq!(ended.the("process_exited", "driver")["signal"], json!(15));
}

fn an_ignored_death_is_a_warning() {
    let running = Job::start(&json!({
        "servers": {
            "a": with(server("serve:${port:self} wait:@DIR/ran exit:3"), "on_exit", "ignore"),
            "b": with(server("exit:3"), "on_exit", "ignore"),
            "c": with(server("forever"), "depends_on", json!(["b"])),
        },
        "driver": driver("append:@DIR/ran:x wait:@DIR/end exit:5"),
    }));
    running.wait_for_event("warning", "a");
    std::fs::write(running.path("end"), "").expect("a scratch file");
    let ended = running.end();
    assert_eq!((ended.code, ended.class()), (Some(5), "driver_failed"));
    assert_eq!(ended.warnings().len(), 2);
    assert_eq!(ended.the("process_skipped", "c")["because"], "b");
}

fn stop_order_is_the_reverse_of_the_start() {
    let obeys = |name: &str| format!("trap:TERM:@DIR/stops:{name}:0.2:0 serve:${{port:self}} forever");
    let ended = job(&json!({
        "servers": {
            "model": server(&obeys("model")),
            "agent": with(server(&obeys("agent")), "depends_on", json!(["model"])),
        },
        "driver": driver("exit:0"),
    }));
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.lines("stops"), ["agent", "agent gone", "model", "model gone"]);
}

fn a_process_that_is_stopped_is_woken_to_obey() {
    let service = with(json!({"command": child("append:@DIR/up:x stopped forever")}), "grace_seconds", 60);
    let ended = job(&json!({"services": {"a": service}, "driver": driver("wait:@DIR/up sleep:0.3 exit:0")}));
    assert_eq!((ended.code, ended.all("process_killed").len()), (Some(0), 0), "{}", ended.stderr);
    assert_eq!(ended.the("process_exited", "a")["signal"], json!(15));
}

fn told_to_stop_in_order() {
    for (signal, code) in [
        (Signal::SIGTERM, 143),
        (Signal::SIGINT, 130),
        (Signal::SIGHUP, 129),
        (Signal::SIGQUIT, 131),
        // What else ends a process that does not expect it.
        (Signal::SIGUSR1, 138),
        (Signal::SIGUSR2, 140),
        (Signal::SIGALRM, 142),
        (Signal::SIGVTALRM, 154),
        (Signal::SIGPROF, 155),
        (Signal::SIGXCPU, 152),
        (Signal::SIGIO, 157),
        (Signal::SIGPWR, 158),
        (Signal::SIGSTKFLT, 144),
    ] {
        if is_ignored(signal) {
            // Started by `nohup`, say: what comes ignored stays ignored, in gymrun too.
            continue;
        }
        let running = Job::start(&json!({"servers": {
            "model": server("trap:TERM:@DIR/stops:model:0:0 serve:${port:self} forever"),
            "agent": with(server("daemon { forever } trap:TERM:@DIR/stops:agent:0:0 serve:${port:self} append:@DIR/up:x forever"), "depends_on", json!(["model"])),
        }}));
        running.wait_for_event("process_ready", "agent");
        running.signal(signal);
        let ended = running.end();
        assert_eq!((ended.code, ended.class()), (Some(code), "told_to_stop"));
        assert_eq!(ended.lines("stops"), ["agent", "agent gone", "model", "model gone"]);
    }
}

/// `scancel --signal=35` is an order like any other.
fn told_to_stop_by_a_signal_without_a_name() {
    for number in [34, 64] {
        let running =
            Job::start(&json!({"driver": driver("trap:TERM:@DIR/stops:driver:0:0 append:@DIR/up:x forever")}));
        running.wait_for("up");
        let kill = std::process::Command::new("kill").arg(format!("-{number}")).arg(running.pid().to_string()).status();
        assert!(kill.is_ok_and(|status| status.success()));
        let ended = running.end();
        assert_eq!((ended.code, ended.class()), (Some(128 + number), "told_to_stop"));
        assert_eq!(ended.lines("stops")[0], "driver");
    }
}

/// Whoever starts gymrun says which signals are none of its business.
fn what_is_ignored_stays_ignored() {
    for signal in [Signal::SIGHUP, Signal::SIGUSR1, Signal::SIGALRM] {
        let script = format!("trap '' {}; exec \"$0\" run \"$1\"", &signal.as_str()[3..]);
        let running = Job::start_by(&json!({"driver": driver("append:@DIR/up:x forever")}), &["sh", "-c", &script]);
        running.wait_for("up");
        running.signal(signal);
        running.signal(Signal::SIGTERM);
        assert_eq!(running.end().code, Some(143));
    }
}

/// A signal that comes before gymrun can hear it, or was held back by who started gymrun, is obeyed.
fn told_to_stop_before_it_can_hear() {
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGINT, 130)] {
        let description = json!({
            "servers": {"a": server("serve:${port:self} forever")},
            "driver": driver("append:@DIR/ran:x forever"),
        });
        let ended = Job::start_with(&description, |command| tell_beforehand(command, signal)).end();
        assert_eq!((ended.code, ended.class()), (Some(code), "told_to_stop"));
        assert!(ended.all("process_started").is_empty(), "it was told before");
        // In whatever moment of its beginning.
        let held: SigSet = [signal].into_iter().collect();
        held.thread_block().expect("a mask");
        let running = Job::start(&description);
        running.signal(signal);
        held.thread_unblock().expect("a mask");
        let ended = running.end();
        assert_eq!((ended.code, ended.class()), (Some(code), "told_to_stop"));
    }
}

fn a_second_signal_kills_at_once() {
    let running = Job::start(&json!({
        "servers": {"a": with(server("ignore:TERM serve:${port:self} forever"), "grace_seconds", 600)},
        "driver": with(driver("ignore:TERM append:@DIR/up:x forever"), "grace_seconds", 600),
    }));
    running.wait_for("up");
    running.signal(Signal::SIGTERM);
    running.wait_for_event("process_stopping", "driver");
    // Whoever is in earnest presses on.
    running.signal_until_it_ends(Signal::SIGINT);
    let ended = running.end();
    // What came first decides.
    assert_eq!((ended.code, ended.class()), (Some(143), "told_to_stop"));
    assert!(ended.warned("told to stop once more"));
}

/// A signal may come twice, from the group and from who forwards it: that is one order, and everybody has the grace.
fn a_signal_with_its_echo_is_one() {
    let running = Job::start(&json!({
        "driver": driver("trap:TERM:@DIR/stops:driver:0.5:0 append:@DIR/up:x forever"),
    }));
    running.wait_for("up");
    // At once, however seldom this test itself gets to run.
    running.signal(Signal::SIGSTOP);
    let stat = format!("/proc/{}/stat", running.pid());
    eventually("it stands still", || std::fs::read_to_string(&stat).ok()?.contains(") T ").then_some(()));
    for signal in [Signal::SIGTERM, Signal::SIGQUIT, Signal::SIGCONT] {
        running.signal(signal);
    }
    let ended = running.end();
    // Of two that wait the kernel says which comes first.
    assert!(matches!(ended.code, Some(143 | 131)), "{:?}", ended.code);
    assert_eq!(ended.class(), "told_to_stop");
    assert_eq!(ended.lines("stops"), ["driver", "driver gone"]);
    assert!(!ended.warned("told to stop once more"));
}

fn the_time_limit_is_124() {
    let ended = job(&json!({
        // In which the driver gets as far as to obey in its own way, on a busy machine too.
        "time_limit_seconds": 5,
        "servers": {"a": server("serve:${port:self} forever")},
        "driver": driver("trap:TERM:@DIR/stops:driver:0:0 forever"),
    }));
    assert_eq!((ended.code, ended.class()), (Some(124), "time_limit"));
    assert_eq!(ended.lines("stops"), ["driver", "driver gone"]);
}
