use std::path::PathBuf;

use super::{Facts, Kills, explain, wrapped_signal};
use crate::events::{ExitStatus, Held, MemoryAtDeath, Place};
use crate::procfs::{Limits, Remains, Space};

const NOT_OURS: &str = "ended by SIGKILL, which gymrun did not send: from outside, or from one of its own processes";

fn facts(code: Option<i32>, signal: Option<i32>) -> Facts {
    Facts {
        status: ExitStatus { code, signal },
        remains: Remains::default(),
        core_pattern: Some("core".into()),
        kills: Kills { cgroup: Some(0), host: Some(0), within_seconds: 1.0 },
        memory: MemoryAtDeath::default(),
        places: vec![
            (Place::SharedMemory, PathBuf::from("/dev/shm"), space(64 << 20, 60 << 20)),
            (Place::JobDirectory, PathBuf::from("/jobs/a"), space(1 << 40, 1 << 39)),
        ],
        slurm: false,
    }
}

fn by(signal: i32) -> Facts {
    facts(None, Some(signal))
}

fn with(code: i32) -> Facts {
    facts(Some(code), None)
}

fn space(total: u64, free: u64) -> Space {
    Space { total, free, files: 1000, free_files: 500 }
}

fn counted(cgroup: Option<u64>, host: Option<u64>, facts: Facts) -> Facts {
    Facts { kills: Kills { cgroup, host, within_seconds: 0.75 }, ..facts }
}

fn limited(facts: Facts) -> Facts {
    let held = Some(Held { bytes: 15 << 30, proportional: true, seconds_before: 2.125 });
    Facts { memory: MemoryAtDeath { limit_bytes: Some(16 << 30), held }, ..facts }
}

#[track_caller]
fn said(facts: &Facts) -> String {
    explain(facts).map(|explanation| explanation.text).unwrap_or_default()
}

#[test]
fn what_went_well_or_says_nothing_needs_no_explanation() {
    assert_eq!(explain(&with(0)), None);
    assert_eq!(explain(&counted(Some(3), Some(3), with(0))), None);
    assert_eq!(explain(&with(1)), None);
    assert_eq!(explain(&counted(None, None, with(1))), None);
}

#[test]
fn a_sigkill_is_held_against_what_was_counted() {
    assert_eq!(
        said(&limited(counted(Some(1), Some(1), by(libc::SIGKILL)))),
        "killed by the kernel for memory: its cgroup's limit is 16.0 GiB; \
         at the last sample (2.1 s before) its tree held 15.0 GiB (PSS), and may have grown since"
    );
    assert_eq!(
        said(&counted(Some(2), Some(2), by(libc::SIGKILL))),
        "killed by the kernel for memory: the host had none left, since no limit on its cgroup is seen"
    );
    assert!(
        said(&counted(None, Some(1), by(libc::SIGKILL))).contains("whether it was this process cannot be seen here")
    );
    assert_eq!(said(&limited(by(libc::SIGKILL))), format!("{NOT_OURS}; no out-of-memory kill was counted"));
    assert_eq!(
        said(&counted(Some(0), Some(2), by(libc::SIGKILL))),
        format!("{NOT_OURS}; no out-of-memory kill was counted in its cgroup, but 2 elsewhere on the host")
    );
    assert_eq!(
        said(&counted(None, Some(0), by(libc::SIGKILL))),
        format!("{NOT_OURS}; no out-of-memory kill was counted")
    );
    assert_eq!(
        said(&counted(None, None, by(libc::SIGKILL))),
        format!("{NOT_OURS}; whether the kernel did that for memory cannot be seen here")
    );
}

#[test]
fn another_end_may_come_of_a_child_that_was_killed_for_memory() {
    for facts in [with(1), by(libc::SIGABRT)] {
        let text = said(&limited(counted(Some(1), Some(1), facts)));
        let killed = "the kernel killed 1 process of its cgroup for memory in the 0.8 s before, its limit is 16.0 GiB";
        assert!(text.contains(killed), "{text}");
        assert!(text.ends_with("its tree held 15.0 GiB (PSS), and may have grown since"), "{text}");
    }
    let elsewhere = said(&counted(None, Some(2), with(1)));
    assert_eq!(elsewhere, "the kernel killed 2 processes somewhere on this host for memory in the 0.8 s before");
}

