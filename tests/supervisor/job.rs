//! Jobs for tests: written in the keys of a job file, run by `supervisor::run` in a process of their own.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use gymrun::events::Sink;
use gymrun::jobdir::Summary;
use gymrun::supervisor::{DriverOutput, RunOptions, ShowOutput, run as supervise};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::harness::processes::of_job;
use crate::harness::{Place, Program, Running, eventually, is_free, json_lines_so_far};
use crate::plan::plan;

/// A job that was started. Nobody reads its output before its end.
pub struct Job {
    pub id: String,
    /// Before the directory and the program: it looks at both.
    witness: Witness,
    pub dir: tempfile::TempDir,
    process: Program,
    place: Place,
}

/// Says what a job was at, when a test fails.
struct Witness {
    id: String,
    dir: PathBuf,
}

impl Drop for Witness {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let read = |path: PathBuf| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
        let events = read(self.dir.join("events.jsonl"));
        let first = events.lines().count().saturating_sub(30);
        println!("the last events of {}:", self.id);
        events.lines().skip(first).for_each(|line| println!("  {line}"));
        for (pid, command) in of_job(&self.id) {
            let proc = PathBuf::from(format!("/proc/{pid}"));
            println!("  still there: {command}: {} {}", read(proc.join("stat")).trim(), read(proc.join("wchan")));
        }
    }
}

/// A job that is over.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
    pub events: Vec<Value>,
    pub dir: tempfile::TempDir,
}

impl Job {
    /// Starts a job whose text may say `@DIR` for its directory.
    pub fn start(description: &Value) -> Self {
        Self::start_with(description, |_| {})
    }

    pub fn start_with(description: &Value, change: impl FnOnce(&mut Command)) -> Self {
        Self::start_as(description, &[], Place::here(), change)
    }

    /// In a cgroup of its own.
    pub fn start_in(place: Place, description: &Value) -> Self {
        Self::start_as(description, &[], place, |_| {})
    }

    /// The same with the command changed.
    pub fn start_in_with(place: Place, description: &Value, change: impl FnOnce(&mut Command)) -> Self {
        Self::start_as(description, &[], place, change)
    }

    /// Through another program, which gets the executable and the job's directory as its last arguments; its own may say
    /// `@DIR`, too.
    pub fn start_by(description: &Value, program: &[&str]) -> Self {
        Self::start_as(description, program, Place::here(), |_| {})
    }

