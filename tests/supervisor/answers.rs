//! Whose answer counts: a server is not ready because somebody else listens on its port.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use gymrun::procfs::Proc;
use serde_json::{Value, json};

use crate::cases::Case;
use crate::harness::{Place, Program, eventually, free_port, skip};
use crate::job::{Ended, Job, job};
use crate::jobs::{child, driver, server, side_by_side, with};
use crate::listen::has_ipv6;

pub const CASES: &[Case] = &[
    (
        "a_server_of_one_family_that_is_asked_at_the_other_is_told_so",
        a_server_of_one_family_that_is_asked_at_the_other_is_told_so,
    ),
    ("an_older_listener_does_not_answer_for_a_server", an_older_listener_does_not_answer_for_a_server),
    ("another_units_listener_does_not_answer_for_a_server", another_units_listener_does_not_answer_for_a_server),
    ("a_port_is_shared_among_ones_own_only", a_port_is_shared_among_ones_own_only),
    ("a_listener_of_ones_own_counts_however_it_came_to_be", a_listener_of_ones_own_counts_however_it_came_to_be),
    ("a_listener_that_cannot_be_told_counts_with_one_warning", a_listener_that_cannot_be_told_counts_with_one_warning),
    ("a_listener_of_another_user_counts_with_one_warning", a_listener_of_another_user_counts_with_one_warning),
    ("a_listener_outside_of_a_container_counts_with_one_warning", a_listener_outside_of_a_container_counts),
    ("what_a_former_life_left_listening_is_ended", what_a_former_life_left_listening_is_ended),
    ("who_took_the_port_between_two_lives_does_not_answer", who_took_the_port_between_two_lives_does_not_answer),
    ("a_stranger_does_not_keep_a_hanging_server_alive", a_stranger_does_not_keep_a_hanging_server_alive),
    ("somebody_else_may_be_asked_on_purpose", somebody_else_may_be_asked_on_purpose),
];

/// A process that is none of the job's, and runs these steps.
pub fn stranger(steps: &str) -> Program {
    let own = std::env::current_exe().expect("a test has a file");
    let mut command = Command::new(own);
    Program::start(command.arg("child").args(steps.split_ascii_whitespace()).stdin(Stdio::null()))
}

/// Waits until a file is there, and whoever starts from now on is younger than the process.
pub fn wait_until_it_is_older(program: &Program, file: &Path) {
    eventually("it listens", || file.exists().then_some(()));
    let started = Proc::default().identity(program.pid().cast_signed()).expect("it runs").started;
    eventually("it is older than what comes", || {
        let text = std::fs::read_to_string("/proc/uptime").expect("Linux");
        let uptime: f64 = text.split(' ').next().expect("two numbers").parse().expect("a number");
        // In ticks of a hundredth of a second.
        (uptime * 100.0 > started as f64 + 3.0).then_some(())
    });
}

/// The port that was chosen for a process.
pub fn port_of(running: &Job, process: &str) -> u64 {
    let event = running.wait_for_event("ports_chosen", "");
    event["ports"][process].as_u64().expect("a port")
}

/// The warnings about a process.
fn warnings<'a>(ended: &'a Ended, process: &str) -> Vec<&'a str> {
    let about = ended.warnings().into_iter().filter(|event| event["process"] == process);
    about.filter_map(|event| event["message"].as_str()).collect()
}

fn an_older_listener_does_not_answer_for_a_server() {
    let checks = [
        json!({"timeout_seconds": 3}),
        json!({"timeout_seconds": 3, "host": "localhost"}),
        json!({"timeout_seconds": 3, "type": "tcp"}),
        json!({"timeout_seconds": 3, "type": "exec", "command": child("connect:${port:self}")}),
    ];
    side_by_side(checks, |check| {
        let running = Job::start(&json!({
            "services": {"gate": {"type": "task", "command": child("wait:@DIR/go")}},
            "servers": {"victim": with(with(server("forever"), "depends_on", json!(["gate"])), "health_check", check.clone())},
            "driver": driver("append:@DIR/ran:x"),
        }));
        let port = port_of(&running, "victim");
        // It gets the port as soon as gymrun lets go of it.
        let up = running.path("up");
        let mut stranger = stranger(&format!("append:{}:x listen:own4:{port}:200:patient forever", up.display()));
        wait_until_it_is_older(&stranger, &up);
        std::fs::write(running.path("go"), "").expect("a scratch file");
        let ended = running.end();
        assert_eq!((ended.code, ended.class()), (Some(125), "start_failed"), "{check}: {}", ended.stderr);
        let answer = ended.the("process_not_ready", "victim")["answer"].as_str().unwrap_or_default().to_owned();
        let named = format!("port {port} is answered by pid {} (`", stranger.pid());
        assert!(answer.starts_with(&named), "{check}: {answer}");
        assert!(answer.ends_with("not by this process: it is older"), "{check}: {answer}");
        assert!(ended.file("ran").is_empty());
        assert!(stranger.status().is_none());
    });
}

