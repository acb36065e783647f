//! What does not die, or is not let go, is not waited for for ever, and taken for nobody else when it ends after all.

use std::sync::mpsc;
use std::thread::JoinHandle;

use serde_json::{Value, json};

use crate::cases::Case;
use crate::harness::processes::Process;
use crate::harness::{eventually, skip};
use crate::job::Job;
use crate::jobs::{driver, server, with};

pub const CASES: &[Case] = &[
    ("an_end_that_comes_late_is_not_that_of_the_next_life", an_end_that_comes_late_is_not_that_of_the_next_life),
    ("what_was_given_up_is_told_as_what_it_is", what_was_given_up_is_told_as_what_it_is),
];

/// What is done to a process that is killed.
#[derive(Clone, Copy)]
enum Hold {
    /// It ends, and its parent is not told.
    Unreaped,
    /// It does not end.
    Undying,
}

/// Traces a process and does nothing about it, until it is dropped.
struct Tracer {
    release: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Tracer {
    /// `None` where nobody may trace.
    fn seize(pid: u32, hold: Hold) -> Option<Self> {
        let (release, released) = mpsc::channel::<()>();
        let (seized, result) = mpsc::channel();
        // It traces for as long as it lives.
        let thread = std::thread::spawn(move || {
            let _ = seized.send(seize(pid, hold));
            let _ = released.recv();
        });
        let tracer = Self { release: Some(release), thread: Some(thread) };
        match result.recv().expect("it answers") {
            Ok(()) => Some(tracer),
            Err(error) => {
                skip("ptrace", &error.to_string());
                None
            }
        }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        drop(self.release.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[expect(unsafe_code, reason = "a process is to be traced")]
fn seize(pid: u32, hold: Hold) -> std::io::Result<()> {
    let options: libc::c_long = match hold {
        Hold::Unreaped => 0,
        Hold::Undying => libc::PTRACE_O_TRACEEXIT.into(),
    };
    let none: libc::c_long = 0;
    // SAFETY: neither of its last two arguments is used as a pointer.
    let result = unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid.cast_signed(), none, options) };
    if result == -1 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

fn pid_in(running: &Job, file: &str) -> u32 {
    running.wait_for(file).trim().parse().expect("a pid")
}

fn warnings_of<'a>(events: &'a [Value], process: &str) -> Vec<&'a str> {
    let warnings =
        events.iter().filter(|e| e["event"] == "warning" && e["process"].as_str().unwrap_or_default() == process);
    warnings.filter_map(|e| e["message"].as_str()).collect()
}

fn an_end_that_comes_late_is_not_that_of_the_next_life() {
    let first = "once:@DIR/first { pid:@DIR/pid } serve:${port:self} forever";
    let liveness = json!({"type": "exec", "command": ["test", "!", "-e", "@DIR/hang"], "interval_seconds": 0.1});
    let a = with(with(with(server(first), "liveness", liveness), "grace_seconds", 0.2), "on_exit", "restart");
    let running = Job::start(&json!({"servers": {"a": a}, "driver": driver("wait:@DIR/end exit:0")}));
    let pid = pid_in(&running, "pid");
    running.wait_for_event("process_started", "driver");
    let Some(tracer) = Tracer::seize(pid, Hold::Unreaped) else { return };
    std::fs::write(running.path("hang"), "").expect("a scratch file");
    running.wait_for_event("process_hung", "a");
    std::fs::remove_file(running.path("hang")).expect("it is there");
    let of_a = |kind: &str| running.events().iter().filter(|e| e["event"] == kind && e["process"] == "a").count();
    eventually("it is started again", || (of_a("process_ready") == 2).then_some(()));
    assert_eq!((of_a("process_exited"), of_a("process_gone")), (0, 0), "{:?}", running.events());
    drop(tracer);
    // Its end has been heard of by then.
    eventually("it is reaped", || (!std::path::Path::new(&format!("/proc/{pid}")).exists()).then_some(()));
    std::fs::write(running.path("end"), "").expect("a scratch file");
    let ended = running.end();
    assert_eq!((ended.code, ended.class()), (Some(0), "ok"), "{}", ended.stderr);
    assert_eq!(ended.all("process_restarting").len(), 1);
    let exited = ended.the("process_exited", "a");
    assert_eq!(exited["expected"], json!(true));
    assert_ne!(exited["pid"], json!(pid));
    let said = format!("has ended, but cannot be reaped, and is not waited for any longer: pid {pid} (is it traced?)");
    assert_eq!(warnings_of(&ended.events, "a"), [said]);
}

fn what_was_given_up_is_told_as_what_it_is() {
    let agent = |name: &str| {
        let agent = with(server(&format!("pid:@DIR/{name} serve:${{port:self}} forever")), "grace_seconds", 0.2);
        with(agent, "depends_on", json!(["model"]))
    };
    let model = server("ignore:TERM serve:${port:self} wait:@DIR/go exit:0");
    let running = Job::start(&json!({
        "servers": {
            "model": with(with(model, "stop_signal", "TERM"), "grace_seconds", 60),
            "unreaped": agent("unreaped"),
            "undying": agent("undying"),
            "undead": agent("undead"),
        },
        "driver": driver("wait:@DIR/end exit:0"),
    }));
    running.wait_for_event("process_started", "driver");
    let [unreaped, undying, undead] = ["unreaped", "undying", "undead"].map(|name| pid_in(&running, name));
    let Some(first) = Tracer::seize(unreaped, Hold::Unreaped) else { return };
    let (second, last) = (Tracer::seize(undying, Hold::Undying), Tracer::seize(undead, Hold::Undying));
    std::fs::write(running.path("end"), "").expect("a scratch file");
    // Those that need it were given up.
    running.wait_for_event("process_stopping", "model");
    drop((first, second));
    for agent in ["unreaped", "undying"] {
        running.wait_for_event("process_exited", agent);
    }
    std::fs::write(running.path("go"), "").expect("a scratch file");
    let process = Process::find(undead).expect("it is not dead");
    let left = format!("cannot be killed, and is left behind: pid {undead}");
    eventually("it is left", || warnings_of(&running.events(), "").contains(&left.as_str()).then_some(()));
    drop(last);
    eventually("it dies", || process.is_gone().then_some(()));
    let ended = running.end();
    assert_eq!((ended.code, ended.class()), (Some(0), "ok"), "{}", ended.stderr);
    for (agent, pid, what, why) in [
        ("unreaped", unreaped, "has ended, but cannot be reaped", "is it traced?"),
        ("undying", undying, "does not die of SIGKILL", "in an uninterruptible wait?"),
        ("undead", undead, "does not die of SIGKILL", "in an uninterruptible wait?"),
    ] {
        let said = format!("{what}, and is not waited for any longer: pid {pid} ({why})");
        assert_eq!(warnings_of(&ended.events, agent), [said]);
        for kind in ["process_gone", "process_killed"] {
            assert!(ended.all(kind).iter().all(|e| e["process"] != agent), "{:#?}", ended.events);
        }
    }
    for agent in ["unreaped", "undying"] {
        let exited = ended.the("process_exited", agent);
        assert_eq!((&exited["signal"], &exited["expected"]), (&json!(9), &json!(true)));
        assert_eq!(exited["explanation"], Value::Null);
    }
    assert_eq!(warnings_of(&ended.events, ""), [left]);
}
