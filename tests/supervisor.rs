//! Real jobs of real processes, seen from outside: start, readiness, ends of every kind, order, and that nothing is left.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    clippy::disallowed_methods,
    reason = "a runner of cases and a program that misbehaves: printing and exiting is what they are for"
)]
#![allow(
    clippy::needless_for_each,
    clippy::default_trait_access,
    clippy::semicolon_if_nothing_returned,
    reason = "tests"
)]

mod support;

use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use support::job::{Job, child, job};
use support::outside::{alive, eventually, zombies};

fn main() -> ExitCode {
    support::main(&[
        ("units_start_when_what_they_need_is_ready", units_start_when_what_they_need_is_ready),
        ("the_drivers_end_is_passed_on_exactly", the_drivers_end_is_passed_on_exactly),
        ("a_driver_that_cannot_start_ends_as_in_a_shell", a_driver_that_cannot_start_ends_as_in_a_shell),
        ("a_server_that_cannot_start_is_named_with_its_path", a_server_that_cannot_start_is_named_with_its_path),
        ("a_busy_port_is_named_with_its_holder", a_busy_port_is_named_with_its_holder),
        ("a_range_gives_the_lowest_free_port", a_range_gives_the_lowest_free_port),
        ("a_stranger_on_the_port_does_not_answer_for_a_server", a_stranger_on_the_port_does_not_answer_for_a_server),
        ("death_while_waiting_is_noticed_at_once", death_while_waiting_is_noticed_at_once),
        ("not_ready_in_time_stops_the_others", not_ready_in_time_stops_the_others),
        ("a_503_is_waited_for_past_any_proxy", a_503_is_waited_for_past_any_proxy),
        ("exec_and_tcp_probes_and_tasks", exec_and_tcp_probes_and_tasks),
        ("a_failed_need_skips_those_that_depend_on_it", a_failed_need_skips_those_that_depend_on_it),
        ("a_death_in_mid_run_ends_the_job", a_death_in_mid_run_ends_the_job),
        ("an_ignored_death_is_a_warning", an_ignored_death_is_a_warning),
        ("stop_order_is_the_reverse_of_the_start", stop_order_is_the_reverse_of_the_start),
        ("trees_are_killed_whole", trees_are_killed_whole),
        ("daemons_are_found_and_counted", daemons_are_found_and_counted),
        ("orphans_leave_no_zombies", orphans_leave_no_zombies),
        ("probes_that_are_given_up_leave_nothing", probes_that_are_given_up_leave_nothing),
        ("what_was_there_before_is_left_alone", what_was_there_before_is_left_alone),
        ("many_short_processes_are_all_told", many_short_processes_are_all_told),
        ("a_background_process_does_not_delay_the_end", a_background_process_does_not_delay_the_end),
        ("output_is_kept_and_shown_byte_for_byte", output_is_kept_and_shown_byte_for_byte),
        ("closed_outputs_cost_nothing", closed_outputs_cost_nothing),
        ("a_reader_that_goes_away_changes_nothing", a_reader_that_goes_away_changes_nothing),
        ("a_slow_reader_does_not_cost_the_log_a_byte", a_slow_reader_does_not_cost_the_log_a_byte),
        ("piped_lines_are_whole_and_prefixed", piped_lines_are_whole_and_prefixed),
        ("told_to_stop_in_order", told_to_stop_in_order),
        ("a_second_signal_kills_at_once", a_second_signal_kills_at_once),
        ("the_time_limit_is_124", the_time_limit_is_124),
        ("a_killed_gymrun_takes_its_children_along", a_killed_gymrun_takes_its_children_along),
        ("memory_of_trees", memory_of_trees),
        ("children_start_clean", children_start_clean),
        ("the_collector_is_first_and_last", the_collector_is_first_and_last),
        ("an_otelcol_is_waited_for_and_asked", an_otelcol_is_waited_for_and_asked),
        (
            "a_collector_that_dies_changes_nothing_unless_required",
            a_collector_that_dies_changes_nothing_unless_required,
        ),
        ("a_collector_that_does_not_start_ends_the_job", a_collector_that_does_not_start_ends_the_job),
        ("jobs_side_by_side_never_share_a_port", jobs_side_by_side_never_share_a_port),
    ])
}

fn server(steps: &str) -> Value {
    json!({"command": child(steps), "port": "auto", "health_check": {"timeout_seconds": 30}})
}

fn with(mut value: Value, key: &str, to: impl Into<Value>) -> Value {
    value[key] = to.into();
    value
}

