//! Why processes died: each death that gymrun did not bring about is explained.

use std::path::{Path, PathBuf};
use std::process::Command;

use gymrun::procfs::{CgroupVersion, Proc};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::cases::Case;
use crate::disk::RUN;
use crate::harness::{eventually, skip, small_disk};
use crate::job::{Ended, Job, job};
use crate::jobs::{child, driver, server, with};

pub const CASES: &[Case] = &[
    ("a_signal_from_outside_is_called_that", a_signal_from_outside_is_called_that),
    (
        "a_signal_of_a_unit_to_itself_is_not_laid_at_the_door_of_others",
        a_signal_of_a_unit_to_itself_is_not_laid_at_the_door_of_others,
    ),
    ("what_gymrun_stops_needs_no_explanation", what_gymrun_stops_needs_no_explanation),
    ("a_limit_that_was_hit_is_named", a_limit_that_was_hit_is_named),
    ("faults_and_codes_of_shells_are_read", faults_and_codes_of_shells_are_read),
    ("a_full_file_system_is_named", a_full_file_system_is_named),
    ("full_shared_memory_is_named", full_shared_memory_is_named),
    ("a_kill_for_memory_is_told_from_one_from_outside", a_kill_for_memory_is_told_from_one_from_outside),
    ("a_child_that_was_killed_for_memory_explains_its_parent", a_child_that_was_killed_for_memory_explains_its_parent),
];

/// The explanations of the deaths of a process, in order.
fn explanations<'a>(ended: &'a Ended, process: &str) -> Vec<&'a Value> {
    ended.all("process_exited").into_iter().filter(|e| e["process"] == process).map(|e| &e["explanation"]).collect()
}

fn text(explanation: &Value) -> &str {
    explanation["text"].as_str().unwrap_or_default()
}

fn kinds(explanation: &Value) -> Vec<&str> {
    explanation["findings"].as_array().into_iter().flatten().filter_map(|f| f["kind"].as_str()).collect()
}

fn send(job: &Job, file: &str, signal: Signal) {
    let pid = job.wait_for(file).trim().parse().expect("a pid");
    kill(Pid::from_raw(pid), signal).expect("it runs");
}

fn shell(script: &str) -> Value {
    json!(["sh", "-c", script])
}

fn own() -> String {
    std::env::current_exe().expect("a test has a file").display().to_string()
}

fn a_signal_from_outside_is_called_that() {
    let ignored = |value: Value| with(value, "on_exit", "ignore");
    let runs = |name: &str| format!("pid:@DIR/{name} forever");
    let running = Job::start(&json!({
        "services": {
            "service": ignored(json!({"command": child(&runs("service"))})),
            "task": ignored(json!({"command": child(&runs("task")), "type": "task"})),
        },
        "servers": {"server": ignored(server(&format!("serve:${{port:self}} {}", runs("server"))))},
        "driver": driver(&runs("driver")),
    }));
    let sent = [
        ("service", Signal::SIGHUP),
        ("task", Signal::SIGTERM),
        ("server", Signal::SIGINT),
        ("driver", Signal::SIGTERM),
    ];
    for (process, signal) in sent {
        send(&running, process, signal);
        // Before the last of them ends the job.
        running.wait_for_event("process_exited", process);
    }
    let ended = running.end();
    assert_eq!(ended.code, Some(143), "{}", ended.stderr);
    for (process, signal) in sent {
        let found = explanations(&ended, process);
        assert_eq!(found.len(), 1, "{process}");
        assert_eq!(kinds(found[0]), ["from_outside"], "{process}");
        assert_eq!(found[0]["findings"][0]["signal"], json!(signal as i32));
        let said = format!("ended by {signal}, which gymrun did not send: from outside, ");
        assert!(text(found[0]).starts_with(&said), "{}", text(found[0]));
    }
    // The last word on the terminal has it, too.
    assert!(ended.stderr.contains("ended by SIGTERM, which gymrun did not send: from outside, "), "{}", ended.stderr);
}

