//! Nothing gets away, whatever it does: with cgroups and without, as root and as nobody.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::cases::Case;
use crate::harness::processes::{Process, descendants_of};
use crate::harness::{Place, eventually};
use crate::job::{Ended, Job};
use crate::jobs::{child, driver, server, side_by_side, with};

pub const CASES: &[Case] = &[
    ("nothing_gets_away_whatever_it_does", nothing_gets_away_whatever_it_does),
    ("workers_of_a_deaf_server_go_with_it", workers_of_a_deaf_server_go_with_it),
    ("what_multiplies_is_caught", what_multiplies_is_caught),
    ("a_restart_finds_nothing_of_the_former_life", a_restart_finds_nothing_of_the_former_life),
    ("a_failed_start_leaves_nothing", a_failed_start_leaves_nothing),
    ("a_death_in_mid_run_takes_all_along", a_death_in_mid_run_takes_all_along),
    ("the_second_signal_leaves_nothing", the_second_signal_leaves_nothing),
    ("those_that_multiply_are_stopped_before_they_are_killed", those_that_multiply_are_stopped_before_they_are_killed),
    ("a_daemon_that_keeps_a_pipe_delays_nothing", a_daemon_that_keeps_a_pipe_delays_nothing),
    ("as_the_first_process_zombies_do_not_pile_up", as_the_first_process_zombies_do_not_pile_up),
    ("a_system_call_that_is_forbidden_is_done_without", a_system_call_that_is_forbidden_is_done_without),
    ("a_guard_that_cannot_start_is_done_without_and_said", a_guard_that_cannot_start_is_done_without_and_said),
    ("a_cgroup_that_was_left_goes_and_one_that_is_used_stays", a_cgroup_that_was_left_goes_and_one_that_is_used_stays),
];

/// Long enough for those that obey, on a busy machine too, beside those that do not.
const GRACE: f64 = 3.0;

/// Runs it in each place; whether it has cgroups there is told to `check`.
#[track_caller]
fn everywhere(description: &Value, check: impl Fn(bool, &Ended) + Sync) {
    side_by_side(Place::all(), |place| {
        let has_cgroups = place.has_cgroups;
        let ended = Job::start_in(place, description).end();
        check_means(has_cgroups, &ended);
        check(has_cgroups, &ended);
    });
}

#[track_caller]
fn check_means(has_cgroups: bool, ended: &Ended) {
    let contained = ended.all("contained");
    assert_eq!(contained.len(), 1);
    assert_eq!(contained[0]["by"], if has_cgroups { "cgroup" } else { "walk" }, "{}", contained[0]);
    let said = contained[0][if has_cgroups { "cgroup" } else { "because" }].as_str();
    assert!(said.is_some_and(|said| !said.is_empty()), "{}", contained[0]);
    // What a SIGKILL of gymrun leaves is said wherever nothing guards the job.
    let unguarded = contained[0]["unguarded"].as_str();
    assert_eq!(unguarded.is_some_and(|said| said.contains("SIGKILL")), !has_cgroups, "{}", contained[0]);
}

