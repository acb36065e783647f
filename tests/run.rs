//! The real binary runs small jobs: exit codes, order of the end, what is left behind, what stands in the job directory.

mod harness;

use std::fs;

use harness::processes::{Process, descendants_of, is_ignored};
use harness::{Job, eventually};
use nix::sys::signal::Signal;

/// A job without a collector whose driver runs `shell`.
fn driver(shell: &str) -> String {
    format!("name: t\notel: {{enabled: false}}\ndriver:\n  shell: |\n    {}\n", shell.replace('\n', "\n    "))
}

#[test]
fn the_drivers_code_is_gymruns_code() {
    for (shell, code, signal) in [
        ("exit 0", 0, None),
        ("exit 1", 1, None),
        ("exit 42", 42, None),
        ("exit 255", 255, None),
        ("kill -KILL $$", 137, Some(9)),
        ("kill -TERM $$", 143, Some(15)),
        ("kill -SEGV $$", 139, Some(11)),
    ] {
        let job = Job::new("job.yaml", &driver(shell));
        let ended = job.run(&[]);
        assert_eq!(ended.code, Some(code), "{shell}\n{}", ended.stderr);
        let result = job.directory().json("result.json");
        assert_eq!(result["code"], code, "{shell}");
        // The one or the other, never both.
        let own = signal.is_none().then_some(i64::from(code));
        let driver = &result["driver"];
        assert_eq!((driver["code"].as_i64(), driver["signal"].as_i64()), (own, signal), "{shell}");
    }
}

#[test]
fn the_drivers_output_is_shown_and_kept_byte_by_byte() {
    let job = Job::new("job.yaml", &driver("printf 'out\\n\\210\\377end'; printf 'err\\n' >&2"));
    let ended = job.run(&[]);
    assert_eq!(ended.stdout_bytes, b"out\n\x88\xffend");
    assert!(ended.stderr.contains("err\n"), "{}", ended.stderr);
    let log = fs::read(job.directory().path("logs/driver.log")).expect("a log");
    assert_eq!(log.len(), b"out\n\x88\xffend".len() + b"err\n".len());
}

#[test]
fn with_json_stdout_has_events_alone() {
    let job = Job::new("job.yaml", &driver("echo hello"));
    let ended = job.run(&["--json"]);
    assert_eq!(ended.code, Some(0));
    let events: Vec<serde_json::Value> =
        ended.stdout.lines().map(|l| serde_json::from_str(l).expect("one JSON object a line")).collect();
    assert_eq!(events.first().expect("events")["event"], "job_started");
    assert_eq!(events.last().expect("events")["event"], "job_ended");
    assert!(ended.stderr.contains("hello"), "{}", ended.stderr);
    let kept = job.directory().text("events.jsonl");
    assert_eq!(kept, ended.stdout);
}

#[test]
fn a_terminal_that_takes_nothing_holds_up_nothing() {
    for arguments in [&[][..], &["--json"]] {
        let job =
            Job::new("job.yaml", "name: t\notel: {enabled: false}\nservices: {one: {command: [sleep, \"300\"]}}\n");
        let (mut program, _unread) = job.start_unread(arguments);
        let events = || fs::read_to_string(job.output().join("j1/t/events.jsonl")).unwrap_or_default();
        eventually("all_ready", || events().contains("all_ready").then_some(()));
        program.signal(Signal::SIGTERM);
        let status = eventually("the end", || program.status());
        assert_eq!(status.code(), Some(143));
        assert_eq!(job.directory().events("job_ended").len(), 1);
        assert_eq!(job.directory().json("result.json")["class"], "told_to_stop");
    }
}

#[test]
fn arguments_after_the_dashes_reach_the_driver() {
    let job = Job::new("job.yaml", "name: t\notel: {enabled: false}\ndriver: {command: [echo, a]}\n");
    let ended = job.run(&["--", "--b", "c d", "0510"]);
    assert_eq!(ended.stdout, "a --b c d 0510\n");
}

#[test]
fn a_killed_server_ends_the_job_with_its_name_signal_and_last_lines() {
    let job = Job::new(
        "job.yaml",
        "name: t\notel: {enabled: false}\n\
         services:\n  fragile: {shell: 'echo about to fall; until test -e \"$GYMRUN_JOB_DIR/up\"; do sleep 0.1; done; kill -KILL $$'}\n\
         driver: {shell: 'touch \"$GYMRUN_JOB_DIR/up\"; exec sleep 60'}\n",
    );
    let ended = job.run(&[]);
    assert_eq!(ended.code, Some(125), "{}", ended.stderr);
    for word in ["fragile", "signal 9", "about to fall"] {
        assert!(ended.stderr.contains(word), "no `{word}` in\n{}", ended.stderr);
    }
    let result = job.directory().json("result.json");
    assert_eq!(result["class"], "process_died");
    assert_eq!(result["processes"]["driver"]["state"], "stopped");
}