/// Nobody learns who sent a signal, so nobody is accused.
fn a_signal_of_a_unit_to_itself_is_not_laid_at_the_door_of_others() {
    let by_its_child = shell("sh -c 'kill -9 $PPID'; exit 0");
    let ended = job(&json!({
        "services": {"child": {"command": by_its_child, "type": "task", "on_exit": "ignore"}},
        "driver": {"command": shell("kill -9 $$")},
    }));
    assert_eq!(ended.code, Some(137), "{}", ended.stderr);
    for process in ["child", "driver"] {
        let said = "ended by SIGKILL, which gymrun did not send: from outside, or from one of its own processes";
        let found = explanations(&ended, process);
        assert!(text(found[0]).starts_with(said), "{process}: {}", found[0]);
    }
}

fn what_gymrun_stops_needs_no_explanation() {
    let ended = job(&json!({
        "servers": {
            "obeys": server("serve:${port:self} forever"),
            "says": server("trap:TERM:@DIR/stops:says:0:1 serve:${port:self} forever"),
            "stays": with(server("ignore:TERM serve:${port:self} forever"), "grace_seconds", 0.2),
        },
        "driver": driver("exit:0"),
    }));
    assert_eq!(ended.code, Some(0));
    for exited in ended.all("process_exited") {
        assert_eq!(exited["explanation"], Value::Null, "{exited}");
    }
}

fn a_limit_that_was_hit_is_named() {
    let spin = "while :; do :; done";
    for (script, signal, named) in [
        // The soft limit alone; both, as `ulimit -t` sets them: there the kernel sends SIGKILL.
        (format!("ulimit -S -t 1; {spin}"), 24, "it used up its limit of CPU time, 1 s"),
        (format!("ulimit -t 1; {spin}"), 9, "it used up its limit of CPU time, 1 s"),
        (
            "ulimit -f 16; exec dd if=/dev/zero of=@DIR/big bs=65536 count=4".to_owned(),
            25,
            "it wrote a file beyond its limit of size",
        ),
    ] {
        let ended = job(&json!({"driver": {"command": shell(&script)}}));
        assert_eq!(ended.code, Some(128 + signal), "{}", ended.stderr);
        let found = explanations(&ended, "driver");
        assert_eq!(kinds(found[0]), ["resource_limit"], "{}", found[0]);
        assert!(text(found[0]).starts_with(named), "{}", text(found[0]));
        assert!(ended.stderr.contains(named), "{}", ended.stderr);
    }
}

fn faults_and_codes_of_shells_are_read() {
    for (command, code, kind, named) in [
        (child("raise:SEGV"), 139, "own_fault", "it touched memory"),
        (child("raise:ABRT"), 134, "own_fault", "it aborted itself"),
        (child("raise:PIPE"), 141, "own_fault", "nobody reads any more"),
        (shell("/no/such/program"), 127, "wrapped_refusal", "a program does not exist"),
        (shell("/"), 126, "wrapped_refusal", "a program cannot be executed"),
        (shell("sh -c 'kill -TERM $$'; exit $?"), 143, "wrapped_signal", "its child was ended by SIGTERM"),
        (shell("exit 247"), 247, "wrapped_signal", "Python"),
    ] {
        let ended = job(&json!({"driver": {"command": command}}));
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        let found = explanations(&ended, "driver");
        assert_eq!(kinds(found[0])[0], kind, "{}", found[0]);
        assert!(text(found[0]).contains(named), "{}", text(found[0]));
    }
    // A code of its own says nothing.
    let ended = job(&json!({"driver": driver("exit:3")}));
    assert!(!text(explanations(&ended, "driver")[0]).contains("exit code"));
}

/// A file system of 1 MiB.
struct Small(tempfile::TempDir);