fn nothing_gets_away_whatever_it_does() {
    // What a process beside the server does, and whether it needs SIGKILL.
    let kinds = [
        ("group", "fork { ignore:TERM forever }", true),
        ("own_group", "fork { group ignore:TERM forever }", true),
        ("session", "fork { session ignore:TERM forever }", true),
        ("daemon", "daemon { ignore:TERM forever }", true),
        ("executed", "daemon { ignore:TERM execute { forever } }", true),
        ("renamed", "fork { rename:kworker/0:1 session ignore:TERM forever }", true),
        ("closed", "daemon { close ignore:TERM forever }", true),
        ("thread", "thread { session ignore:TERM forever }", true),
        ("vforked", "vfork:100000", false),
        // Woken up, it obeys.
        ("stopped", "daemon { stopped forever }", false),
        ("stopped_in_group", "fork { stopped forever }", false),
        // It has no mark and no group of the server's, but is its child when the stop begins.
        ("bare_child", "fork { session ignore:TERM bare { forever } }", true),
        ("bare", "daemon { ignore:TERM bare { forever } }", true),
    ];
    let servers: serde_json::Map<String, Value> = kinds
        .iter()
        .map(|(name, steps, killed)| {
            let server = server(&format!("{steps} serve:${{port:self}} forever"));
            // Who obeys has all the time that a busy machine takes for it; beside one that does not, it has a grace.
            ((*name).to_owned(), with(server, "grace_seconds", if *killed { GRACE } else { 60.0 }))
        })
        .collect();
    everywhere(&json!({"servers": servers, "driver": driver("exit:0")}), |has_cgroups, ended| {
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        for (name, _, killed) in kinds {
            let counts: Vec<&Value> = ended
                .all("process_killed")
                .into_iter()
                .filter(|e| e["process"] == name)
                .map(|e| &e["processes"])
                .collect();
            // Without its session and its mark a daemon is nobody's, where there are no cgroups: it goes at the end.
            let known = killed && (has_cgroups || name != "bare");
            assert_eq!(counts, vec![&json!(1); usize::from(known)], "{name}, cgroups: {has_cgroups}");
        }
        let warnings: Vec<&str> = ended.warnings().iter().filter_map(|e| e["message"].as_str()).collect();
        if has_cgroups {
            assert!(warnings.is_empty(), "{warnings:?}");
        } else {
            let [warning] = warnings[..] else { panic!("{warnings:?}") };
            assert!(
                warning.contains("1 process that belonged to no unit was left") && warning.contains("(pid "),
                "{warning}"
            );
        }
    });
}

fn workers_of_a_deaf_server_go_with_it() {
    let steps = "fork { rename:VLLM::Worker forever } fork { rename:VLLM::Worker session forever } ignore:TERM serve:${port:self} forever";
    let deaf = |steps: &str| with(server(steps), "grace_seconds", GRACE);
    let description = json!({
        "servers": {
            "api": deaf(steps),
            // The same with workers that are as deaf.
            "worse": deaf(&steps.replace(" forever }", " ignore:TERM forever }")),
        },
        "driver": driver("exit:0"),
    });
    everywhere(&description, |_, ended| {
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        // The worker in a session of its own is told nothing while its server lives.
        assert_eq!(ended.the("process_killed", "api")["processes"], json!(2));
        assert_eq!(ended.the("process_killed", "worse")["processes"], json!(3));
        for server in ["api", "worse"] {
            assert_eq!(ended.the("process_exited", server)["signal"], json!(9));
        }
    });
}

fn what_multiplies_is_caught() {
    // 63 processes in as many sessions, and one that is another one each moment, deaf all.
    let steps =
        "bomb:6 daemon { ignore:TERM chain:3000 { forever } } daemon { ignore:TERM bare { chain:3000 { forever } } }";
    let server = with(server(&format!("{steps} serve:${{port:self}} forever")), "grace_seconds", 0.2);
    everywhere(&json!({"servers": {"a": server}, "driver": driver("exit:0")}), |_, ended| {
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.the("process_killed", "a")["processes"].as_u64() >= Some(63));
    });
}

