//! What `result.json` says of how a job's processes ended: in which order, who had to be killed, who was never started.

mod harness;

use harness::{Job, eventually};
use serde_json::{Value, json};

fn result(job: &Job) -> Value {
    job.directory().json("result.json")
}

#[test]
fn the_order_of_the_end_and_who_needed_sigkill() {
    // The model takes its time and says 143; the agent's workers, and then itself, are deaf.
    let text = r#"name: t
services:
  model: {shell: 'trap "sleep 0.5; exit 143" TERM; touch "$GYMRUN_JOB_DIR/model"; while :; do sleep 0.05; done', grace_seconds: 60}
  agent:
    shell: 'trap "" TERM; sleep 300 & setsid sleep 300 & touch "$GYMRUN_JOB_DIR/agent"; while :; do sleep 1; done'
    depends_on: [model]
    grace_seconds: 1
driver: {shell: 'cd "$GYMRUN_JOB_DIR"; until test -e model && test -e agent; do sleep 0.05; done'}
"#;
    let job = Job::new("job.yaml", text);
    let ended = job.run(&[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let result = result(&job);
    assert_eq!(result["stop_order"], json!(["driver", "agent", "model", "otel_collector"]));
    let processes = &result["processes"];
    // What was asked to stop has not failed, whatever it says.
    for (name, exit) in
        [("model", json!({"code": 143})), ("agent", json!({"signal": 9})), ("driver", json!({"code": 0}))]
    {
        assert_eq!((&processes[name]["state"], &processes[name]["exit"]), (&json!("stopped"), &exit), "{name}");
    }
    assert_eq!(processes["model"]["killed"], Value::Null);
    assert!(processes["agent"]["killed"].as_u64() >= Some(3), "{processes}");
    assert!(ended.stderr.contains("agent: needed SIGKILL ("), "{}", ended.stderr);
}

#[test]
fn who_was_never_started_and_why() {
    let text = "name: t\notel: {enabled: false}\nservices:\n  \
                a: {type: task, shell: 'echo boom >&2; exit 4'}\n  \
                b: {command: [sleep, '300'], depends_on: [a]}\n  \
                c: {command: [sleep, '300'], depends_on: [b]}\n\
                driver: {command: ['true']}\n";
    let job = Job::new("job.yaml", text);
    let ended = job.run(&[]);
    assert_eq!(ended.code, Some(125), "{}", ended.stderr);
    let result = result(&job);
    assert_eq!(result["class"], "start_failed");
    assert_eq!(result["processes"]["a"]["reason"], "exited 4");
    for name in ["b", "c", "driver"] {
        let process = &result["processes"][name];
        assert_eq!(
            (&process["state"], &process["reason"], &process["pid"]),
            (&json!("skipped"), &json!("a failed"), &Value::Null)
        );
    }
    assert!(ended.stderr.contains("boom"), "{}", ended.stderr);
}

#[test]
fn what_cannot_be_executed_is_named_for_servers_and_drivers_alike() {
    let job = Job::new("job.yaml", "name: t\n");
    let folder = job.folder().display().to_string();
    std::fs::write(job.folder().join("plain"), "no program").expect("a file");
    for (entry, code, words) in [
        ("command: [no-such-bin]", 127, "`no-such-bin` is not found".to_owned()),
        ("command: [./plain]", 126, format!("`{folder}/./plain` is not executable")),
        ("command: [./gone]", 127, format!("`{folder}/./gone` does not exist")),
        (
            "command: ['true'], cwd: /no/such/folder",
            125,
            "the working directory `/no/such/folder` does not exist".to_owned(),
        ),
    ] {
        for (text, code, class, process) in [
            (format!("services:\n  a: {{{entry}}}\ndriver: {{command: ['true']}}\n"), 125, "start_failed", "a"),
            (format!("driver: {{{entry}}}\n"), code, "driver_not_started", "driver"),
        ] {
            job.rewrite(&format!("name: t\notel: {{enabled: false}}\n{text}"));
            let ended = job.run(&[]);
            assert_eq!(ended.code, Some(code), "{text}\n{}", ended.stderr);
            let result = result(&job);
            assert_eq!(result["class"], class, "{text}");
            let reason = result["processes"][process]["reason"].as_str().unwrap_or_default().to_owned();
            assert!(reason.contains(&words) && ended.stderr.contains(&words), "{reason}");
        }
    }
}

#[test]
fn readers_that_go_away_change_nothing() {
    // `gymrun job.yaml 2>&1 | head -1`: the pipe is closed while all run.
    let text = "name: t\notel: {enabled: false}\nservices:\n  \
                a: {shell: 'echo line; sleep 300', log: pipe}\n\
                driver: {shell: 'echo first; until test -e go; do sleep 0.05; done; for i in $(seq 500); do echo more; done; exit 3'}\n";
    let job = Job::new("job.yaml", text);
    let mut program = job.start_piped(&[]);
    let (mut stdout, stderr) = (program.stdout().expect("a pipe"), program.stderr().expect("a pipe"));
    std::io::Read::read_exact(&mut stdout, &mut [0]).expect("the first line");
    drop((stdout, stderr));
    std::fs::write(job.folder().join("go"), "").expect("a file");
    let status = eventually("its end", || program.status());
    assert_eq!(status.code(), Some(3), "{status:?}");
    assert_eq!(result(&job)["class"], "driver_failed");
    assert!(job.directory().text("logs/driver.log").ends_with("more\n"));
}

#[test]
fn why_a_process_died_stands_on_the_terminal_in_the_result_and_in_the_events() {
    let text = "name: t\notel: {enabled: false}\nservices:\n  \
                fragile: {command: [sleep, '300'], on_exit: restart}\n\
                driver: {shell: 'until test -e done; do sleep 0.02; done; exit 137'}\n";
    let job = Job::new("job.yaml", text);
    let running = job.start(&[]);
    let started = || {
        let events = std::fs::read_to_string(job.output().join("j1/t/events.jsonl")).unwrap_or_default();
        let events = events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect::<Vec<_>>();
        let of = |process: &str| {
            let events = events.iter().filter(|e| e["event"] == "process_started" && e["process"] == process);
            events.filter_map(|e| e["pid"].as_i64()).collect::<Vec<_>>()
        };
        (of("fragile"), of("driver"))
    };
    let pid = eventually("the driver runs", || {
        let (fragile, driver) = started();
        (!driver.is_empty()).then(|| fragile[0])
    });
    let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).expect("pids are small"));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).expect("it runs");
    eventually("it runs again", || (started().0.len() == 2).then_some(()));
    std::fs::write(job.folder().join("done"), "").expect("a file");
    let ended = running.end();
    assert_eq!(ended.code, Some(137), "{}", ended.stderr);
    let result = result(&job);
    let words = "ended by SIGKILL, which gymrun did not send: from outside, or from one of its own processes";
    let code = "its exit code 137 is what a shell gives when its child was ended by SIGKILL";
    for (process, words) in [("fragile", words), ("driver", code)] {
        // That of the first life stands, though the second one was ended by gymrun.
        let explanation = &result["processes"][process]["explanation"];
        assert!(explanation["text"].as_str().is_some_and(|text| text.starts_with(words)), "{process}: {result}");
        assert!(explanation["findings"][0]["kind"].is_string(), "{process}: {result}");
        assert!(ended.stderr.lines().any(|line| line.starts_with(&format!("  why: {words}"))), "{}", ended.stderr);
        let exits = job.directory().events("process_exited");
        let exit = exits.iter().find(|e| e["process"] == process).expect("it ended");
        assert_eq!(&exit["explanation"], explanation);
    }
    // The last sentence has it, too.
    let sentence = format!("the driver exited 137: {code}");
    assert!(result["message"].as_str().is_some_and(|message| message.starts_with(&sentence)), "{result}");
    assert!(ended.stderr.contains(&sentence), "{}", ended.stderr);
}