impl Small {
    /// `None` where nothing may be mounted, which is said.
    fn mount() -> Option<Self> {
        let directory = tempfile::tempdir().expect("a scratch directory");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "small"]).arg(directory.path()).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(directory));
        }
        skip("mount", "no file system can be mounted");
        None
    }

    fn path(&self) -> String {
        self.0.path().display().to_string()
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

fn a_full_file_system_is_named() {
    let fill = "dd if=/dev/zero of=\"$TMPDIR/x\" bs=65536; exit 1";
    for (command, signal) in [(shell(fill), None), (child("bus:@SMALL/mapped:4"), Some(7))] {
        let Some(small) = Small::mount() else { return };
        let command = serde_json::from_str(&command.to_string().replace("@SMALL", &small.path())).expect("JSON");
        let driver: Value = json!({"command": Value::clone(&command), "env": {"TMPDIR": small.path()}});
        let ended = job(&json!({"driver": driver}));
        let found = explanations(&ended, "driver");
        assert_eq!(ended.the("process_exited", "driver")["signal"].as_i64(), signal, "{}", ended.stderr);
        let room: Vec<&Value> =
            found[0]["findings"].as_array().into_iter().flatten().filter(|f| f["place"] == "temporary").collect();
        assert_eq!((&room[0]["kind"], &room[0]["full"]), (&json!("room"), &json!(true)), "{}", found[0]);
        assert!(text(found[0]).contains(&format!("`{}` is full, 0 B of 1.00 MiB left", small.path())), "{}", found[0]);
        assert!(ended.stderr.contains("let TMPDIR name a directory that has some"), "{}", ended.stderr);
    }
}

fn full_shared_memory_is_named() {
    let fill = "dd if=/dev/zero of=/dev/shm/x bs=65536; exit 1";
    for (command, signal) in [(shell(fill), None), (child("bus:/dev/shm/x:4"), Some(7))] {
        let Some(disk) = small_disk("/dev/shm", "@DIR/kept", 1024) else { return };
        let words: Vec<&str> = disk.iter().map(String::as_str).chain(RUN).collect();
        let ended = Job::start_on_disk_by(&json!({"driver": {"command": command}}), &words).end();
        assert_eq!(ended.the("process_exited", "driver")["signal"].as_i64(), signal, "{}", ended.stderr);
        let found = explanations(&ended, "driver");
        let room = found[0]["findings"].as_array().into_iter().flatten().find(|f| f["place"] == "shared_memory");
        assert!(room.is_some_and(|room| room["full"] == true), "{}", found[0]);
        assert!(text(found[0]).contains("`/dev/shm` is full, 0 B of 1.00 MiB left"), "{}", found[0]);
        assert!(ended.stderr.contains("give a container more with `--shm-size`"), "{}", ended.stderr);
    }
}

/// A cgroup with a limit on memory, below that of this process.
struct Limited(PathBuf);

const LIMIT: u64 = 128 << 20;

impl Limited {
    /// `None` where none can be made, which is said.
    fn make(name: &str) -> Option<Self> {
        let own = std::process::id().cast_signed();
        let made = Proc::default().cgroups().memory(own).ok_or_else(|| "no memory controller is seen".to_owned());
        let made = made.and_then(|memory| {
            let file = match memory.version() {
                CgroupVersion::V1 => "memory.limit_in_bytes",
                CgroupVersion::V2 => "memory.max",
            };
            let directory = memory.directory().join(format!("gymrun-test-{own}-{name}"));
            let error = |error: std::io::Error| format!("{}: {error}", directory.display());
            std::fs::create_dir(&directory).map_err(error)?;
            let limited = Self(directory.clone());
            std::fs::write(directory.join(file), LIMIT.to_string()).map_err(error)?;
            Ok(limited)
        });
        made.map_err(|why| skip("memory", &format!("no cgroup with a limit can be made: {why}"))).ok()
    }

    /// A command that runs in it, alone: gymrun is to go on whatever happens there.
    fn enter(&self, command: &Value) -> Value {
        let enter = format!("echo $$ >'{}' && exec \"$@\"", self.0.join("cgroup.procs").display());
        let words = command.as_array().into_iter().flatten().cloned();
        json!(["sh", "-c", enter, "sh"]).as_array().into_iter().flatten().cloned().chain(words).collect()
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        // What is dying still counts as a member for a moment.
        eventually("its cgroup is empty", || removed(&self.0).then_some(()));
    }
}

fn removed(directory: &Path) -> bool {
    std::fs::remove_dir(directory).is_ok() || !directory.exists()
}

fn a_kill_for_memory_is_told_from_one_from_outside() {
    let Some(limited) = Limited::make("server") else { return };
    let steps = "pid:@DIR/pids serve:${port:self} wait:@DIR/grow remove:@DIR/grow hold:400 forever";
    let model = with(with(server(steps), "on_exit", "restart"), "command", limited.enter(&child(steps)));
    let running = Job::start_in_memory(&json!({
        "servers": {"model": model},
        "driver": driver("wait:@DIR/end exit:0"),
    }));
    running.wait_for_event("process_ready", "driver");
    // By now it is where it is to be.
    let samples = || running.events().iter().filter(|e| e["event"] == "memory_sampled").count();
    let before = samples();
    eventually("more samples", || (samples() > before + 1).then_some(()));
    std::fs::write(running.path("grow"), "").expect("a scratch file");
    let pid = eventually("it runs again", || {
        let pids = std::fs::read_to_string(running.path("pids")).unwrap_or_default();
        pids.lines().nth(1).and_then(|pid| pid.parse().ok())
    });
    eventually("it is ready again", || {
        let events = running.events();
        let ready = events.iter().filter(|e| e["event"] == "process_ready" && e["process"] == "model");
        (ready.count() == 2).then_some(())
    });
    kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it runs");
    eventually("it runs a third time", || {
        let events = running.events();
        let ready = events.iter().filter(|e| e["event"] == "process_ready" && e["process"] == "model");
        (ready.count() == 3).then_some(())
    });
    std::fs::write(running.path("end"), "").expect("a scratch file");
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let found = explanations(&ended, "model");
    assert_eq!(found.len(), 3);
    assert_eq!(kinds(found[0]), ["out_of_memory"], "{}", found[0]);
    let memory = &found[0]["findings"][0];
    assert_eq!((&memory["certain"], &memory["limit_bytes"]), (&json!(true), &json!(LIMIT)));
    // It shares pages with others, which are accounted for elsewhere.
    assert!(memory["held"]["bytes"].as_u64().is_some_and(|held| held > 0 && held < 2 * LIMIT), "{memory}");
    let said = "killed by the kernel for memory: its cgroup's limit is 128 MiB; at the last sample (";
    assert!(text(found[0]).starts_with(said), "{}", text(found[0]));
    // The kernel's count has grown, but that was the other death.
    assert_eq!(kinds(found[1]), ["from_outside", "not_for_memory"], "{}", found[1]);
    assert_eq!(*found[2], Value::Null);
}

fn a_child_that_was_killed_for_memory_explains_its_parent() {
    let Some(limited) = Limited::make("parent") else { return };
    let script = format!("echo >up; until test -e grow; do sleep 0.02; done; '{}' child hold:400; exit $?", own());
    // Nothing is sampled before it is where it is to be.
    let check = json!({"type": "exec", "command": ["test", "-e", "up"]});
    let parent = json!({"command": limited.enter(&shell(&script)), "health_check": check});
    let running = Job::start_in_memory(&json!({"services": {"parent": parent}, "driver": driver("forever")}));
    let samples = || running.events().iter().filter(|e| e["event"] == "memory_sampled").count();
    eventually("samples", || (samples() > 1).then_some(()));
    std::fs::write(running.path("grow"), "").expect("a scratch file");
    let ended = running.end();
    assert_eq!(ended.code, Some(125), "{}", ended.stderr);
    assert_eq!(ended.the("process_exited", "parent")["code"], json!(137));
    let found = explanations(&ended, "parent");
    assert_eq!(kinds(found[0])[..2], ["wrapped_signal", "others_out_of_memory"], "{}", found[0]);
    let others = &found[0]["findings"][1];
    assert_eq!((&others["kills"], &others["in_cgroup"]), (&json!(1), &json!(true)));
    let said = "the kernel killed 1 process of its cgroup for memory in the ";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
}