    /// With a directory that is not on a disk: where a cgroup of version 1 has a limit on memory, who wants more waits until
    /// the pages of its files are written, and a disk that is busy lets the kernel kill nobody for a minute.
    pub fn start_in_memory(description: &Value) -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| scratch());
        Self::start_at(dir, description, &[], Place::here(), |_| {})
    }

    /// With a directory that is on a disk, as far as this is known, by another program.
    pub fn start_on_disk_by(description: &Value, program: &[&str]) -> Self {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a scratch directory");
        Self::start_at(dir, description, program, Place::here(), |_| {})
    }

    fn start_as(description: &Value, program: &[&str], place: Place, change: impl FnOnce(&mut Command)) -> Self {
        Self::start_at(scratch(), description, program, place, change)
    }

    fn start_at(
        dir: tempfile::TempDir,
        description: &Value,
        program: &[&str],
        place: Place,
        change: impl FnOnce(&mut Command),
    ) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let id = format!("t{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::SeqCst));
        let mut description = description.clone();
        description["job_id"] = id.clone().into();
        let text = description.to_string().replace("@DIR", &dir.path().display().to_string());
        std::fs::write(dir.path().join("job.json"), text).expect("a scratch file");
        let own = std::env::current_exe().expect("a test has a file");
        let first = program.first().map_or(own.as_os_str(), |word| std::ffi::OsStr::new(word));
        #[expect(clippy::disallowed_methods, reason = "the gymrun under test is no child of a gymrun")]
        let mut command = Command::new(first);
        if let Some(rest) = program.get(1..) {
            command.args(rest.iter().map(|word| word.replace("@DIR", &dir.path().display().to_string()))).arg(&own);
        } else {
            command.arg("run");
        }
        command.arg(dir.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        change(&mut command);
        place.give(dir.path());
        place.put(&mut command);
        let witness = Witness { id: id.clone(), dir: dir.path().to_owned() };
        Self { id, witness, process: Program::start(&mut command), dir, place }
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Waits until a file of the job's directory has something in it.
    pub fn wait_for(&self, name: &str) -> String {
        eventually(name, || std::fs::read_to_string(self.path(name)).ok().filter(|text| text.ends_with('\n')))
    }

    /// Waits for an event of a kind about a process.
    pub fn wait_for_event(&self, kind: &str, process: &str) -> Value {
        eventually(kind, || {
            events(self.dir.path())
                .into_iter()
                .find(|e| e["event"] == kind && e["process"].as_str().unwrap_or_default() == process)
        })
    }

    /// All events up to now.
    pub fn events(&self) -> Vec<Value> {
        events(self.dir.path())
    }

    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Sends it again and again, as somebody at a terminal does, until gymrun says that it has ended.
    #[track_caller]
    pub fn signal_until_it_ends(&self, signal: Signal) {
        let ended = || self.events().last().is_some_and(|event| event["class"].is_string());
        eventually("the end", || {
            self.process.signal_if_running(signal);
            ended().then_some(())
        });
    }

    /// The same after the reader of its stdout has gone away.
    #[track_caller]
    pub fn end_without_reading(mut self) -> Ended {
        drop(self.process.stdout());
        self.end()
    }

    /// Waits for the end, and sees that nothing of the job is left.
    #[track_caller]
    pub fn end(self) -> Ended {
        let ended = Running::read(self.process).end();
        let left = of_job(&self.id);
        for (pid, _) in &left {
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
        }
        assert!(left.is_empty(), "left behind: {left:?}");
        let left = self.place.inhabitants();
        assert!(left.is_empty(), "left behind, by its cgroup: {left:?}");
        let left = self.place.below();
        assert!(left.is_empty(), "cgroups left behind: {left:?}");
        let events = events(self.dir.path());
        let chosen = events.iter().filter(|event| event["event"] == "ports_chosen");
        for (name, port) in chosen.flat_map(|event| event["ports"].as_object().into_iter().flatten()) {
            let port = port.as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port");
            let taken_before = ended.stderr.contains(&format!("port {port} "));
            eventually(&format!("port {port} of `{name}` is free"), || (taken_before || is_free(port)).then_some(()));
        }
        drop(self.witness);
        Ended { code: ended.code, stdout: ended.stdout_bytes, stderr: ended.stderr, events, dir: self.dir }
    }
}

/// Runs a job to its end.
#[track_caller]
pub fn job(description: &Value) -> Ended {
    Job::start(description).end()
}

impl Ended {
    /// All events of a kind.
    pub fn all(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().filter(|e| e["event"] == kind).collect()
    }

    /// The only event of a kind about a process.
    #[track_caller]
    pub fn the(&self, kind: &str, process: &str) -> &Value {
        let found: Vec<&Value> = self.all(kind).into_iter().filter(|e| e["process"] == process).collect();
        assert_eq!(found.len(), 1, "events `{kind}` of `{process}` in {:#?}", self.events);
        found[0]
    }

    /// All warnings but the one that the machine was too busy for the last sample, which says nothing of a job.
    pub fn warnings(&self) -> Vec<&Value> {
        let busy = "the last memory sample is missing: reading it took too long";
        self.all("warning").into_iter().filter(|event| event["message"] != busy).collect()
    }

    /// Whether a warning says so.
    pub fn warned(&self, words: &str) -> bool {
        self.warnings().iter().any(|event| event["message"].as_str().unwrap_or_default().contains(words))
    }

    /// The class of the outcome.
    pub fn class(&self) -> &str {
        self.events.last().and_then(|e| e["class"].as_str()).unwrap_or_default()
    }

    /// What stood in a file of the job's directory.
    pub fn file(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.dir.path().join(name)).unwrap_or_default()
    }

    pub fn lines(&self, name: &str) -> Vec<String> {
        String::from_utf8_lossy(&self.file(name)).lines().map(str::to_owned).collect()
    }
}

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a scratch directory")
}

fn events(dir: &Path) -> Vec<Value> {
    json_lines_so_far(&dir.join("events.jsonl"))
}

/// The process under test.
pub fn run(dir: &Path) -> ExitCode {
    crate::clock::set_wild(std::env::var_os(crate::clock::WILD).is_some());
    let text = std::fs::read_to_string(dir.join("job.json")).expect("the job");
    let plan = plan(&serde_json::from_str(&text).expect("JSON"), dir);
    let log = OpenOptions::new().create(true).append(true).open(dir.join("events.jsonl")).expect("a log of events");
    let log = Mutex::new(log);
    let summary = Arc::new(Mutex::new(Summary::new(&plan)));
    let folded = Arc::clone(&summary);
    let sink = Sink::new(move |event| {
        folded.lock().expect("nobody panics here").apply(&event);
        let line = serde_json::to_string(&event).expect("events are plain data");
        writeln!(log.lock().expect("nobody panics here"), "{line}").expect("the log can be written");
    });
    let outcome = supervise(
        &Arc::new(plan),
        RunOptions {
            job_dir: dir.to_owned(),
            traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into(),
            environment: std::env::vars_os().collect(),
            sink,
            show: ShowOutput {
                driver: DriverOutput::Apart,
                // It may be gone.
                lines: Arc::new(|lines| drop(std::io::stderr().write_all(lines))),
            },
            before_collector_stop: Box::new(|| ()),
        },
    );
    let result = serde_json::to_vec(&*summary.lock().expect("nobody panics here")).expect("plain data");
    // Its disk may be full.
    let _ = std::fs::write(dir.join("result.json"), result);
    let _ = writeln!(std::io::stderr(), "{}", outcome.message);
    ExitCode::from(u8::try_from(outcome.code).expect("an exit code"))
}
