//! The sampler of a running gymrun at the default schedule.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::options::Options;
use crate::python::{self, Mode};
use crate::statistics::Series;
use crate::table::{Peer, Row, Table};
use crate::tree::Tree;

const COUNT: usize = 100;
/// Ticks from one reading of PSS to the next.
const ROUND: usize = 10;

/// CPU of the sampler's thread for each tick, while a Python program walks the same tree each second.
pub fn measure(options: &Options, table: &mut Table) {
    let job = Job::start();
    let [mut ours, mut walk] = <[Series; 2]>::default();
    for repetition in 1..=options.repetitions {
        let (before, ticks_before) = (job.cpu(), job.ticks());
        let peer = python::sample(Mode::Walk, job.root, 8, 1.0);
        // Whole rounds, so that each repetition has its part of the exact ones.
        while !(job.ticks() - ticks_before).is_multiple_of(ROUND) {
            std::thread::sleep(Duration::from_millis(50));
        }
        let (spent, ticks) = (job.cpu().saturating_sub(before), job.ticks() - ticks_before);
        assert_eq!(peer.processes, COUNT);
        ours.push(spent.as_secs_f64() * 1e6 / ticks as f64);
        walk.push(peer.cpu);
        eprintln!("{repetition}: {ticks} ticks, {:.0} µs each, Python {:.0}", ours.newest(), walk.newest());
    }
    table.add(&Row {
        name: format!("mean CPU µs of a tick at the default schedule, {COUNT} idle Python processes"),
        ours,
        walk: Some(walk),
        goals: vec![(Peer::Walk, 0.15)],
        ..Row::default()
    });
    table.note(
        "The tick is that of the sampler's thread in a running gymrun, RSS each second and PSS each tenth, with all that it does \
         (adopted children, host and cgroup, the event); the Python walk reads PSS each second.",
    );
}

/// A gymrun that samples a tree of Python servers.
struct Job {
    process: Child,
    folder: tempfile::TempDir,
    root: i32,
    /// Of its thread.
    clock: PathBuf,
}

impl Job {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a scratch directory");
        let python = python::interpreter();
        let command: Vec<String> = std::iter::once(python).chain(Tree::python_arguments(COUNT)).collect();
        let job = json!({
            "name": "sampled",
            "services": {"tree": {"command": command}},
            "driver": {"command": ["sleep", "100000"]},
            "otel": {"enabled": false},
            "telemetry": {"enabled": true, "memory_profiling": {"enabled": true}},
        });
        fs::write(folder.path().join("job.yaml"), job.to_string()).expect("a scratch file");
        let process = Command::new(env!("CARGO_BIN_EXE_gymrun"))
            .arg("job.yaml")
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("gymrun");
        let mut job = Self { process, folder, root: 0, clock: PathBuf::new() };
        let end = Instant::now() + Duration::from_mins(5);
        while job.last_sample()["trees"][0]["processes"] != COUNT {
            assert!(Instant::now() < end, "the tree did not get whole: {}", job.last_sample());
            std::thread::sleep(Duration::from_millis(200));
        }
        job.root = i32::try_from(job.last_sample()["trees"][0]["pid"].as_i64().expect("a pid")).expect("a pid");
        job.clock = thread_clock(job.process.id(), "sampler").expect("gymrun samples");
        // The servers have still to import.
        std::thread::sleep(Duration::from_secs(10));
        job
    }

    fn events(&self) -> String {
        fs::read_to_string(self.folder.path().join("gymrun-jobs/latest/sampled/events.jsonl"))
            .or_else(|_| fs::read_to_string(self.folder.path().join("gymrun-jobs/latest/events.jsonl")))
            .unwrap_or_default()
    }

    fn samples(&self) -> Vec<Value> {
        let events = self.events();
        let parsed = events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        parsed.filter(|event| event["event"] == "memory_sampled").collect()
    }

    fn last_sample(&self) -> Value {
        self.samples().pop().unwrap_or_default()
    }

    fn ticks(&self) -> usize {
        self.samples().len()
    }

    /// CPU time of the sampler's thread.
    fn cpu(&self) -> Duration {
        let text = fs::read_to_string(&self.clock).expect("gymrun runs");
        Duration::from_nanos(text.split(' ').next().and_then(|word| word.parse().ok()).expect("nanoseconds"))
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(self.process.id().cast_signed());
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        let _ = self.process.wait();
    }
}

fn thread_clock(pid: u32, name: &str) -> Option<PathBuf> {
    let named = |folder: &Path| fs::read_to_string(folder.join("comm")).is_ok_and(|comm| comm.trim() == name);
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten().map(|entry| entry.path());
    threads.into_iter().find(|folder| named(folder)).map(|folder| folder.join("schedstat"))
}