#[test]
fn a_death_before_it_is_ready_is_told_with_its_name_its_end_and_its_last_lines() {
    for log in ["file", "pipe"] {
        for (end, said) in [("exit 7", "exited 7"), ("kill -SEGV $$", "signal 11"), ("exit 0", "exited 0")] {
            // Long before its health check would have given up.
            let text = format!(
                "name: t\notel: {{enabled: false}}\nservices:\n  model:\n    shell: 'echo CUDA boom >&2; {end}'\n    \
                 port: auto\n    log: {log}\n    health_check: {{path: /health, timeout_seconds: 600}}\n\
                 driver: {{shell: 'touch \"$GYMRUN_JOB_DIR/ran\"'}}\n"
            );
            let job = Job::new("job.yaml", &text);
            let ended = job.run(&[]);
            assert_eq!(ended.code, Some(125), "{}", ended.stderr);
            let lines: Vec<&str> = ended.stderr.lines().collect();
            let all = ["model: ", said, "before it was ready"];
            let told = lines.iter().position(|line| all.iter().all(|words| line.contains(words)));
            let after = &lines[told.unwrap_or(lines.len())..];
            assert!(after.iter().any(|line| line.contains("CUDA boom")), "{}", ended.stderr);
            assert!(!job.directory().path("ran").exists());
            let result = job.directory().json("result.json");
            assert_eq!(
                (&result["class"], &result["processes"]["model"]["state"]),
                (&"start_failed".into(), &"failed".into())
            );
        }
    }
}

#[test]
fn ignored_exits_are_warnings() {
    let job = Job::new(
        "job.yaml",
        "name: t\notel: {enabled: false}\n\
         services:\n  fragile: {shell: 'exit 3', on_exit: ignore}\n\
         driver: {shell: 'until grep -q process_exited \"$GYMRUN_JOB_DIR/events.jsonl\"; do sleep 0.1; done'}\n",
    );
    let ended = job.run(&[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let result = job.directory().json("result.json");
    let warnings = result["warnings"].to_string();
    assert!(warnings.contains("fragile"), "{warnings}");
    assert_eq!(result["processes"]["fragile"]["reason"], "exited 3");
}

#[test]
fn told_to_stop_it_ends_in_order_and_leaves_nothing() {
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGINT, 130), (Signal::SIGHUP, 129)] {
        if is_ignored(signal) {
            // Started by `nohup`, say: what comes ignored stays ignored, in gymrun too.
            continue;
        }
        let job = Job::new(
            "job.yaml",
            "name: t\notel: {enabled: false}\n\
             services:\n  loner: {shell: 'setsid sh -c \"trap \\\"\\\" TERM; sleep 300\" & trap \"exit 0\" TERM; wait', grace_seconds: 1}\n\
             driver: {shell: 'sleep 300 & echo running; wait'}\n",
        );
        let running = job.start(&[]);
        running.wait_for_stdout("running");
        let all = || Some(descendants_of(running.pid())).filter(|all| all.len() >= 5);
        let before = eventually("the whole tree", all);
        running.signal(signal);
        let ended = running.end();
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        eventually("every descendant is gone", || before.iter().all(Process::is_gone).then_some(()));
        assert_eq!(job.directory().json("result.json")["class"], "told_to_stop");
    }
}

#[test]
fn the_second_signal_kills_at_once() {
    let job = Job::new(
        "job.yaml",
        "name: t\notel: {enabled: false}\n\
         driver: {shell: 'trap \"\" TERM; echo running; while :; do sleep 1; done', grace_seconds: 300}\n",
    );
    let running = job.start(&[]);
    running.wait_for_stdout("running");
    let before = descendants_of(running.pid());
    running.signal(Signal::SIGTERM);
    running.wait_for_stderr("stopping");
    // One that comes within a second is the echo of the first.
    eventually("the driver is gone", || {
        running.signal_if_running(Signal::SIGTERM);
        before.iter().all(Process::is_gone).then_some(())
    });
    let ended = running.end();
    assert_eq!(ended.code, Some(143), "{}", ended.stderr);
    assert!(before.iter().all(Process::is_gone));
}