fn driver(steps: &str) -> Value {
    json!({"command": child(steps)})
}

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

fn a_busy_port_is_named_with_its_holder() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let port = listener.local_addr().expect("bound").port();
    let ended = job(&json!({"servers": {"a": {"command": child("forever"), "port": port}}}));
    assert_eq!((ended.code, ended.class()), (Some(125), "gymrun_failed"));
    assert!(ended.all("process_started").is_empty());
    let said = format!("port {port} of `a` is busy: it is held by pid {}", std::process::id());
    assert!(ended.stderr.contains(&said), "{}", ended.stderr);
}

fn a_range_gives_the_lowest_free_port() {
    // Held in the other family only, and lingering after a connection: the first is taken, the second is not.
    let Ok(listener) = std::net::TcpListener::bind("[::1]:0") else {
        println!("skipped: no IPv6");
        return;
    };
    let port = listener.local_addr().expect("bound").port();
    let next = std::net::TcpListener::bind(("127.0.0.1", port + 1));
    if let Ok(next) = next {
        let client = std::net::TcpStream::connect(("127.0.0.1", port + 1)).expect("loopback");
        drop(next.accept());
        drop(client);
        drop(next);
        let ended = job(&json!({
            "servers": {"a": with(server("serve:${port:self} forever"), "port", format!("{port}-{}", port + 9))},
            "driver": driver("exit:0"),
        }));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert_eq!(ended.all("ports_chosen")[0]["ports"]["a"], json!(port + 1));
    }
}

fn a_stranger_on_the_port_does_not_answer_for_a_server() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("loopback").port();
    for port in [json!("auto"), json!(free)] {
        stranger_on(&port);
    }
}

fn stranger_on(port: &Value) {
    // Two units of one job, the first of which listens on the other's port.
    let ended = job(&json!({
        "servers": {
            "thief": with(server("serve:${port:victim} serve:${port:self} forever"), "depends_on", json!([])),
            "victim": {
                "command": child("forever"), "port": port, "depends_on": ["thief"], "health_check": {"timeout_seconds": 1},
            },
        },
    }));
    assert_eq!(ended.code, Some(125));
    let answer = ended.the("process_not_ready", "victim")["answer"].as_str().unwrap_or_default().to_owned();
    assert!(answer.contains("not by this process"), "{answer}");
}

fn death_while_waiting_is_noticed_at_once() {
    let start = Instant::now();
    let ended = job(
        &json!({"servers": {"a": with(server("print:loading eprint:CUDA_boom exit:7"), "health_check", json!({"timeout_seconds": 600}))}}),
    );
    assert!(start.elapsed() < Duration::from_secs(20));
    assert_eq!((ended.code, ended.class()), (Some(125), "start_failed"));
    let exited = ended.the("process_exited", "a");
    assert_eq!((&exited["code"], &exited["was_ready"], &exited["expected"]), (&json!(7), &json!(false), &json!(false)));
    assert_eq!(exited["last_lines"], json!(["loading", "CUDA_boom"]));
}

fn not_ready_in_time_stops_the_others() {
    let ended = job(&json!({
        "servers": {
            "a": server("trap:TERM:@DIR/stops:a:0:0 serve:${port:self} forever"),
            "b": with(server("forever"), "health_check", json!({"timeout_seconds": 0.5})),
        },
        "driver": driver("pid:@DIR/ran"),
    }));
    assert_eq!((ended.code, ended.class()), (Some(125), "start_failed"));
    assert_eq!(ended.the("process_not_ready", "b")["answer"], "connection refused");
    assert_eq!(ended.lines("stops"), ["a", "a gone"]);
    assert!(ended.file("ran").is_empty());
}

fn a_503_is_waited_for_past_any_proxy() {
    let description = json!({
        "servers": {"a": {
            "command": child("until:${port:self}:@DIR/loaded pid:@DIR/up forever"),
            "port": "auto",
            "health_check": {"host": "localhost"},
        }},
        "driver": driver("append:@DIR/ran:yes"),
    });
    let proxied = Job::start_with(&description, |command| {
        command.env("http_proxy", "http://127.0.0.1:9").env("ALL_PROXY", "http://127.0.0.1:9");
    });
    let waiting = proxied.wait_for_event("process_waiting", "a");
    assert_eq!(waiting["answer"], "503 at /health");
    assert!(!proxied.path("ran").exists());
    std::fs::write(proxied.path("loaded"), "").expect("a scratch file");
    let ended = proxied.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.all("process_waiting").len(), 1);
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