fn another_units_listener_does_not_answer_for_a_server() {
    let of_port = |port: Value| {
        let victim = |steps: &str| {
            with(with(server(steps), "port", port.clone()), "health_check", json!({"timeout_seconds": 5}))
        };
        let older = json!({
            "thief": server("fork { listen:own4:${port:victim}:200:patient forever } serve:${port:self} forever"),
            "victim": with(victim("forever"), "depends_on", json!(["thief"])),
        });
        // Here it is the process that listens which is younger.
        let younger = json!({
            "thief": server("wait:@DIR/up fork { serve:${port:victim} forever } serve:${port:self} forever"),
            "victim": victim("append:@DIR/up:x forever"),
        });
        [(older, "it is older"), (younger, "it is part of `thief`")]
    };
    let [[older, _], [_, younger]] = [(); 2].map(|()| of_port(json!(free_port())));
    let cases = of_port(json!("auto")).into_iter().chain([older, younger]);
    side_by_side(cases, |(servers, why)| {
        let ended = job(&json!({"servers": servers}));
        assert_eq!(ended.code, Some(125));
        let answer = ended.the("process_not_ready", "victim")["answer"].as_str().unwrap_or_default().to_owned();
        // Which of the two is said of one that is both depends on the clock's ticks.
        let said = answer.contains(why) || answer.contains("it is part of `thief`");
        assert!(answer.contains("not by this process") && said, "{answer}");
    });
}

fn a_port_is_shared_among_ones_own_only() {
    let shared = "listen:own4:${port:victim}:200:share";
    let thief = format!("fork {{ {shared}:patient append:@DIR/taken:x forever }} serve:${{port:self}} forever");
    let ended = job(&json!({"servers": {
        "thief": server(&thief),
        "victim": with(
            with(server(&format!("wait:@DIR/taken {shared} forever")), "depends_on", json!(["thief"])),
            "health_check",
            json!({"timeout_seconds": 3}),
        ),
    }}));
    assert_eq!(ended.code, Some(125));
    let answer = ended.the("process_not_ready", "victim")["answer"].as_str().unwrap_or_default().to_owned();
    assert!(answer.contains("not by this process"), "{answer}");
}

fn a_listener_of_ones_own_counts_however_it_came_to_be() {
    let mut servers = serde_json::Map::new();
    let mut add = |steps: &str, host: &str| {
        let check = json!({"host": host, "timeout_seconds": 120});
        servers.insert(format!("s{}", servers.len()), with(server(steps), "health_check", check));
    };
    for steps in [
        "listen:own4:${port:self} forever",
        "listen:any4:${port:self} forever",
        "fork { listen:own4:${port:self} forever } forever",
        "fork { fork { listen:own4:${port:self} forever } forever } forever",
        "daemon { listen:own4:${port:self} forever } forever",
        // Inherited: two processes have one socket.
        "listen:own4:${port:self} fork { forever } forever",
        "fork { listen:own4:${port:self}:200:share forever } listen:own4:${port:self}:200:share forever",
    ] {
        add(steps, "127.0.0.1");
    }
    if has_ipv6() {
        add("listen:dual:${port:self} forever", "127.0.0.1");
        add("listen:dual:${port:self} forever", "::1");
        add("listen:mapped:${port:self} forever", "127.0.0.1");
        add("listen:own6:${port:self} forever", "localhost");
        add("listen:any6:${port:self} forever", "localhost");
        add("listen:own4:${port:self} listen:own6:${port:self}:503 forever", "localhost");
    }
    let ended = job(&json!({"servers": servers, "driver": driver("exit:0")}));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.warnings().is_empty(), "{:?}", ended.warnings());
}