#[test]
fn the_time_limit_ends_the_job_in_order_with_124() {
    let job = Job::new(
        "job.yaml",
        "name: t\notel: {enabled: false}\ntime_limit_seconds: 0.5\ndriver: {command: [sleep, \"60\"]}\n",
    );
    let ended = job.run(&[]);
    assert_eq!(ended.code, Some(124), "{}", ended.stderr);
    assert_eq!(job.directory().json("result.json")["class"], "time_limit");
}

#[test]
fn without_a_driver_it_serves_until_told_to_stop() {
    let job = Job::new("job.yaml", "name: t\notel: {enabled: false}\nservices: {one: {command: [sleep, \"300\"]}}\n");
    let running = job.start(&[]);
    running.wait_for_stderr("all ready");
    running.signal(Signal::SIGTERM);
    assert_eq!(running.end().code, Some(143));
}

#[test]
fn a_job_id_is_held_by_one_run_and_its_former_files_are_kept() {
    let job = Job::new("job.yaml", &driver("echo first; sleep 300"));
    let running = job.start(&[]);
    running.wait_for_stdout("first");
    let refused = job.run(&[]);
    assert_eq!(refused.code, Some(125), "{}", refused.stderr);
    assert!(refused.stderr.contains("is running already"), "{}", refused.stderr);
    running.signal(Signal::SIGTERM);
    running.end();
    job.rewrite(&driver("echo second"));
    assert_eq!(job.run(&[]).code, Some(0));
    let former = job.directory().text("attempts/1/logs/driver.log");
    assert!(former.starts_with("first"), "{former}");
    let log = job.directory().text("logs/driver.log");
    assert_eq!(log, "second\n");
    let latest = fs::canonicalize(job.output().join("latest")).expect("a link");
    assert_eq!(latest, fs::canonicalize(job.directory().path("")).expect("the job directory"));
}

#[test]
fn a_missing_program_is_named_with_its_path() {
    for (name, command, code, word) in [
        ("driver", "/nowhere/bin", 127, "/nowhere/bin"),
        ("driver", "no-such-program-at-all", 127, "no-such-program-at-all"),
        ("driver", "/etc/passwd", 126, "/etc/passwd"),
    ] {
        let job =
            Job::new("job.yaml", &format!("name: t\notel: {{enabled: false}}\n{name}: {{command: [{command}]}}\n"));
        let ended = job.run(&[]);
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        assert!(ended.stderr.contains(word), "{}", ended.stderr);
    }
    let job = Job::new(
        "job.yaml",
        "name: t\notel: {enabled: false}\nservices: {gone: {command: [\"true\"], cwd: /nowhere/at/all}}\ndriver: {command: [\"true\"]}\n",
    );
    let ended = job.run(&[]);
    assert_eq!(ended.code, Some(125), "{}", ended.stderr);
    assert!(ended.stderr.contains("gone") && ended.stderr.contains("/nowhere/at/all"), "{}", ended.stderr);
}

#[test]
fn wrong_usage_and_invalid_jobs_are_2_and_start_nothing() {
    let job = Job::new("job.yaml", "name: t\nnonsense: 1\ndriver: {comand: [\"true\"]}\n");
    let ended = job.run(&[]);
    assert_eq!(ended.code, Some(2));
    for word in ["nonsense", "driver.comand", "command", "job.yaml:2", "job.yaml:3"] {
        assert!(ended.stderr.contains(word), "no `{word}` in\n{}", ended.stderr);
    }
    assert!(!job.output().exists(), "nothing was made");
    assert_eq!(job.run(&["--no-such-flag"]).code, Some(2));
}

#[test]
fn plan_prints_and_starts_nothing() {
    let job = Job::new("job.yaml", &driver("exit 3"));
    for format in ["text", "json", "yaml"] {
        let ended = job.ask("plan", &["--format", format]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stdout.contains("driver"), "{format}: {}", ended.stdout);
    }
    for show in ["collector", "environment", "order"] {
        assert_eq!(job.ask("plan", &["--show", show]).code, Some(0));
    }
    assert_eq!(job.run(&["--resolve-only"]).code, Some(0));
    assert_eq!(job.ask("check", &[]).code, Some(0));
    assert!(!job.output().exists(), "nothing was made");
}

