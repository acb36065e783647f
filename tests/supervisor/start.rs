//! How units start: order, readiness, and what is said when they do not.

use serde_json::json;

use crate::cases::Case;
use crate::job::{Job, job};
use crate::jobs::{child, driver, server, with};

pub const CASES: &[Case] = &[
    ("units_start_when_what_they_need_is_ready", units_start_when_what_they_need_is_ready),
    ("a_driver_that_cannot_start_ends_as_in_a_shell", a_driver_that_cannot_start_ends_as_in_a_shell),
    ("a_server_that_cannot_start_is_named_with_its_path", a_server_that_cannot_start_is_named_with_its_path),
    ("a_variable_that_is_too_long_is_named", a_variable_that_is_too_long_is_named),
    ("death_while_waiting_is_noticed_at_once", death_while_waiting_is_noticed_at_once),
    ("not_ready_in_time_stops_the_others", not_ready_in_time_stops_the_others),
    ("exec_and_tcp_probes_and_tasks", exec_and_tcp_probes_and_tasks),
    ("a_failed_need_skips_those_that_depend_on_it", a_failed_need_skips_those_that_depend_on_it),
    ("children_start_clean", children_start_clean),
    (
        "gymrun_takes_all_descriptors_and_children_get_what_was_given",
        gymrun_takes_all_descriptors_and_children_get_what_was_given,
    ),
    ("whatever_runs_out_of_descriptors_says_the_way_out", whatever_runs_out_of_descriptors_says_the_way_out),
];

fn units_start_when_what_they_need_is_ready() {
    let ended = job(&json!({
        "services": {"model": server("append:@DIR/order:model wait:@DIR/order serve:${port:self} forever")},
        "servers": {
            "tools": server("append:@DIR/order:tools serve:${port:self} forever"),
            "agent": with(server("append:@DIR/order:agent serve:${port:self} forever"), "depends_on", json!(["model", "tools"])),
        },
        "driver": driver("append:@DIR/order:driver"),
    }));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let order = ended.lines("order");
    assert_eq!(order.len(), 4);
    assert_eq!(order[2..], ["agent", "driver"]);
    assert_eq!(ended.class(), "ok");
    let ready_before_all = ended.events.iter().take_while(|e| e["event"] != "all_ready");
    assert_eq!(ready_before_all.filter(|e| e["event"] == "process_ready").count(), 3);
    assert_eq!(ended.all("job_started").len(), 1);
}

fn a_driver_that_cannot_start_ends_as_in_a_shell() {
    let plain = json!({"command": ["./job.json"]});
    let gone = json!({"command": ["true"], "cwd": "/no/such/dir"});
    for (driver, code, words) in [
        (json!({"command": ["no-such-bin"]}), 127, "`no-such-bin` is not found"),
        (plain, 126, "is not executable"),
        (gone, 125, "`/no/such/dir` does not exist"),
    ] {
        let ended = job(&json!({"driver": driver}));
        assert_eq!((ended.code, ended.class()), (Some(code), "driver_not_started"));
        let message = ended.the("spawn_failed", "driver")["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains(words), "{message}");
    }
}

fn a_server_that_cannot_start_is_named_with_its_path() {
    let ended = job(&json!({"servers": {"a": {"command": ["/no/such/bin"]}}, "driver": driver("pid:@DIR/ran")}));
    assert_eq!((ended.code, ended.class()), (Some(125), "start_failed"));
    assert_eq!(ended.the("spawn_failed", "a")["message"], "`/no/such/bin` does not exist");
    assert!(ended.file("ran").is_empty());
}

fn a_variable_that_is_too_long_is_named() {
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten().expect("a size of pages");
    let most = 32 * usize::try_from(page).expect("it is small");
    for (size, code) in [(most, 0), (most + 1, 125)] {
        let value = "x".repeat(size - "LONG=".len() - 1);
        let ended = job(&json!({
            "servers": {"a": with(server("serve:${port:self} forever"), "env", json!({"LONG": value}))},
            "driver": driver("exit:0"),
        }));
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        let named = format!("the variable `LONG` has {size} bytes");
        assert_eq!(ended.stderr.contains(&named) && ended.stderr.contains("a file"), code != 0, "{}", ended.stderr);
        assert_eq!(ended.all("process_started").is_empty(), code != 0);
    }
}

fn death_while_waiting_is_noticed_at_once() {
    // Long before its health check would have given up.
    let ended = job(
        &json!({"servers": {"a": with(server("print:loading eprint:CUDA_boom exit:7"), "health_check", json!({"timeout_seconds": 600}))}}),
    );
    assert_eq!((ended.code, ended.class()), (Some(125), "start_failed"));
    let exited = ended.the("process_exited", "a");
    assert_eq!((&exited["code"], &exited["was_ready"], &exited["expected"]), (&json!(7), &json!(false), &json!(false)));
    assert_eq!(exited["last_lines"], json!(["loading", "CUDA_boom"]));
    assert!(ended.stderr.contains("`a` exited 7 before it was ready"), "{}", ended.stderr);
}

fn not_ready_in_time_stops_the_others() {
    let ended = job(&json!({
        "servers": {
            "a": server("trap:TERM:@DIR/stops:a:0:0 serve:${port:self} forever"),
            "b": with(
                with(server("forever"), "health_check", json!({"timeout_seconds": 0.5})),
                "depends_on",
                // By then it obeys in its own way.
                json!(["a"]),
            ),
        },
        "driver": driver("pid:@DIR/ran"),
    }));
    assert_eq!((ended.code, ended.class()), (Some(125), "start_failed"));
    assert_eq!(ended.the("process_not_ready", "b")["answer"], "connection refused");
    assert_eq!(ended.lines("stops"), ["a", "a gone"]);
    assert!(ended.file("ran").is_empty());
}

fn exec_and_tcp_probes_and_tasks() {
    let ended = job(&json!({
        "services": {"prepare": {"type": "task", "command": child("append:@DIR/order:prepare")}},
        "servers": {
            "a": {
                "command": child("append:@DIR/order:a sleep:0.1 append:@DIR/a.up:x forever"),
                "depends_on": ["prepare"],
                "health_check": {"type": "exec", "command": ["test", "-e", "a.up"]},
            },
            "b": {
                "command": child("append:@DIR/order:b serve:${port:self} forever"),
                "port": "auto",
                "depends_on": ["a"],
                "health_check": {"type": "tcp"},
            },
        },
        "driver": driver("append:@DIR/order:driver"),
    }));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.lines("order"), ["prepare", "a", "b", "driver"]);
    assert_eq!(ended.the("process_exited", "prepare")["expected"], json!(true));
}