fn a_server_of_one_family_that_is_asked_at_the_other_is_told_so() {
    let mut places = vec![("other4", "127.0.0.1", "127.0.0.2")];
    if has_ipv6() {
        places.extend([("own6", "127.0.0.1", "[::1]"), ("any6", "127.0.0.1", "[::]"), ("own4", "::1", "127.0.0.1")]);
    }
    side_by_side(places, |(place, asked, told)| {
        let steps = format!("listen:{place}:${{port:self}} forever");
        // A busy machine may take its time until it listens.
        let check = json!({"host": asked, "timeout_seconds": 5});
        let ended = job(&json!({"servers": {"a": with(server(&steps), "health_check", check)}}));
        assert_eq!(ended.code, Some(125), "{}", ended.stderr);
        let answer = ended.the("process_not_ready", "a")["answer"].as_str().unwrap_or_default();
        assert!(answer.starts_with(&format!("connection refused; by now it listens on {told}:")), "{place}: {answer}");
    });
}

/// A job whose server does not listen, and does not end before it has been asked many times if it is alive.
fn doubtful(steps: &str) -> Value {
    json!({
        "servers": {"victim": with(server(steps), "liveness", json!({"interval_seconds": 0.02}))},
        "driver": driver("sleep:0.3"),
    })
}

#[track_caller]
fn counts_with_one_warning(ended: &Ended, who: &str) {
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let warnings = warnings(ended, "victim");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains(who) && warnings[0].contains("it counts"), "{warnings:?}");
}

fn a_listener_that_cannot_be_told_counts_with_one_warning() {
    // Younger, and of nobody's tree.
    let running = Job::start(&doubtful("append:@DIR/up:x forever"));
    running.wait_for("up");
    let stranger = stranger(&format!("listen:own4:{} forever", port_of(&running, "victim")));
    counts_with_one_warning(&running.end(), &format!("it is pid {} (`", stranger.pid()));
    // Its own, which has done everything to hide that; and where there are cgroups that does not help it.
    let hides = doubtful("hidden { listen:own4:${port:self} forever } forever");
    counts_with_one_warning(&Job::start_in(Place::walked(), &hides).end(), "it is pid ");
    if let Some(place) = Place::make(true, None) {
        let ended = Job::start_in(place, &hides).end();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.warnings().is_empty(), "{:?}", ended.warnings());
    }
}

fn a_listener_of_another_user_counts_with_one_warning() {
    if !nix::unistd::geteuid().is_root() {
        return skip("root", "only root can start a process of another user");
    }
    let nobody = 65534;
    let running = Job::start_with(&doubtful("append:@DIR/up:x forever"), |command| {
        let dir = command.get_args().last().expect("the job's directory").to_owned();
        std::os::unix::fs::chown(dir, Some(nobody), Some(nobody)).expect("root may");
        command.uid(nobody).gid(nobody);
    });
    running.wait_for("up");
    let _stranger = stranger(&format!("listen:any4:{} forever", port_of(&running, "victim")));
    counts_with_one_warning(&running.end(), "it is a process of user 0 that cannot be looked at");
}

fn a_listener_outside_of_a_container_counts() {
    let unshared = ["unshare", "--fork", "--pid", "--mount-proc"];
    let there = Command::new(unshared[0]).args(&unshared[1..]).arg("true").stderr(Stdio::null()).status();
    if !there.is_ok_and(|status| status.success()) {
        return skip("root", "no namespace of processes can be made here");
    }
    let running = Job::start_by(
        &doubtful("append:@DIR/up:x forever"),
        &["sh", "-c", &format!("exec {} \"$0\" run \"$1\"", unshared.join(" "))],
    );
    running.wait_for("up");
    let _stranger = stranger(&format!("listen:own4:{} forever", port_of(&running, "victim")));
    counts_with_one_warning(&running.end(), "cannot be looked at");
}