#[test]
fn what_is_named_like_a_secret_is_printed_in_no_format() {
    let job = Job::new(
        "job.yaml",
        "name: t\notel: {enabled: false}\ndriver:\n  command: [\"true\"]\n  env: {MY_API_KEY: sk-literal-123, HF_TOKEN: \"${secret:HF}\", \
         DB_PASSWORD: \"${runtime:DB:-hunter2}\"}\n",
    )
    .variable("HF", "sk-from-the-shell");
    let prints: &[&[&str]] = &[
        &[],
        &["--format", "json"],
        &["--format", "yaml"],
        &["--show", "environment"],
        &["--show", "environment", "--format", "json"],
    ];
    for arguments in prints {
        let ended = job.ask("plan", arguments);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        for secret in ["sk-", "hunter2"] {
            assert!(!ended.stdout.contains(secret), "{arguments:?} shows {secret}:\n{}", ended.stdout);
        }
        assert!(ended.stdout.contains("<MY_API_KEY>"), "{}", ended.stdout);
    }
    assert_eq!(job.run(&[]).code, Some(0));
    for file in ["plan.json", "events.jsonl", "result.json"] {
        let text = job.directory().text(file);
        assert!(!text.contains("sk-") && !text.contains("hunter2"), "{file}: {text}");
    }
}

#[test]
fn a_secret_of_a_server_is_in_its_environment_and_nowhere_else() {
    // One in the job file, one from gymrun's own environment; what they are is seen by their lengths.
    let text = "name: t\nservices:\n  a:\n    shell: 'test $${#HF_TOKEN} = 14 && test $${#OTHER_KEY} = 14 && exec sleep 300'\n    \
                env: {HF_TOKEN: s3cr3t-literal, OTHER_KEY: \"${secret:OTHER}\"}\n    log: pipe\n\
                driver:\n  shell: 'test $${#HF_TOKEN} = 14 && sleep 1; exit 7'\n  env: {HF_TOKEN: s3cr3t-literal}\n";
    let job = Job::new("job.yaml", text).variable("OTHER", "s3cr3t-foreign");
    let watched = job.watch();
    assert_eq!(watched.ended.code, Some(7), "{}", watched.ended.stderr);
    assert!(!watched.seen_of_job.is_empty());
    let secret = "s3cr3t";
    assert!(watched.seen.iter().all(|line| !line.contains(secret)), "in an argv");
    assert_eq!(watched.directory.files_with(secret), Vec::<std::path::PathBuf>::new());
    let dry = job.run(&["--resolve-only"]);
    assert_eq!(dry.code, Some(0), "{}", dry.stderr);
    for output in [&watched.ended.stdout, &watched.ended.stderr, &dry.stdout, &dry.stderr] {
        assert!(!output.contains(secret), "{output}");
    }
}

#[test]
fn two_runs_with_collectors_do_not_meet() {
    side_by_side("{}");
}

#[test]
fn two_runs_with_an_otelcol_do_not_meet() {
    let Some(otelcol) = harness::component("otelcol", "GYMRUN_TEST_OTELCOL") else { return };
    side_by_side(&format!("{{binary: {}}}", otelcol.display()));
}

fn side_by_side(otel: &str) {
    let text = format!(
        "name: t\notel: {otel}\ntelemetry: {{enabled: true, memory_profiling: {{enabled: true, interval_seconds: 0.2}}}}\n\
         services:\n  a:\n    command: [sleep, '600']\n\
         driver:\n  shell: |\n    echo $OTEL_EXPORTER_OTLP_ENDPOINT $OTEL_EXPORTER_OTLP_LOGS_ENDPOINT; \
         while [ ! -e \"$GYMRUN_JOB_DIR/go\" ]; do sleep 0.05; done\n"
    );
    let jobs = ["first", "second"].map(|id| (id, Job::new("job.yaml", &text).with_id(id)));
    let running: Vec<_> = jobs.iter().map(|(id, job)| (id, job, job.start(&[]))).collect();
    // Both at once, each at the ports that its processes are told.
    let mut ports = Vec::new();
    for (id, job, _) in &running {
        let told = eventually("its driver runs", || {
            let log = fs::read_to_string(job.output().join(id).join("t/logs/driver.log")).ok()?;
            log.ends_with('\n').then_some(log)
        });
        for url in told.split_whitespace() {
            let port: u16 = url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a URL with a port");
            std::net::TcpStream::connect(("localhost", port)).expect("the collector listens there");
            ports.push(port);
        }
    }
    assert_eq!(ports.len(), 4);
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 4, "one port for two");
    for (id, job, running) in running {
        let samples = || job.directory().events_so_far("memory_sampled").len();
        let before = samples();
        eventually("some samples", || (samples() > before + 2).then_some(()));
        fs::write(job.output().join(id).join("t/go"), "").expect("the job directory is there");
        running.end().assert_code(0);
        let resources = job.directory().telemetry().resources();
        assert!(!resources.is_empty());
        for (signal, resource) in resources {
            assert_eq!(resource.get("run_id").and_then(|value| value.as_str()), Some(*id), "{signal}");
        }
    }
}
