//! Processes that are started again, and those that hang.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cases::Case;
use crate::harness::eventually;
use crate::job::{Ended, Job, job};
use crate::jobs::{child, driver, server, with};
use nix::sys::signal::Signal;

pub const CASES: &[Case] = &[
    ("a_death_is_made_good_on_the_same_port", a_death_is_made_good_on_the_same_port),
    ("one_death_too_many_ends_the_job", one_death_too_many_ends_the_job),
    ("one_death_too_many_is_ignored_if_the_job_says_so", one_death_too_many_is_ignored_if_the_job_says_so),
    ("deaths_that_are_older_than_the_window_are_forgotten", deaths_that_are_older_than_the_window_are_forgotten),
    ("a_task_is_tried_again_until_it_succeeds", a_task_is_tried_again_until_it_succeeds),
    ("what_a_death_leaves_behind_is_gone_before_the_restart", what_a_death_leaves_behind_is_gone_before_the_restart),
    ("dependants_go_before_and_come_after", dependants_go_before_and_come_after),
    ("dependants_go_on_undisturbed_unless_asked", dependants_go_on_undisturbed_unless_asked),
    ("a_program_that_is_missing_is_not_tried_again", a_program_that_is_missing_is_not_tried_again),
    ("a_server_that_never_gets_ready_is_tried_again", a_server_that_never_gets_ready_is_tried_again),
    ("a_server_that_hangs_ends_the_job", a_server_that_hangs_ends_the_job),
    ("a_bad_answer_is_told_as_what_it_is", a_bad_answer_is_told_as_what_it_is),
    ("a_server_that_hangs_is_started_again", a_server_that_hangs_is_started_again),
    ("a_server_that_hangs_may_be_done_without", a_server_that_hangs_may_be_done_without),
    ("a_stop_does_not_wait_for_a_back_off", a_stop_does_not_wait_for_a_back_off),
];

fn restarted(server: Value) -> Value {
    with(server, "on_exit", "restart")
}

/// Notes its start, serves, and does `end` as often as `@DIR/FILE` is put there.
fn until(file: &str, end: &str) -> Value {
    server(&format!("append:@DIR/starts:x serve:${{port:self}} wait:@DIR/{file} remove:@DIR/{file} {end}"))
}

fn touch(job: &Job, name: &str) {
    std::fs::write(job.path(name), "").expect("a scratch file");
}

/// Waits until a process has been ready that often.
fn wait_until_ready(job: &Job, process: &str, times: usize) {
    eventually("it is ready", || {
        let events = job.events();
        let ready = events.iter().filter(|e| e["event"] == "process_ready" && e["process"] == process);
        (ready.count() >= times).then_some(())
    });
}

/// A job whose server `a` does what `cause` makes it do, is ready once more, and lives to the end.
fn runs_twice(a: &Value, cause: &str) -> Ended {
    let running = begin(a, cause);
    // It is probed on the port that it was given at first.
    wait_until_ready(&running, "a", 2);
    touch(&running, "end");
    let ended = running.end();
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.lines("starts").len(), 2);
    ended
}

/// A job of a server `a` and a driver that runs until it is told; once both run, `cause` is put there.
fn begin(a: &Value, cause: &str) -> Job {
    let running = Job::start(&json!({"servers": {"a": a}, "driver": driver("wait:@DIR/end")}));
    wait_until_ready(&running, "driver", 1);
    touch(&running, cause);
    running
}

fn a_death_is_made_good_on_the_same_port() {
    let ended = runs_twice(&restarted(until("die", "print:bye exit:7")), "die");
    let restarting = ended.the("process_restarting", "a");
    assert_eq!((&restarting["number"], &restarting["limit"]), (&json!(1), &json!(5)));
    assert_eq!(ended.lines("logs/a.log"), ["bye"]);
}

fn one_death_too_many_ends_the_job() {
    let ended = job(&json!({
        "servers": {"a": with(restarted(server("append:@DIR/starts:x exit:7")), "restart", json!({"limit": 2}))},
        "driver": driver("exit:0"),
    }));
    assert_eq!((ended.code, ended.class()), (Some(125), "start_failed"));
    assert_eq!(ended.lines("starts").len(), 3);
    assert_eq!(ended.all("process_restarting").len(), 2);
    let said = "`a` exited 7 before it was ready, and its limit of 2 restarts in 300 s is used up";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
}