#[test]
fn limits_are_named_with_their_value() {
    let limits = |cpu: Option<u64>, hard: Option<u64>, size: Option<u64>, used: f64, signal: i32| {
        let limits = Limits { cpu_seconds: cpu, cpu_seconds_hard: hard, file_size: size };
        said(&Facts { remains: Remains { limits, cpu_seconds: used, ..Remains::default() }, ..by(signal) })
    };
    let cpu = "it used up its limit of CPU time, 7 s (RLIMIT_CPU, `ulimit -t`)";
    assert_eq!(limits(Some(8), Some(90), None, 7.0, libc::SIGXCPU), cpu);
    // `ulimit -t` sets both, and at the hard one it is SIGKILL.
    assert_eq!(limits(Some(7), Some(7), None, 6.3, libc::SIGKILL), cpu);
    assert!(limits(Some(7), Some(7), None, 5.2, libc::SIGKILL).starts_with(NOT_OURS));
    assert_eq!(
        limits(None, None, Some(5 << 20), 0.0, libc::SIGXFSZ),
        "it wrote a file beyond its limit of size, 5.00 MiB (RLIMIT_FSIZE, `ulimit -f`)"
    );
    assert_eq!(limits(None, None, None, 0.0, libc::SIGXCPU), NOT_OURS.replace("SIGKILL", "SIGXCPU"));
}

#[test]
fn a_full_file_system_is_named_with_the_way_out() {
    let full = |facts: Facts| Facts {
        places: vec![
            (Place::SharedMemory, PathBuf::from("/dev/shm"), space(64 << 20, 4096)),
            (Place::JobDirectory, PathBuf::from("/jobs/a"), Space { free_files: 0, ..space(1 << 40, 1 << 39) }),
            (Place::Temporary, PathBuf::from("/tmp"), space(1 << 40, 1 << 39)),
        ],
        ..facts
    };
    let named = "`/dev/shm` is full, 4.00 KiB of 64.0 MiB left: make room, or give a container more with `--shm-size`; \
                 `/jobs/a` is full, 0 more files fit: make room, or choose another `--output-path`";
    assert_eq!(said(&full(with(1))), named);
    assert!(said(&full(by(libc::SIGBUS))).ends_with(named));
    // It has nothing to do with a signal that somebody sent.
    assert!(!said(&full(by(libc::SIGTERM))).contains("full"));
    // After a bus error the size of shared memory tells, if what was in it is gone by now.
    assert!(said(&by(libc::SIGBUS)).ends_with("was full; `/dev/shm`: 60.0 MiB of 64.0 MiB left"));
}

#[test]
fn faults_say_what_they_are_and_where_the_core_is() {
    let dumped = |pattern: &str| {
        let remains = Remains { dumped_core: true, ..Remains::default() };
        said(&Facts { remains, core_pattern: Some(pattern.into()), ..by(libc::SIGSEGV) })
    };
    assert_eq!(said(&by(libc::SIGSEGV)), "it touched memory that it does not have");
    assert!(dumped("core.%p").ends_with("; its core is in its working directory, `core.%p`"));
    assert!(dumped("/cores/%e").ends_with("; its core is at `/cores/%e`"));
    assert!(dumped("|/usr/lib/dump %P %u").ends_with("; its core went to `/usr/lib/dump`"));
    for signal in [libc::SIGABRT, libc::SIGILL, libc::SIGFPE, libc::SIGSYS, libc::SIGPIPE, libc::SIGTRAP, libc::SIGALRM]
    {
        assert!(!said(&by(signal)).contains("outside"), "{signal}");
    }
}

#[test]
fn signals_from_outside_are_called_that() {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, 40] {
        assert!(said(&by(signal)).contains("which gymrun did not send: from outside"), "{signal}");
    }
    assert!(said(&by(40)).contains("signal 40"));
    let slurm = said(&Facts { slurm: true, ..by(libc::SIGTERM) });
    assert!(slurm.contains("`scancel`"), "{slurm}");
}

#[test]
fn codes_that_wrap_a_signal_are_read() {
    assert_eq!(
        said(&with(137)),
        "its exit code 137 is what a shell gives when its child was ended by SIGKILL; no out-of-memory kill was counted"
    );
    assert_eq!(said(&with(143)), "its exit code 143 is what a shell gives when its child was ended by SIGTERM");
    assert_eq!(
        said(&with(247)).split(';').next(),
        Some("its exit code 247 is -9, what Python gives when a child was ended by SIGKILL")
    );
    assert!(said(&limited(counted(Some(1), None, with(137)))).contains("the kernel killed 1 process of its cgroup"));
    assert_eq!(said(&with(127)), "its exit code 127 is what a shell gives when a program does not exist");
    assert_eq!(said(&with(126)), "its exit code 126 is what a shell gives when a program cannot be executed");
    for code in [2, 3, 128, 192, 255] {
        assert_eq!(wrapped_signal(code), None, "{code}");
    }
}

#[test]
fn the_numbers_stand_beside_the_words() {
    let explanation = explain(&limited(counted(Some(1), Some(1), by(libc::SIGKILL)))).expect("it is explained");
    let json = serde_json::to_value(&explanation).expect("plain data");
    assert_eq!(json["text"], explanation.text);
    assert_eq!(
        json["findings"],
        serde_json::json!([{
            "kind": "out_of_memory", "certain": true, "limit_bytes": 16_u64 << 30,
            "held": {"bytes": 15_u64 << 30, "proportional": true, "seconds_before": 2.125},
        }])
    );
}