#[test]
fn a_kill_for_memory_stands_in_the_result() {
    let own = std::process::id().cast_signed();
    let Some(memory) = gymrun::procfs::Proc::default().cgroups().memory(own) else {
        return harness::skip("memory", "no memory controller is seen");
    };
    let file = match memory.version() {
        gymrun::procfs::CgroupVersion::V1 => "memory.limit_in_bytes",
        gymrun::procfs::CgroupVersion::V2 => "memory.max",
    };
    let cgroup = memory.directory().join(format!("gymrun-test-{own}-result"));
    let made = std::fs::create_dir(&cgroup).and_then(|()| std::fs::write(cgroup.join(file), "134217728"));
    if let Err(error) = made {
        let _ = std::fs::remove_dir(&cgroup);
        return harness::skip("memory", &format!("no cgroup with a limit can be made: {error}"));
    }
    // A line without an end, which it keeps.
    let job = Job::new("job.yaml", "name: t\notel: {enabled: false}\ndriver: {command: [tail, /dev/zero]}\n");
    let list = std::fs::File::options().write(true).open(cgroup.join("cgroup.procs")).expect("a cgroup of the test's");
    let ended = job.start_with(|command| enter(command, list)).end();
    eventually("its cgroup is empty", || std::fs::remove_dir(&cgroup).ok());
    assert_eq!(ended.code, Some(137), "{}", ended.stderr);
    let result = result(&job);
    let explanation = &result["processes"]["driver"]["explanation"];
    assert_eq!(explanation["findings"][0]["kind"], "out_of_memory", "{result}");
    let words = "killed by the kernel for memory: its cgroup's limit is 128 MiB";
    assert!(explanation["text"].as_str().is_some_and(|text| text.starts_with(words)), "{result}");
    assert!(result["message"].as_str().is_some_and(|message| message.contains(words)), "{result}");
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    let exits = job.directory().events("process_exited");
    let exit = exits.iter().find(|e| e["process"] == "driver").expect("it ended");
    assert_eq!(&exit["explanation"], explanation);
}