fn deaths_that_are_older_than_the_window_are_forgotten() {
    // It may be started again once in the window, and lives longer than that each time.
    let policy = json!({"limit": 1, "window_seconds": 0.3, "backoff_seconds": 0.01});
    let a = with(restarted(server("append:@DIR/starts:x serve:${port:self} sleep:0.4 exit:7")), "restart", policy);
    let running = Job::start(&json!({"servers": {"a": a}, "driver": driver("wait:@DIR/end")}));
    eventually("it has died often", || {
        let starts = std::fs::read_to_string(running.path("starts")).unwrap_or_default();
        (starts.lines().count() >= 5).then_some(())
    });
    touch(&running, "end");
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.all("process_restarting").iter().all(|event| event["number"] == json!(1)));
}

fn one_death_too_many_is_ignored_if_the_job_says_so() {
    let policy = json!({"limit": 1, "exhausted": "ignore"});
    let ended = job(&json!({
        "servers": {
            "a": with(restarted(server("append:@DIR/starts:x exit:7")), "restart", policy),
            "b": with(server("serve:${port:self} forever"), "depends_on", json!(["a"])),
        },
        "driver": driver("exit:0"),
    }));
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.lines("starts").len(), 2);
    assert_eq!(ended.the("process_skipped", "b")["because"], "a");
}

fn a_task_is_tried_again_until_it_succeeds() {
    let task = json!({
        "type": "task", "on_exit": "restart",
        "command": ["sh", "-c", "echo x >>@DIR/tries; test $(wc -l <@DIR/tries) -ge 3"],
    });
    let ended = job(&json!({"services": {"load": task}, "driver": driver("exit:0")}));
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.lines("tries").len(), 3);
}

fn what_a_death_leaves_behind_is_gone_before_the_restart() {
    // A worker that keeps the port, and obeys nothing but SIGKILL: the next server could not listen.
    let steps =
        "append:@DIR/starts:x serve:${port:self} fork { ignore:TERM forever } wait:@DIR/die remove:@DIR/die exit:1";
    let ended = runs_twice(&with(restarted(server(steps)), "grace_seconds", 0.2), "die");
    let order: Vec<&str> = ended
        .events
        .iter()
        .filter(|e| e["process"] == "a")
        .filter_map(|e| e["event"].as_str())
        .filter(|e| matches!(*e, "process_started" | "process_killed" | "process_gone"))
        .collect();
    let once = ["process_started", "process_killed", "process_gone"];
    assert_eq!(order, [once, once].concat());
}

fn dependants_go_before_and_come_after() {
    let model = until("die", "exit:1");
    let agent = with(server("serve:${port:self} forever"), "depends_on", json!(["model"]));
    let running = Job::start(&json!({
        "servers": {
            "model": with(restarted(model), "restart", json!({"also_dependants": true})),
            "agent": with(agent, "stop_signal", "TERM"),
            "other": server("serve:${port:self} forever"),
        },
        "driver": driver("wait:@DIR/end"),
    }));
    wait_until_ready(&running, "driver", 1);
    touch(&running, "die");
    wait_until_ready(&running, "agent", 2);
    touch(&running, "end");
    let ended = running.end();
    assert_eq!(ended.code, Some(0));
    let begun = ended.events.iter().skip_while(|e| e["event"] != "process_restarting");
    let order: Vec<String> = begun
        .take_while(|e| e["event"] != "stopping")
        .filter(|e| matches!(e["event"].as_str(), Some("process_gone" | "process_ready")))
        .map(|e| format!("{} {}", e["process"].as_str().unwrap_or_default(), e["event"].as_str().unwrap_or_default()))
        .collect();
    assert_eq!(order, ["agent process_gone", "model process_gone", "model process_ready", "agent process_ready"]);
}

fn dependants_go_on_undisturbed_unless_asked() {
    let running = Job::start(&json!({
        "servers": {
            "model": restarted(until("die", "exit:1")),
            "agent": with(server("serve:${port:self} forever"), "depends_on", json!(["model"])),
        },
        "driver": driver("wait:@DIR/end exit:4"),
    }));
    wait_until_ready(&running, "driver", 1);
    touch(&running, "die");
    wait_until_ready(&running, "model", 2);
    touch(&running, "end");
    let ended = running.end();
    assert_eq!(ended.code, Some(4), "{}", ended.stderr);
    for process in ["agent", "driver"] {
        ended.the("process_started", process);
        assert_eq!(ended.the("process_exited", process)["expected"], json!(true));
    }
}