fn a_failed_need_skips_those_that_depend_on_it() {
    let ended = job(&json!({
        "servers": {
            "a": server("exit:1"),
            "b": with(server("pid:@DIR/ran forever"), "depends_on", json!(["a"])),
            "c": with(server("pid:@DIR/ran forever"), "depends_on", json!(["b"])),
        },
        "driver": driver("pid:@DIR/ran"),
    }));
    assert_eq!(ended.code, Some(125));
    for skipped in ["b", "c", "driver"] {
        assert_eq!(ended.the("process_skipped", skipped)["because"], "a");
    }
    assert!(ended.file("ran").is_empty());
}

fn children_start_clean() {
    let ended = Job::start_with(
        &json!({"driver": with(driver("environment:@DIR/env exit:0"), "env", json!({"A": "${secret:TOKEN_OF_TEST}", "GONE": false, "PATH": "/nowhere"}))}),
        |command| {
            command
                .env("TOKEN_OF_TEST", "p@s$w0rd ${HOME}")
                .env("GONE", "x")
                .env("GYMRUN_SITE", "x")
                .env("GYMRUN_TEST_SECRET", "x");
        },
    )
    .end();
    assert_eq!(ended.code, Some(0));
    let lines = ended.lines("env");
    assert!(lines.contains(&"A=p@s$w0rd ${HOME}".to_owned()) && lines.contains(&"PATH=/nowhere".to_owned()));
    let own: Vec<&String> =
        lines.iter().filter(|line| line.starts_with("GYMRUN_") || line.starts_with("GONE")).collect();
    assert_eq!(own.len(), 1, "{own:?}");
    assert!(own[0].starts_with("GYMRUN_PROCESS=t") && own[0].ends_with(":driver"));
}

#[expect(unsafe_code, reason = "a limit is set between fork and exec")]
fn gymrun_takes_all_descriptors_and_children_get_what_was_given() {
    let script = "test $(ulimit -Sn)/$(ulimit -Hn) = 128/512 && grep -q '^Max open files *512 *512' /proc/$PPID/limits";
    let ended = Job::start_with(&json!({"driver": {"command": ["/bin/sh", "-c", script]}}), |command| {
        let limit = || Ok(nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE, 128, 512)?);
        // SAFETY: one system call on plain values.
        unsafe { std::os::unix::process::CommandExt::pre_exec(command, limit) };
    })
    .end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[expect(unsafe_code, reason = "a limit is set between fork and exec")]
fn whatever_runs_out_of_descriptors_says_the_way_out() {
    let piped = |need: &str| json!({"command": child("forever"), "log": "pipe", "depends_on": [need]});
    let job = json!({
        "services": {
            "a": {"command": child("forever")},
            "b": piped("a"),
            "c": with(piped("b"), "port", "auto"),
            "d": piped("c"),
            "e": {"command": child("forever"), "depends_on": ["d"]},
        },
        "driver": driver("exit:0"),
    });
    let mut said = String::new();
    // From where the test's own files cannot be opened to where there are enough.
    for most in 10..60 {
        let ended = Job::start_with(&job, |command| {
            let limit =
                move || Ok(nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE, most, most)?);
            // SAFETY: one system call on plain values.
            unsafe { std::os::unix::process::CommandExt::pre_exec(command, limit) };
        })
        .end();
        if ended.code == Some(101) {
            continue;
        }
        let warnings = ended.warnings().into_iter().map(|e| format!("{} {}", e["message"], e["hint"]));
        for line in ended.stderr.lines().map(str::to_owned).chain(warnings) {
            assert!(!line.contains("os error 24") || line.contains("ulimit"), "{most}: {line}");
            said += &line;
        }
        if ended.code == Some(0) {
            break;
        }
    }
    for what in ["cannot open the log", "cannot be written", "cannot make a pipe"] {
        assert!(said.contains(what), "no {what} in {said}");
    }
}