#[test]
fn the_result_and_the_delivery_are_whole_on_a_full_disk() {
    let text = "name: t\ndriver:\n  shell: 'head -c 3000000 /dev/zero >\"$GYMRUN_JOB_DIR/fill\"; exit 3'\n";
    let job = Job::new("job.yaml", text);
    let kept = job.folder().join("kept");
    let at = job.output().display().to_string();
    let Some(words) = harness::small_disk(&at, &kept.display().to_string(), 1024) else { return };
    let ended = job.start_through(&words).end();
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let directory = harness::JobDirectory::only_in(&kept.join("j1"));
    assert!(directory.path("fill").exists());
    for folder in ["", "otel"] {
        let mut left = std::fs::read_dir(directory.path(folder)).expect("reads").flatten();
        assert!(!left.any(|entry| entry.path().to_string_lossy().ends_with(".reserved")), "{folder}");
    }
    let (result, delivery) = (directory.json("result.json"), directory.json("otel/delivery.json"));
    assert_eq!((&result["code"], &result["class"]), (&json!(3), &json!("driver_failed")));
    assert!(result["processes"]["driver"]["explanation"]["text"].as_str().is_some_and(|text| text.contains("is full")));
    // gymrun's own metrics, at least.
    let counts = |report: &Value| (report["metrics"]["received"].clone(), report["metrics"]["dropped"].clone());
    assert_eq!(counts(&result["delivery"]), counts(&delivery));
    assert!(delivery["metrics"]["received"].as_u64() > Some(0), "{delivery}");
    assert!(!ended.stderr.contains("nothing is known"), "{}", ended.stderr);
}

/// Makes what is started a member of a cgroup, by its list.
#[expect(unsafe_code, reason = "a child is moved before it is executed")]
fn enter(command: &mut std::process::Command, mut list: std::fs::File) {
    use std::io::Write as _;
    use std::os::unix::process::CommandExt as _;
    // SAFETY: one system call.
    unsafe { command.pre_exec(move || list.write_all(b"0")) };
}
