//! A job file, run by the binary as `j1` unless it says otherwise.

use std::collections::BTreeSet;
use std::fs;
use std::io::{PipeReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use tempfile::TempDir;

use super::directory::JobDirectory;
use super::gymrun::{gymrun, repository};
use super::place::Place;
use super::processes::Watch;
use super::program::{Ended, Program, Running};

/// How long an example may take, real components included.
const EXAMPLE: Duration = Duration::from_mins(5);

/// The file, and how it is run.
pub struct Job {
    file: PathBuf,
    /// Where it is run from.
    folder: PathBuf,
    output: PathBuf,
    id: &'static str,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    /// Goes with the job.
    _own: Option<TempDir>,
}

/// A job that was run while the processes of the machine were watched.
pub struct Watched {
    pub ended: Ended,
    pub directory: JobDirectory,
    /// The command line of every process that was seen on the machine meanwhile.
    pub seen: BTreeSet<String>,
    /// Those of the job alone.
    pub seen_of_job: BTreeSet<String>,
}

impl Job {
    /// A file with this text, in a folder of its own.
    pub fn new(file_name: &str, text: &str) -> Self {
        let own = tempfile::tempdir().expect("a folder");
        let folder = own.path().to_owned();
        let job = Self {
            file: folder.join(file_name),
            output: folder.join("out"),
            folder,
            id: "j1",
            arguments: Vec::new(),
            variables: Vec::new(),
            _own: Some(own),
        };
        job.rewrite(text);
        job
    }

    /// A file of the repository, run from its root. The output path has the name of the test, and stays.
    pub fn example(file: &str, test: &str) -> Self {
        let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = fs::remove_dir_all(&output);
        Self {
            file: file.into(),
            folder: repository().to_owned(),
            output,
            id: "j1",
            arguments: Vec::new(),
            variables: Vec::new(),
            _own: None,
        }
    }

    /// With another job id.
    #[must_use]
    pub fn with_id(self, id: &'static str) -> Self {
        Self { id, ..self }
    }

    /// With a value for the top layer: `--set key=value`.
    #[must_use]
    pub fn set(mut self, key: &str, value: &str) -> Self {
        self.arguments.extend(["--set".to_owned(), format!("{key}={value}")]);
        self
    }

    /// With a variable in gymrun's own environment.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    pub fn rewrite(&self, text: &str) {
        fs::write(&self.file, text).expect("a job file");
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The output path.
    pub fn output(&self) -> &Path {
        &self.output
    }

    /// What was left behind.
    #[track_caller]
    pub fn directory(&self) -> JobDirectory {
        JobDirectory::only_in(&self.output.join(self.id))
    }

    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Ended {
        self.start(arguments).end()
    }

    #[track_caller]
    pub fn start(&self, arguments: &[&str]) -> Running {
        Running::start(&mut self.command(&["run"], arguments))
    }

    /// Starts it with pipes that whoever asks for them reads.
    #[track_caller]
    pub fn start_piped(&self, arguments: &[&str]) -> Program {
        let mut command = self.command(&["run"], arguments);
        Program::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
    }

    /// Starts it in a cgroup of a test.
    #[track_caller]
    pub fn start_in(&self, place: &Place, arguments: &[&str]) -> Running {
        let mut command = self.command(&["run"], arguments);
        place.put(&mut command);
        Running::start(&mut command)
    }

    /// Starts it with the command changed.
    #[track_caller]
    pub fn start_with(&self, change: impl FnOnce(&mut Command)) -> Running {
        let mut command = self.command(&["run"], &[]);
        change(&mut command);
        Running::start(&mut command)
    }

    /// Starts it with that as its stdout and stderr.
    #[track_caller]
    pub fn start_into(&self, output: fs::File) -> Program {
        let mut command = self.command(&["run"], &[]);
        command.stdout(output.try_clone().expect("a second handle")).stderr(output);
        Program::start(&mut command)
    }

    /// Starts it with events on a stdout, and a stderr.
    #[track_caller]
    pub fn start_json(&self, stdout: impl Into<Stdio>, stderr: impl Into<Stdio>) -> Program {
        Program::start(self.command(&["run"], &["--json"]).stdout(stdout).stderr(stderr))
    }

    /// Starts it through other words, which get its command line as their last.
    #[track_caller]
    pub fn start_through(&self, words: &[String]) -> Running {
        let inner = self.command(&["run"], &[]);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(inner.get_program()).args(inner.get_args());
        command.current_dir(&self.folder).stdin(Stdio::null());
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Running::start(&mut command)
    }

    /// Starts it with a stdout and a stderr that take nothing as long as what comes with it is there: a full pipe.
    #[track_caller]
    pub fn start_unread(&self, arguments: &[&str]) -> (Program, PipeReader) {
        let (unread, full) = std::io::pipe().expect("a pipe");
        fcntl(&full, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("flags");
        while (&full).write(&[b'x'; 4096]).is_ok() {}
        fcntl(&full, FcntlArg::F_SETFL(OFlag::empty())).expect("flags");
        let mut command = self.command(&["run"], arguments);
        command.stdout(full.try_clone().expect("a second handle")).stderr(full);
        (Program::start(&mut command), unread)
    }

    /// Another subcommand.
    #[track_caller]
    pub fn ask(&self, subcommand: &str, arguments: &[&str]) -> Ended {
        Running::start(&mut self.command(&[subcommand], arguments)).end()
    }

    /// Runs it under a watch. (Without a subcommand: a file alone is run.)
    #[track_caller]
    pub fn watch(&self) -> Watched {
        // A word of our own that every process of the job inherits, so that it is known from those of other tests.
        let mark = self.output.to_str().expect("a path in UTF-8");
        let mut command = self.command(&[], &[]);
        command.env("JOB_TEST_MARK", mark);
        let watch = Watch::start(format!("JOB_TEST_MARK={mark}").into_bytes());
        let ended = Running::start(&mut command).end_within(EXAMPLE);
        let (seen, seen_of_job) = watch.stop();
        Watched { ended, directory: self.directory(), seen, seen_of_job }
    }

    fn command(&self, subcommand: &[&str], arguments: &[&str]) -> Command {
        let mut command = gymrun(subcommand);
        command.arg(&self.file).arg("--output-path").arg(&self.output).args(["--job-id", self.id]);
        command.args(&self.arguments).args(arguments).current_dir(&self.folder);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}
