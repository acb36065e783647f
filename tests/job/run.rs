//! Runs gymrun as a user does, with a deadline, and watches the processes of the machine meanwhile.
//!
//! Nothing of the machine's own settings reaches it: variables of OpenTelemetry, NeMo Gym and gymrun are removed, and the user's configuration folder
//! is an empty one.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::directory::JobDirectory;

/// The root of the repository, where jobs are started from.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The path of a component that is not part of every machine, from its variable. Without it the test is skipped by name, or fails if
/// `GYMRUN_TEST_REQUIRE` names the component.
pub fn component(name: &str, variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.exists());
    if path.is_none() {
        let required = std::env::var("GYMRUN_TEST_REQUIRE").unwrap_or_default();
        assert!(
            !required.split(',').any(|word| word.trim() == name),
            "{name} is required, and {variable} names no file"
        );
        println!("skipped: {name} is not here ({variable} is not set)");
    }
    path
}

/// A command line of gymrun, in the environment described above.
pub fn gymrun(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gymrun"));
    command.args(arguments).current_dir(repository()).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if ["OTEL_", "NEMO_GYM_", "NEMO_LENS_", "GYMRUN_", "SLURM_"].iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
    command.env("XDG_CONFIG_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-configuration"));
    command
}

/// Runs a command to its end and returns what it gave; panics when it takes longer than five minutes.
pub fn finish(mut command: Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("gymrun can be started");
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
    let done = Arc::new(AtomicBool::new(false));
    let guard = {
        let done = Arc::clone(&done);
        std::thread::spawn(move || {
            let deadline = Instant::now() + Duration::from_mins(5);
            while !done.load(Ordering::Relaxed) {
                if Instant::now() > deadline {
                    // The first asks for an ordered stop, the second for a kill.
                    let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
                    std::thread::sleep(Duration::from_secs(30));
                    let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
                    return true;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            false
        })
    };
    let output = child.wait_with_output().expect("gymrun can be waited for");
    done.store(true, Ordering::Relaxed);
    let late = guard.join().expect("the guard does not panic");
    assert!(!late, "gymrun took more than five minutes: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// A job to be run: its file, from the root of the repository, and how.
pub struct Job {
    file: String,
    directory: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
}

/// A job that was run.
pub struct Finished {
    /// Exit code, output and errors of gymrun.
    pub output: Output,
    /// `<output path>/j1/<job name>`.
    pub directory: JobDirectory,
    /// The command line of every process that was seen on the machine meanwhile.
    pub seen: BTreeSet<String>,
    /// Those of the job alone: processes that carry its id in their environment.
    pub seen_of_job: BTreeSet<String>,
}

impl Job {
    /// The job of `file`, to be run as `j1` with an output path of its own, named after the test.
    pub fn new(file: &str, test: &str) -> Self {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = std::fs::remove_dir_all(&directory);
        Self { file: file.to_owned(), directory, arguments: Vec::new(), environment: Vec::new() }
    }

    /// With a value for the top layer: `--set key=value`.
    pub fn set(mut self, key: &str, value: &str) -> Self {
        self.arguments.extend(["--set".to_owned(), format!("{key}={value}")]);
        self
    }

    /// With a variable in gymrun's own environment.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs it to its end.
    pub fn run(self) -> Finished {
        let output_path = self.directory.to_str().expect("a path in UTF-8").to_owned();
        let mut command = gymrun(&[&self.file, "--output-path", &output_path, "--job-id", "j1"]);
        command.args(&self.arguments).envs(self.environment.iter().cloned());
        // A word of our own that every process of the job inherits, so that the watch knows them from those of other tests.
        let mark = format!("JOB_TEST_MARK={output_path}");
        command.env("JOB_TEST_MARK", &output_path);

        let watch = Watch::start(mark.into_bytes());
        let output = finish(command);
        let (seen, seen_of_job) = watch.stop();
        let directory = JobDirectory::only_in(&self.directory.join("j1"));
        Finished { output, directory, seen, seen_of_job }
    }
}

impl Finished {
    /// The exit code, with what gymrun said if it is not the one expected.
    pub fn assert_code(&self, expected: i32) {
        assert_eq!(
            self.output.status.code(),
            Some(expected),
            "stdout:\n{}\nstderr:\n{}",
            String::from_utf8_lossy(&self.output.stdout),
            String::from_utf8_lossy(&self.output.stderr)
        );
    }
}

/// Looks at all processes again and again: command lines, and whose they are.
struct Watch {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
    seen: Arc<Mutex<HashMap<String, bool>>>,
}

impl Watch {
    fn start(mark: Vec<u8>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::new(Mutex::new(HashMap::new()));
        let thread = {
            let (stop, seen) = (Arc::clone(&stop), Arc::clone(&seen));
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    look(&mark, &mut seen.lock().expect("no thread panics with it"));
                    std::thread::sleep(Duration::from_millis(100));
                }
            })
        };
        Self { stop, thread, seen }
    }

    fn stop(self) -> (BTreeSet<String>, BTreeSet<String>) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the watch does not panic");
        let seen = self.seen.lock().expect("no thread panics with it");
        (
            seen.keys().cloned().collect(),
            seen.iter().filter(|(_, of_job)| **of_job).map(|(line, _)| line.clone()).collect(),
        )
    }
}

fn look(mark: &[u8], seen: &mut HashMap<String, bool>) {
    for entry in std::fs::read_dir("/proc").expect("Linux").flatten() {
        if !entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
        let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ").trim().to_owned();
        let of_job = read("environ").split(|byte| *byte == 0).any(|variable| variable == mark);
        *seen.entry(line).or_insert(false) |= of_job;
    }
}