fn a_death_in_mid_run_ends_the_job() {
    let running = Job::start(&json!({
        "servers": {"a": server("pid:@DIR/a serve:${port:self} eprint:last_words forever")},
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
    let ended = job(&json!({
        "servers": {
            "a": with(server("serve:${port:self} wait:@DIR/ran exit:3"), "on_exit", "ignore"),
            "b": with(server("exit:3"), "on_exit", "ignore"),
            "c": with(server("forever"), "depends_on", json!(["b"])),
        },
        "driver": driver("append:@DIR/ran:x sleep:0.3 exit:5"),
    }));
    assert_eq!((ended.code, ended.class()), (Some(5), "driver_failed"));
    assert_eq!(ended.all("warning").len(), 2);
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

fn trees_are_killed_whole() {
    let ended = job(&json!({
        "servers": {
            // The leader obeys, a member of its group does not.
            "leader": with(server("fork { ignore:TERM forever } serve:${port:self} forever"), "grace_seconds", 0.5),
            // A background process of a shell ignores SIGINT, and so does a daemon of one: SIGTERM does it.
            "shell": with(with(server("fork { ignore:INT forever } daemon { ignore:INT forever } serve:${port:self} forever"), "grace_seconds", 20), "stop_signal", "INT"),
            // Neither obeys, and two workers have gone to groups of their own.
            "stubborn": with(server("fork { forever } daemon { ignore:TERM forever } ignore:TERM serve:${port:self} forever"), "grace_seconds", 0.5),
        },
        "driver": driver("exit:0"),
    }));
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.the("process_killed", "leader")["processes"], json!(1));
    assert!(!ended.all("process_killed").iter().any(|e| e["process"] == "shell"));
    assert!(ended.the("process_killed", "stubborn")["processes"].as_u64() >= Some(2));
}

fn daemons_are_found_and_counted() {
    let running = Job::start(&json!({
        "pss": true,
        "servers": {"a": server("daemon { hold:64 pid:@DIR/daemon forever } serve:${port:self} forever")},
        "driver": driver("wait:@DIR/seen"),
    }));
    running.wait_for("daemon");
    let sample = eventually("a sample with the daemon", || {
        let text = std::fs::read_to_string(running.path("events.jsonl")).ok()?;
        let samples = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        samples
            .filter(|e| e["event"] == "memory_sampled")
            .map(|e| e["trees"][0].clone())
            .find(|t| t["processes"] == 2 && t["pss"].as_u64() > Some(64 << 20))
    });
    assert!(sample["rss"].as_u64() > sample["pss"].as_u64(), "{sample}");
    std::fs::write(running.path("seen"), "").expect("a scratch file");
    let ended = running.end();
    assert_eq!(ended.code, Some(0));
    // It is told to stop, not killed: it obeys.
    assert!(ended.all("process_killed").is_empty());
}

fn orphans_leave_no_zombies() {
    let running = Job::start(&json!({
        "servers": {"a": server("orphans:200 append:@DIR/done:x serve:${port:self} forever")},
        "driver": driver("wait:@DIR/seen"),
    }));
    running.wait_for("done");
    eventually("all orphans are reaped", || (zombies(running.pid().cast_unsigned()) == 0).then_some(()));
    std::fs::write(running.path("seen"), "").expect("a scratch file");
    assert_eq!(running.end().code, Some(0));
}

fn probes_that_are_given_up_leave_nothing() {
    // Each request is over before its command has done anything; `end` sees that nothing is left, each time.
    for _ in 0..25 {
        let ended = job(&json!({"services": {"a": {
            "command": child("sleep:0.1"),
            "health_check": {
                "type": "exec", "command": ["sh", "-c", "sleep 4322 & exec sleep 4323"], "request_timeout_seconds": 0.004,
            },
        }}}));
        assert_eq!(ended.code, Some(125), "{}", ended.stderr);
    }
}

fn what_was_there_before_is_left_alone() {
    // gymrun takes the place of a shell that has two children already, one of which is orphaned in mid-run.
    let script = r#"sleep 77 >/dev/null 2>&1 & echo $! >"$1/before"; sh -c 'setsid sleep 78 >/dev/null 2>&1 & echo $! >"$1/orphan"; sleep 0.3' x "$1" & exec "$0" run "$1""#;
    let running = Job::start_by(
        &json!({"driver": with(driver("daemon { ignore:TERM forever } sleep:1"), "grace_seconds", 0.3)}),
        &["sh", "-c", script],
    );
    let pids = ["before", "orphan"].map(|file| running.wait_for(file).trim().parse::<i32>().expect("a pid"));
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for pid in pids {
        let pid = nix::unistd::Pid::from_raw(pid);
        assert!(nix::sys::signal::kill(pid, Signal::SIGKILL).is_ok(), "it was killed");
    }
}

fn many_short_processes_are_all_told() {
    // A task starts each 5 ms in ten chains of twenty, beside a server whose process has 400 orphans to give away.
    let mut services = serde_json::Map::new();
    for chain in 0..10 {
        for link in 0..20 {
            let task = json!({"type": "task", "command": ["true"], "depends_on": []});
            let before = (link > 0).then(|| format!("t{chain}-{}", link - 1));
            services.insert(
                format!("t{chain}-{link}"),
                with(task, "depends_on", json!(before.into_iter().collect::<Vec<_>>())),
            );
        }
    }
    services.insert("orphans".into(), json!({"command": child("orphans:400 append:@DIR/done:x forever")}));
    let running = Job::start(&json!({"services": services, "driver": driver("wait:@DIR/done")}));
    let pid = running.pid().cast_unsigned();
    running.wait_for("done");
    let zombies = zombies(pid);
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let exits: Vec<&Value> = ended.all("process_exited");
    assert_eq!(exits.iter().filter(|e| e["code"] == 0 && e["expected"] == true).count(), 201);
    assert!(zombies < 50, "{zombies} zombies at once");
}

fn a_background_process_does_not_delay_the_end() {
    let start = Instant::now();
    let ended = job(&json!({"driver": driver("fork { forever } print:done exit:0")}));
    assert_eq!((ended.code, ended.stdout.as_slice()), (Some(0), b"done\n".as_slice()));
    assert!(start.elapsed() < Duration::from_secs(30));
}

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
        "servers": {"a": with(server("close serve:${port:self} append:@DIR/up:x forever"), "log", "pipe")},
        "driver": driver("wait:@DIR/seen"),
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
    assert_eq!(running.end().code, Some(0));
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
    assert!(lost.contains("bytes of its output are not shown"), "{lost}");
}

fn piped_lines_are_whole_and_prefixed() {
    let ended = job(&json!({
        "servers": {"a": with(server("print:one print:two serve:${port:self} forever"), "log", "pipe")},
        "driver": driver("exit:0"),
    }));
    assert_eq!(ended.code, Some(0));
    for line in ["[a] one", "[a] two"] {
        assert!(ended.stderr.lines().any(|l| l == line), "{}", ended.stderr);
    }
    assert_eq!(ended.file("logs/a.log"), b"one\ntwo\n");
}

fn told_to_stop_in_order() {
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGINT, 130), (Signal::SIGHUP, 129)] {
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

fn a_second_signal_kills_at_once() {
    let running = Job::start(&json!({
        "servers": {"a": with(server("ignore:TERM serve:${port:self} forever"), "grace_seconds", 600)},
        "driver": with(driver("ignore:TERM append:@DIR/up:x forever"), "grace_seconds", 600),
    }));
    running.wait_for("up");
    running.signal(Signal::SIGTERM);
    running.wait_for_event("process_stopping", "driver");
    running.signal(Signal::SIGINT);
    let ended = running.end();
    // What came first decides.
    assert_eq!((ended.code, ended.class()), (Some(143), "told_to_stop"));
}

fn the_time_limit_is_124() {
    let ended = job(&json!({
        "time_limit_seconds": 0.5,
        "servers": {"a": server("serve:${port:self} forever")},
        "driver": driver("trap:TERM:@DIR/stops:driver:0:0 forever"),
    }));
    assert_eq!((ended.code, ended.class()), (Some(124), "time_limit"));
    assert_eq!(ended.lines("stops"), ["driver", "driver gone"]);
}

fn a_killed_gymrun_takes_its_children_along() {
    let running = Job::start(&json!({
        "servers": {"a": server("serve:${port:self} forever")},
        "driver": driver("append:@DIR/up:x forever"),
    }));
    running.wait_for("up");
    let id = running.id.clone();
    running.signal(Signal::SIGKILL);
    eventually("the children are gone", || alive(&id).is_empty().then_some(()));
    assert_eq!(running.end().code, None);
}

fn memory_of_trees() {
    let ended = job(&json!({
        "pss": true,
        "servers": {
            "threads": with(server("hold:64 threads:50 serve:${port:self} forever"), "type", "resources_servers"),
            "forks": with(server("hold:64 fork { forever } fork { forever } serve:${port:self} forever"), "type", "resources_servers"),
        },
        "driver": driver("sleep:0.5"),
    }));
    assert_eq!(ended.code, Some(0));
    let samples = ended.all("memory_sampled");
    assert!(samples.len() >= 3);
    let first = samples[0];
    assert_eq!(first["servers_active"], json!(2));
    assert!(first["host"]["total"].as_u64() > Some(1 << 30));
    let tree = |name: &str| {
        first["trees"].as_array().and_then(|t| t.iter().find(|t| t["process"] == name)).expect("a tree").clone()
    };
    let mib = |value: &Value| value.as_u64().expect("bytes") >> 20;
    let threads = tree("threads");
    assert_eq!((&threads["processes"], &threads["type"]), (&json!(1), &json!("resources_servers")));
    assert!((64..120).contains(&mib(&threads["rss"])), "{threads}");
    let forks = tree("forks");
    assert_eq!(forks["processes"], json!(3));
    assert!(mib(&forks["rss"]) >= 3 * 64 && (64..120).contains(&mib(&forks["pss"])), "{forks}");
    // The last sample comes before the first server is stopped.
    let position = |kind: &str, process: &str| {
        ended.events.iter().rposition(|e| e["event"] == kind && (process.is_empty() || e["process"] == process))
    };
    assert!(
        position("memory_sampled", "")
            < position("process_stopping", "threads").min(position("process_stopping", "forks"))
    );
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

const DRAINS: &str = "trap:TERM:@DIR/order:collector-TERM:0:0 collector:${port:self.health}:@DIR/order forever";

fn draining(report: &str) -> Value {
    let steps = format!("append:@DIR/order:collector write:@DIR/otel/delivery.json:{report} {DRAINS}");
    json!({"command": child(&steps), "health_check": {"path": "/"}})
}

fn the_collector_is_first_and_last() {
    let report = r#"{"traces":{"received":8,"written":8,"rejected":2},"last_error":"500"}"#;
    for (required, code, class) in [(false, 0, "ok"), (true, 125, "telemetry_undelivered")] {
        let ended = job(&json!({
            "otel": with(draining(report), "required", required),
            "servers": {"a": server("append:@DIR/order:server trap:TERM:@DIR/order:server-TERM:0:0 serve:${port:self} forever")},
            "driver": driver("append:@DIR/order:driver"),
        }));
        assert_eq!((ended.code, ended.class()), (Some(code), class), "{}", ended.stderr);
        let order = ended.lines("order");
        assert_eq!(order[..4], ["collector", "server", "driver", "/-/scrape?last=true"]);
        assert_eq!(order[4..6], ["server-TERM", "server-TERM gone"]);
        let seconds: f64 = order[6].strip_prefix("/-/stop?seconds=").and_then(|s| s.parse().ok()).expect("a limit");
        assert!((29.0..=30.0).contains(&seconds), "{seconds}");
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

fn a_collector_that_dies_changes_nothing_unless_required() {
    for (required, code) in [(false, 0), (true, 125)] {
        let otel = json!({"command": child("collector:${port:self.health}:@DIR/order wait:@DIR/ran raise:KILL"), "health_check": {"path": "/"}});
        let ended = job(&json!({
            "otel": with(otel, "required", required),
            "driver": driver("append:@DIR/ran:x sleep:0.5"),
        }));
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        assert_eq!(ended.the("process_exited", "otel_collector")["signal"], json!(9));
        assert!(
            ended
                .all("warning")
                .iter()
                .any(|w| w["message"].as_str().is_some_and(|m| m.contains("the collector died")))
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

fn jobs_side_by_side_never_share_a_port() {
    // Six jobs of four servers in a range of 26: most choices collide at first.
    let servers: serde_json::Map<String, Value> =
        (0..4).map(|n| (format!("s{n}"), server("serve:${port:self} forever"))).collect();
    let description = json!({"auto_ports": [21_000, 21_025], "servers": servers, "driver": driver("wait:@DIR/seen")});
    let jobs: Vec<Job> = (0..6).map(|_| Job::start(&description)).collect();
    let mut ports = std::collections::BTreeSet::new();
    for running in &jobs {
        running.wait_for_event("process_started", "driver");
        for event in running.events().iter().filter(|e| e["event"] == "ports_chosen") {
            ports.extend(event["ports"].as_object().into_iter().flatten().filter_map(|(_, port)| port.as_u64()));
        }
    }
    assert_eq!(ports.len(), 24);
    for running in jobs {
        std::fs::write(running.path("seen"), "").expect("a scratch file");
        assert_eq!(running.end().code, Some(0));
    }
}
