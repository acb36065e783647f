//! Runs the real binary from outside, in a folder of its own.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::disallowed_methods, reason = "the tests start the binary from outside")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a test waits for what must happen.
pub const DEADLINE: Duration = Duration::from_mins(1);

/// A job file in a folder of its own, run with the job id `j1`.
pub struct Job {
    folder: tempfile::TempDir,
    file: PathBuf,
    variables: Vec<(String, String)>,
}

/// A run that is over.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stdout_bytes: Vec<u8>,
    pub stderr: String,
}

impl Job {
    pub fn new(file_name: &str, text: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join(file_name);
        fs::write(&file, text).expect("a job file");
        Self { folder, file, variables: Vec::new() }
    }

    #[must_use]
    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    pub fn rewrite(&self, text: &str) {
        fs::write(&self.file, text).expect("a job file");
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn output(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    pub fn dir(&self, name: &str) -> PathBuf {
        self.output().join("j1").join(name)
    }

    pub fn run(&self, arguments: &[&str]) -> Ended {
        self.command("run", arguments)
    }

    pub fn command(&self, subcommand: &str, arguments: &[&str]) -> Ended {
        self.start_command(subcommand, arguments).end()
    }

    pub fn start(&self, arguments: &[&str]) -> Running {
        self.start_command("run", arguments)
    }

    fn start_command(&self, subcommand: &str, arguments: &[&str]) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gymrun"));
        command
            .arg(subcommand)
            .arg(&self.file)
            .arg("--output-path")
            .arg(self.output())
            .args(["--job-id", "j1"])
            .args(arguments)
            .current_dir(self.folder.path())
            .env("XDG_CONFIG_HOME", self.folder.path().join("config"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // What the shell of a developer says of telemetry, proxies and sites is no part of a test.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy().to_ascii_uppercase();
            let meant = ["GYMRUN_SITE", "GYMRUN_LUA_PATH", "NEMO_", "OTEL_"].iter().any(|p| text.starts_with(p));
            if meant || text.ends_with("_PROXY") {
                command.env_remove(name);
            }
        }
        command.envs(self.variables.iter().map(|(n, v)| (n, v)));
        let mut child = command.spawn().expect("gymrun starts");
        let stdout = Captured::start(child.stdout.take().expect("piped"));
        let stderr = Captured::start(child.stderr.take().expect("piped"));
        Running { child, stdout, stderr }
    }
}

/// A run that goes on. It is killed if a test gives it up.
pub struct Running {
    child: Child,
    stdout: Captured,
    stderr: Captured,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: i32) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).expect("a pid"));
        let signal = nix::sys::signal::Signal::try_from(signal).expect("a signal");
        nix::sys::signal::kill(pid, signal).expect("it runs");
    }

    pub fn wait_for_stdout(&mut self, word: &str) {
        let stderr = self.stderr.bytes.clone();
        wait_for(&self.stdout, word, &stderr);
    }

    pub fn wait_for_stderr(&mut self, word: &str) {
        let stderr = self.stderr.bytes.clone();
        wait_for(&self.stderr, word, &stderr);
    }

    /// Waits for its end.
    pub fn end(mut self) -> Ended {
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                break status;
            }
            if started.elapsed() > DEADLINE {
                let _ = self.child.kill();
                panic!("gymrun does not end:\n{}", self.stderr.text());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let stdout_bytes = self.stdout.finish();
        let stderr = String::from_utf8_lossy(&self.stderr.finish()).into_owned();
        Ended { code: status.code(), stdout: String::from_utf8_lossy(&stdout_bytes).into_owned(), stdout_bytes, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Captured {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl Captured {
    fn start(mut from: impl std::io::Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&bytes);
        let thread = std::thread::spawn(move || {
            let mut buffer = vec![0; 65536];
            while let Ok(count @ 1..) = from.by_ref().read(&mut buffer) {
                to.lock().expect("not poisoned").extend_from_slice(&buffer[..count]);
            }
        });
        Self { bytes, thread: Some(thread) }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().expect("not poisoned")).into_owned()
    }

    fn finish(&mut self) -> Vec<u8> {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        std::mem::take(&mut self.bytes.lock().expect("not poisoned"))
    }
}

fn wait_for(captured: &Captured, word: &str, stderr: &Mutex<Vec<u8>>) {
    let started = Instant::now();
    while !captured.text().contains(word) {
        assert!(
            started.elapsed() < DEADLINE,
            "no `{word}`; stderr:\n{}",
            String::from_utf8_lossy(&stderr.lock().expect("not poisoned"))
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until `condition` holds, at most `limit`.
pub fn wait_until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < limit, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A process told apart from a later one of the same pid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    start: String,
}

impl Process {
    pub fn find(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        // A zombie is gone for all but its parent.
        if fields.first() == Some(&"Z") {
            return None;
        }
        Some(Self { pid, start: (*fields.get(19)?).to_owned() })
    }

    pub fn is_gone(&self) -> bool {
        Self::find(self.pid).as_ref() != Some(self)
    }
}

/// Every process below `pid`, itself left out.
pub fn descendants_of(pid: u32) -> Vec<Process> {
    let mut found = Vec::new();
    let mut parents = vec![pid];
    while let Some(parent) = parents.pop() {
        let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { continue };
        for thread in threads.flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            for child in children.split_whitespace().filter_map(|c| c.parse().ok()) {
                found.extend(Process::find(child));
                parents.push(child);
            }
        }
    }
    found
}

/// Whether this process, and so what it starts, ignores a signal.
pub fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("of this process");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a line of every kernel");
    u64::from_str_radix(mask.trim(), 16).expect("hex") >> (signal - 1) & 1 == 1
}

/// A JSON file.
pub fn read_json(path: &Path) -> serde_json::Value {
    let text = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