fn a_restart_finds_nothing_of_the_former_life() {
    for place in Place::all() {
        let has_cgroups = place.has_cgroups;
        let steps = "once:@DIR/first { daemon { ignore:TERM pid:@DIR/daemon forever } daemon { ignore:TERM bare { pid:@DIR/bare forever } } \
                     wait:@DIR/daemon wait:@DIR/bare exit:3 } append:@DIR/second:x serve:${port:self} forever";
        let a = with(with(server(steps), "on_exit", "restart"), "grace_seconds", 0.2);
        let running = Job::start_in(place, &json!({"servers": {"a": a}, "driver": driver("wait:@DIR/end exit:0")}));
        running.wait_for("second");
        let pid = |file: &str| running.wait_for(file).trim().parse::<u32>().expect("a pid");
        assert!(Process::find(pid("daemon")).is_none(), "the daemon lives");
        assert_eq!(
            Process::find(pid("bare")).is_none(),
            has_cgroups,
            "where there are cgroups it is known whose it is"
        );
        std::fs::write(running.path("end"), "").expect("a scratch file");
        let ended = running.end();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
}

fn a_failed_start_leaves_nothing() {
    let order = "trap:TERM:@DIR/order:a:0:0 daemon { ignore:TERM bare { forever } } serve:${port:self} forever";
    let collector = "trap:TERM:@DIR/order:collector:0:0 collector:${port:self.health}:@DIR/asked forever";
    let description = json!({
        "otel": {"command": child(collector), "health_check": {"path": "/"}},
        "servers": {
            "a": with(server(order), "grace_seconds", GRACE),
            "b": with(with(with(server("fork { ignore:TERM session forever } forever"), "health_check", json!({"timeout_seconds": 3})), "grace_seconds", GRACE), "depends_on", json!(["a"])),
        },
        "driver": driver("append:@DIR/order:driver"),
    });
    everywhere(&description, |_, ended| {
        assert_eq!((ended.code, ended.class()), (Some(125), "start_failed"), "{}", ended.stderr);
        assert_eq!(ended.lines("order"), ["a", "a gone", "collector", "collector gone"]);
        assert_eq!(ended.the("process_killed", "b")["processes"], json!(1));
    });
}

fn a_death_in_mid_run_takes_all_along() {
    let steps =
        "pid:@DIR/a fork { ignore:TERM forever } daemon { ignore:TERM bare { forever } } serve:${port:self} forever";
    for (on_exit, code, class) in [("stop", 125, "process_died"), ("ignore", 7, "driver_failed")] {
        for place in Place::all() {
            let a = with(with(server(steps), "grace_seconds", 0.3), "on_exit", on_exit);
            let running = Job::start_in(
                place,
                &json!({"servers": {"a": a}, "driver": driver("append:@DIR/ran:x wait:@DIR/end exit:7")}),
            );
            running.wait_for("ran");
            let pid: i32 = running.wait_for("a").trim().parse().expect("a pid");
            nix::sys::signal::kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it runs");
            running.wait_for_event("process_exited", "a");
            if on_exit == "ignore" {
                std::fs::write(running.path("end"), "").expect("a scratch file");
            }
            let ended = running.end();
            assert_eq!((ended.code, ended.class()), (Some(code), class), "{}", ended.stderr);
            assert_eq!(ended.the("process_exited", "a")["signal"], json!(9));
            if on_exit == "stop" {
                assert!(
                    ended.stderr.contains("`a`") || ended.stderr.contains("a:") || ended.stderr.contains("a "),
                    "{}",
                    ended.stderr
                );
                assert!(ended.stderr.contains("signal 9"), "{}", ended.stderr);
            }
        }
    }
}

fn the_second_signal_leaves_nothing() {
    for place in Place::all() {
        let deaf = "daemon { ignore:TERM bare { forever } } fork { ignore:TERM session forever } ignore:TERM serve:${port:self} forever";
        let running = Job::start_in(
            place,
            &json!({
                "servers": {"a": with(server(deaf), "grace_seconds", 600)},
                "driver": with(driver("ignore:TERM append:@DIR/up:x forever"), "grace_seconds", 600),
            }),
        );
        running.wait_for("up");
        running.signal(Signal::SIGTERM);
        running.wait_for_event("process_stopping", "driver");
        running.signal_until_it_ends(Signal::SIGTERM);
        let ended = running.end();
        assert_eq!((ended.code, ended.class()), (Some(143), "told_to_stop"), "{}", ended.stderr);
    }
}

/// At the limit of processes, of a user whom nobody else uses; without a cgroup one look is never enough.
fn those_that_multiply_are_stopped_before_they_are_killed() {
    const USER: u32 = 64_990;
    for outside in [false, true] {
        let Some(place) = Place::make(outside, Some(USER)) else {
            return crate::harness::skip("root", "it takes a user of its own");
        };
        if outside {
            // A cgroup for the job, and none for the unit.
            let path = place.path().expect("it has one").join("cgroup.max.descendants");
            std::fs::write(path, "1").expect("the test is root");
        }
        let mut command = child("ignore:TERM append:@DIR/up:x multiply:60");
        command.as_array_mut().expect("words").splice(0..0, [json!("prlimit"), json!("--nproc=80:80")]);
        let servers = json!({"a": {"command": command, "grace_seconds": 0}});
        let driver = driver("says:@DIR/up:x sleep:0.5 exit:0");
        let ended = Job::start_in(place, &json!({"servers": servers, "driver": driver})).end();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let warnings = ended.warnings();
        let is_meant = |warning: &&Value| outside && warning["message"].to_string().contains("not run in its cgroup");
        assert!(warnings.iter().all(is_meant), "{}", ended.stderr);
        assert_eq!(!warnings.is_empty(), outside, "{}", ended.stderr);
    }
}

fn a_daemon_that_keeps_a_pipe_delays_nothing() {
    // A process has ended when it has, whoever still holds its output; and so has the job.
    for place in Place::all() {
        let keeps = "daemon { ignore:TERM pid:@DIR/daemon forever } wait:@DIR/daemon print:last exit:3";
        let a = with(with(json!({"command": child(keeps)}), "on_exit", "ignore"), "grace_seconds", 0.3);
        let running = Job::start_in(
            place,
            &json!({
                "servers": {"a": with(a, "log", "pipe")},
                "driver": with(driver("fork { ignore:TERM forever } wait:@DIR/end print:done exit:0"), "grace_seconds", 0.3),
            }),
        );
        let exited = running.wait_for_event("process_exited", "a");
        assert_eq!(exited["last_lines"], json!(["last"]));
        let daemon = running.wait_for("daemon").trim().parse().expect("a pid");
        assert!(Process::find(daemon).is_some(), "the daemon that holds the pipe has not been waited for");
        std::fs::write(running.path("end"), "").expect("a scratch file");
        let ended = running.end();
        assert_eq!((ended.code, ended.stdout.as_slice()), (Some(0), b"done\n".as_slice()), "{}", ended.stderr);
    }
}

fn as_the_first_process_zombies_do_not_pile_up() {
    if !nix::unistd::geteuid().is_root() {
        return crate::harness::skip("root", "only root makes a pid namespace");
    }
    let running = Job::start_by(
        &json!({
            "servers": {"a": server("orphans:500 append:@DIR/done:x serve:${port:self} forever")},
            "driver": driver("wait:@DIR/seen"),
        }),
        &["unshare", "-pf", "--mount-proc", "sh", "-c", r#"exec "$0" run "$1""#],
    );
    running.wait_for("done");
    let first = eventually("the first process of the namespace", || {
        descendants_of(running.pid()).first().map(|process| process.pid)
    });
    // A burst may queue up for a moment, but none of it stays.
    eventually("all orphans are reaped", || (crate::harness::processes::zombies(first) == 0).then_some(()));
    std::fs::write(running.path("seen"), "").expect("a scratch file");
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

fn a_system_call_that_is_forbidden_is_done_without() {
    // As containers forbid what they cannot look into: `clone3`, or pidfds, or both.
    for forbidden in [&[libc::SYS_clone3][..], &[libc::SYS_pidfd_open], &[libc::SYS_clone3, libc::SYS_close_range]] {
        side_by_side(Place::all(), |place| {
            let has_cgroups = place.has_cgroups;
            let deaf = "daemon { ignore:TERM forever } fork { ignore:TERM session forever } serve:${port:self} forever";
            let description = json!({
                "servers": {"a": with(server(deaf), "grace_seconds", GRACE)},
                "driver": driver("environment:@DIR/environment exit:5"),
            });
            let ended = Job::start_in_with(place, &description, |command| forbid(command, forbidden)).end();
            assert_eq!(ended.code, Some(5), "{}", ended.stderr);
            check_means(has_cgroups, &ended);
            assert!(ended.warnings().is_empty(), "{:?}", ended.warnings());
            assert_eq!(ended.the("process_killed", "a")["processes"], json!(2));
        });
    }
}

fn a_guard_that_cannot_start_is_done_without_and_said() {
    // The guard alone is a plain fork.
    for user in [None, Some(65_534)] {
        let Some(place) = Place::make(true, user) else { return };
        let description = json!({
            "servers": {"a": with(server("ignore:TERM serve:${port:self} forever"), "grace_seconds", 0.2)},
            "driver": driver("exit:5"),
        });
        let ended = Job::start_in_with(place, &description, |command| forbid(command, &[libc::SYS_clone])).end();
        assert_eq!(ended.code, Some(5), "{}", ended.stderr);
        let contained = ended.all("contained")[0];
        assert_eq!(contained["by"], "cgroup", "{contained}");
        let said = contained["unguarded"].as_str().unwrap_or_default();
        let words = ["the guard of the job's cgroup cannot be started (", "if gymrun itself is killed by SIGKILL"];
        assert!(words.iter().all(|words| said.contains(words)), "{contained}");
        let warnings: Vec<_> = ended.warnings().iter().filter_map(|e| e["message"].as_str()).collect();
        assert_eq!(warnings, [said]);
        assert_eq!(ended.the("process_killed", "a")["processes"], json!(1));
    }
}

/// From its exec on these system calls are none that the kernel knows.
#[expect(unsafe_code, reason = "no library here installs a filter")]
fn forbid(command: &mut Command, calls: &[libc::c_long]) {
    let statement = |code: u32, value: u32, jump: u8| libc::sock_filter {
        code: u16::try_from(code).expect("a small number"),
        jt: 0,
        jf: jump,
        k: value,
    };
    // The number of the call is the first word that the filter sees.
    let mut filter = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    for call in calls {
        filter.push(statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, u32::try_from(*call).expect("a number"), 1));
        let refused = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
        filter.push(statement(libc::BPF_RET | libc::BPF_K, refused, 0));
    }
    filter.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0));
    let install = move || {
        let program = libc::sock_fprog {
            len: u16::try_from(filter.len()).expect("a short program"),
            filter: filter.as_ptr().cast_mut(),
        };
        // SAFETY: the program is whole, and the kernel copies it.
        let installed = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
        };
        if installed == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: system calls alone.
    unsafe { command.pre_exec(install) };
}

fn a_cgroup_that_was_left_goes_and_one_that_is_used_stays() {
    for user in [None, Some(65_534)] {
        let Some(place) = Place::make(true, user) else { return };
        let path = place.path().expect("it has one").to_owned();
        // One of a gymrun that was killed, with what a unit had made below its own; and a stranger.
        for name in ["gymrun-1-aaaaaa", "gymrun-1-aaaaaa/0-a", "gymrun-1-aaaaaa/0-a/deeper", "other"] {
            std::fs::create_dir(path.join(name)).expect("a cgroup");
            if let Some(user) = user {
                std::os::unix::fs::chown(path.join(name), Some(user), Some(user)).expect("the test is root");
            }
        }
        let running = Job::start_in(place, &json!({"driver": driver("append:@DIR/up:x wait:@DIR/end exit:0")}));
        running.wait_for("up");
        assert!(!path.join("gymrun-1-aaaaaa").exists() && path.join("other").exists());
        std::fs::remove_dir(path.join("other")).expect("an empty cgroup");
        std::fs::write(running.path("end"), "").expect("a scratch file");
        assert_eq!(running.end().code, Some(0));
    }
}