fn a_program_that_is_missing_is_not_tried_again() {
    let ended = job(&json!({
        "servers": {"a": restarted(json!({"command": ["/no/such/program"], "port": "auto"}))},
        "driver": driver("exit:0"),
    }));
    assert_eq!((ended.code, ended.class()), (Some(125), "start_failed"));
    assert!(ended.all("process_restarting").is_empty());
}

fn a_server_that_never_gets_ready_is_tried_again() {
    // The first never listens.
    let own = std::env::current_exe().expect("a test has a file");
    let own = own.display();
    let shell = format!("if mkdir @DIR/first; then sleep 1000; fi; exec '{own}' child serve:${{port:self}} forever");
    let check = json!({"timeout_seconds": 1});
    let server = json!({"command": ["sh", "-c", shell], "port": "auto", "health_check": check, "grace_seconds": 1});
    let server = with(restarted(server), "restart", json!({"limit": 50}));
    let ended = job(&json!({"servers": {"a": server}, "driver": driver("exit:0")}));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // A busy machine may need more than one.
    assert!(!ended.all("process_not_ready").is_empty());
    assert_eq!(ended.all("process_restarting").len(), ended.all("process_not_ready").len());
}

/// Serves, and stops like one whose interpreter lock is held once `@DIR/hang` is there.
fn hangs() -> Value {
    let server = until("hang", "raise:STOP");
    // Long enough for one that is only busy.
    with(with(server, "liveness", json!({"request_timeout_seconds": 2})), "grace_seconds", 0.2)
}

fn a_server_that_hangs_ends_the_job() {
    let ended = begin(&hangs(), "hang").end();
    assert_eq!((ended.code, ended.class()), (Some(125), "process_died"));
    assert_eq!(ended.the("process_hung", "a")["failures"], json!(2));
    assert!(ended.stderr.contains("2 times in a row, last answer: no answer within 2 s"), "{}", ended.stderr);
}

fn a_bad_answer_is_told_as_what_it_is() {
    let closes = server("listen:own4:${port:self}:200:closes=@DIR/bad forever");
    for (a, liveness, answer) in [
        (closes, json!({}), "connection refused"),
        (server("listen:own4:${port:self}:200:turns=@DIR/bad forever"), json!({"path": "/alive"}), "404 at /alive"),
        (
            server("serve:${port:self} forever"),
            json!({"type": "exec", "command": ["sh", "-c", "test ! -e bad || exit 7"]}),
            "exited 7",
        ),
    ] {
        let ended = begin(&with(a, "liveness", liveness), "bad").end();
        assert_eq!((ended.code, ended.class()), (Some(125), "process_died"), "{}", ended.stderr);
        let said = format!("`a` failed its liveness probe 2 times in a row, last answer: {answer}");
        assert!(ended.stderr.contains(&said), "no {said} in {}", ended.stderr);
    }
}

fn a_server_that_hangs_is_started_again() {
    runs_twice(&restarted(hangs()), "hang");
}

fn a_server_that_hangs_may_be_done_without() {
    let running = begin(&with(hangs(), "on_exit", "ignore"), "hang");
    running.wait_for_event("process_gone", "a");
    touch(&running, "end");
    assert_eq!(running.end().code, Some(0));
}

fn a_stop_does_not_wait_for_a_back_off() {
    let policy = json!({"backoff_seconds": 3600, "backoff_max_seconds": 3600});
    let running = Job::start(&json!({
        "servers": {"a": with(restarted(until("die", "exit:1")), "restart", policy)},
        "driver": json!({"command": child("forever"), "grace_seconds": 1}),
    }));
    wait_until_ready(&running, "driver", 1);
    touch(&running, "die");
    running.wait_for_event("process_gone", "a");
    running.signal(Signal::SIGTERM);
    let ended = running.end();
    assert_eq!(ended.code, Some(143));
    let elapsed = |kind: &str| ended.all(kind)[0]["elapsed_seconds"].as_f64().expect("a number");
    assert!(Duration::from_secs_f64(elapsed("job_ended") - elapsed("stopping")) < Duration::from_mins(10));
}
