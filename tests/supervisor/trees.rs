//! Whole trees of processes: found, counted, and gone at the end.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::cases::Case;
use crate::harness::eventually;
use crate::harness::processes::{of_job, zombies};
use crate::job::{Job, job};
use crate::jobs::{child, driver, server, with};

pub const CASES: &[Case] = &[
    ("trees_are_killed_whole", trees_are_killed_whole),
    ("daemons_are_found_and_counted", daemons_are_found_and_counted),
    ("orphans_leave_no_zombies", orphans_leave_no_zombies),
    ("orphans_do_not_pile_up_while_they_come", orphans_do_not_pile_up_while_they_come),
    ("probes_that_are_given_up_leave_nothing", probes_that_are_given_up_leave_nothing),
    ("what_was_there_before_is_left_alone", what_was_there_before_is_left_alone),
    ("many_short_processes_are_all_told", many_short_processes_are_all_told),
    ("a_background_process_does_not_delay_the_end", a_background_process_does_not_delay_the_end),
    ("a_killed_gymrun_takes_its_children_along", a_killed_gymrun_takes_its_children_along),
    ("memory_of_trees", memory_of_trees),
    ("short_lived_children_do_not_disturb_the_sampler", short_lived_children_do_not_disturb_the_sampler),
];

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
    eventually("all orphans are reaped", || (zombies(running.pid()) == 0).then_some(()));
    std::fs::write(running.path("seen"), "").expect("a scratch file");
    assert_eq!(running.end().code, Some(0));
}

fn orphans_do_not_pile_up_while_they_come() {
    // Wave after wave, each as soon as the last is reaped: so there are never more zombies than are in one wave.
    const WAVES: usize = 50;
    let wave = |wave: usize| format!("orphans:5 append:@DIR/waves:x wait:@DIR/go{wave}");
    let waves: Vec<String> = (0..WAVES).map(wave).collect();
    let waves = waves.join(" ");
    let running = Job::start(&json!({
        "servers": {"a": server(&format!("serve:${{port:self}} {waves} forever"))},
        "driver": driver("wait:@DIR/seen"),
    }));
    for wave in 0..WAVES {
        eventually("a wave", || {
            let waves = std::fs::read_to_string(running.path("waves")).unwrap_or_default();
            let now = zombies(running.pid());
            assert!(now <= 5, "{now} zombies");
            (waves.lines().count() > wave).then_some(())
        });
        eventually("the wave is reaped", || (zombies(running.pid()) == 0).then_some(()));
        std::fs::write(running.path(&format!("go{wave}")), "").expect("a scratch file");
    }
    std::fs::write(running.path("seen"), "").expect("a scratch file");
    assert_eq!(running.end().code, Some(0));
}

fn probes_that_are_given_up_leave_nothing() {
    // Each request is over before its command has done anything; `end` sees that nothing is left, at whichever moment of
    // a probe its server ends.
    for turn in 0..25 {
        let ended = job(&json!({"services": {"a": {
            "command": child(&format!("sleep:{}", 0.1 + 0.001 * f64::from(turn))),
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
    let pid = running.pid();
    running.wait_for("done");
    // A burst may queue up for a moment, but none of it stays.
    eventually("every zombie is reaped", || (zombies(pid) == 0).then_some(()));
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let exits: Vec<&Value> = ended.all("process_exited");
    assert_eq!(exits.iter().filter(|e| e["code"] == 0 && e["expected"] == true).count(), 201);
}

fn a_background_process_does_not_delay_the_end() {
    let ended = job(&json!({"driver": driver("fork { forever } print:done exit:0")}));
    assert_eq!((ended.code, ended.stdout.as_slice()), (Some(0), b"done\n".as_slice()));
}

fn a_killed_gymrun_takes_its_children_along() {
    let running = Job::start(&json!({
        "servers": {"a": server("serve:${port:self} forever")},
        "driver": driver("append:@DIR/up:x forever"),
    }));
    running.wait_for("up");
    let id = running.id.clone();
    running.signal(Signal::SIGKILL);
    eventually("the children are gone", || of_job(&id).is_empty().then_some(()));
    assert_eq!(running.end().code, None);
}

/// Waits until memory has been sampled that often.
fn wait_for_samples(running: &Job, count: usize) {
    let samples = || running.events().iter().filter(|event| event["event"] == "memory_sampled").count();
    eventually("samples", || (samples() >= count).then_some(()));
}

fn memory_of_trees() {
    let running = Job::start(&json!({
        "pss": true,
        "servers": {
            "threads": with(server("hold:64 threads:50 serve:${port:self} forever"), "type", "resources_servers"),
            "forks": with(server("hold:64 fork { forever } fork { forever } serve:${port:self} forever"), "type", "resources_servers"),
        },
        "driver": driver("wait:@DIR/seen"),
    }));
    wait_for_samples(&running, 3);
    std::fs::write(running.path("seen"), "").expect("a scratch file");
    let ended = running.end();
    assert_eq!(ended.code, Some(0));
    let first = ended.all("memory_sampled")[0];
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

fn short_lived_children_do_not_disturb_the_sampler() {
    // A server that starts and ends two hundred processes a second while its memory is looked at a hundred times.
    let running = Job::start(&json!({
        "pss": true,
        "interval_seconds": 0.02,
        "servers": {"a": server("hold:16 serve:${port:self} churn:200:@DIR/seen append:@DIR/done:x forever")},
        "driver": driver("wait:@DIR/done"),
    }));
    wait_for_samples(&running, 100);
    std::fs::write(running.path("seen"), "").expect("a scratch file");
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.warnings().is_empty(), "{:?}", ended.warnings());
    for sample in ended.all("memory_sampled") {
        let tree = &sample["trees"][0];
        assert!(tree["rss"].as_u64() >= Some(16 << 20), "{sample}");
    }
}