fn what_a_former_life_left_listening_is_ended() {
    let listens = "listen:own4:${port:self} forever";
    let first = format!("append:@DIR/again:x hidden {{ {listens} }} wait:@DIR/die exit:1");
    // With cgroups nothing of a former life is left.
    let description = json!({
        "servers": {"a": {
            "command": child(&format!("unless:@DIR/again {{ {first} }} {listens}")),
            "port": "auto",
            "health_check": {"timeout_seconds": 30},
            "on_exit": "restart",
            "restart": {"limit": 1, "backoff_seconds": 0},
        }},
        "driver": driver("append:@DIR/driving:x wait:@DIR/seen"),
    });
    let running = Job::start_in(Place::walked(), &description);
    running.wait_for("driving");
    std::fs::write(running.path("die"), "").expect("a scratch file");
    let ready = || running.events().iter().filter(|e| e["event"] == "process_ready" && e["process"] == "a").count();
    eventually("the second life is ready", || (ready() == 2).then_some(()));
    std::fs::write(running.path("seen"), "").expect("a scratch file");
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let left = warnings(&ended, "a");
    let of_it = left.iter().filter(|text| text.contains("that a process of this job has left, and is killed"));
    assert_eq!(of_it.count(), 1, "{left:?}");
    assert!(!ended.stderr.contains("belonged to no unit"), "{}", ended.stderr);
}

fn who_took_the_port_between_two_lives_does_not_answer() {
    let port = free_port();
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let [go, taken] = ["go", "taken"].map(|name| scratch.path().join(name).display().to_string());
    let stranger = stranger(&format!("wait:{go} listen:own4:{port}:200:patient append:{taken}:x forever"));
    let first = "append:@DIR/again:x listen:own4:${port:self}:200:closes=@DIR/die wait:@DIR/die";
    let running = Job::start(&json!({
        "servers": {"a": {
            "command": child(&format!("unless:@DIR/again {{ {first} wait:{taken} exit:1 }} forever")),
            "port": port,
            "health_check": {"timeout_seconds": 2},
            "on_exit": "restart",
            "restart": {"limit": 1},
        }},
        "driver": driver("append:@DIR/driving:x forever"),
    }));
    running.wait_for("driving");
    for file in [Path::new(&go), &running.path("die")] {
        std::fs::write(file, "").expect("a scratch file");
    }
    let ended = running.end();
    assert_eq!(ended.code, Some(125), "{}", ended.stderr);
    let answer = ended.the("process_not_ready", "a")["answer"].as_str().unwrap_or_default().to_owned();
    assert!(answer.contains(&format!("pid {}", stranger.pid())), "{answer}");
    assert!(answer.ends_with("not by this process: it is older"), "{answer}");
    let said = format!("has been taken meanwhile: it is held by pid {}", stranger.pid());
    let taken = warnings(&ended, "a").into_iter().filter(|text| text.contains(&said));
    assert_eq!(taken.count(), 1, "{:?}", warnings(&ended, "a"));
}

fn a_stranger_does_not_keep_a_hanging_server_alive() {
    let port = free_port();
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let (go, up) = (scratch.path().join("go"), scratch.path().join("up"));
    let stranger =
        stranger(&format!("append:{}:x wait:{} listen:own4:{port}:200:patient forever", up.display(), go.display()));
    wait_until_it_is_older(&stranger, &up);
    let victim = server("listen:own4:${port:self}:200:closes=@DIR/close forever");
    let running = Job::start(&json!({
        "servers": {"victim": with(with(victim, "port", port), "liveness", json!({"interval_seconds": 2}))},
        "driver": driver("append:@DIR/driving:x forever"),
    }));
    running.wait_for("driving");
    std::fs::write(&go, "").expect("a scratch file");
    std::fs::write(running.path("close"), "").expect("a scratch file");
    let ended = running.end();
    assert_eq!((ended.code, ended.class()), (Some(125), "process_died"), "{}", ended.stderr);
    let answer = ended.the("process_hung", "victim")["answer"].as_str().unwrap_or_default().to_owned();
    assert!(answer.contains(&format!("pid {}", stranger.pid())) && answer.ends_with("it is older"), "{answer}");
}

fn somebody_else_may_be_asked_on_purpose() {
    // A worker that is ready when its head is.
    let ended = job(&json!({
        "servers": {
            "head": server("serve:${port:self} forever"),
            "worker": {
                "command": child("forever"),
                "port": "auto",
                "depends_on": ["head"],
                "health_check": {"port": "${port:head}", "timeout_seconds": 120},
            },
        },
        "driver": driver("exit:0"),
    }));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.warnings().is_empty());
}
