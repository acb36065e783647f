//! A child's description, and how it is started.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use crate::diag::exit;
use crate::files::{LogPlace, open_log};
use crate::plan::Stdin;
use crate::procfs::{Identity, Proc};

use super::cgroup::Cgroup;
use super::environment::Environment;
use super::spawn::{Image, Refused, Step, spawn};
use super::{program, terminal};

/// Where a child's output goes.
#[derive(Debug)]
pub enum Output {
    /// Nowhere.
    Null,
    /// Both into this file, which the child then owns: only its owner may read it, and everybody who writes appends. It is
    /// opened for this one child, so that no other is forked with it.
    File(PathBuf),
    /// Both into one pipe, so that their order is kept.
    Pipe,
    /// Each into a pipe of its own, so that they stay apart.
    Pipes,
}

/// A child, complete: nothing is looked up but its program.
#[derive(Debug)]
pub struct Launch {
    /// argv; not empty.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub environment: Arc<Environment>,
    /// The working directory.
    pub cwd: PathBuf,
    /// A PATH: where a bare `argv[0]` is looked up, whatever the child's own PATH says.
    pub search: Option<OsString>,
    /// Standard input.
    pub stdin: Stdin,
    /// Standard output and error.
    pub output: Output,
    /// The cgroup that it is started in, with all that comes of it.
    pub cgroup: Option<Arc<Cgroup>>,
}

/// A child that runs.
#[derive(Debug)]
pub struct Started {
    /// Its pid, which is also its process group, and its start time.
    pub identity: Identity,
    /// The reading ends of its pipes: one for [`Output::Pipe`], stdout and stderr for [`Output::Pipes`].
    pub pipes: Vec<OwnedFd>,
    /// Where it begins to write, for [`Output::File`].
    pub log_begin: Option<LogPlace>,
    /// Why it is not in its cgroup, if it should be.
    pub outside: Option<io::Error>,
    /// It has gymrun's terminal until it ends.
    pub(super) lent: bool,
}

/// Why a child could not be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchErrorKind {
    /// The program does not exist.
    NotFound,
    /// It exists, but cannot be executed.
    NotExecutable,
    /// The working directory does not exist.
    Directory,
    /// The system refused for another reason.
    System,
}

/// A child that could not be started, with the path that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LaunchError {
    /// Which of the reasons it is.
    pub kind: LaunchErrorKind,
    /// A lower-case fragment with the exact path.
    pub message: String,
}

impl LaunchError {
    /// An error of a kind, in words.
    pub fn new(kind: LaunchErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// The exit code that a shell has for it: 127 not found, 126 not executable, else 125.
    #[must_use]
    pub fn code(&self) -> i32 {
        match self.kind {
            LaunchErrorKind::NotFound => exit::NOT_FOUND,
            LaunchErrorKind::NotExecutable => exit::NOT_EXECUTABLE,
            LaunchErrorKind::Directory | LaunchErrorKind::System => exit::FAILED,
        }
    }
}

impl Launch {
    /// Starts the child. To be called on the one spawning thread, with the registry's gate held.
    pub(super) fn start(self) -> Result<Started, LaunchError> {
        let system = |what: &str, error: &io::Error| {
            LaunchError::new(
                LaunchErrorKind::System,
                format!("cannot make {what} for `{}`: {}", show(&self.argv), program::in_words(error)),
            )
        };
        let word = self.argv.first().cloned().unwrap_or_default();
        let path = program::find(&word, &self.cwd, self.search.as_deref())?;
        let mut pipes = Vec::new();
        let mut pipe = || -> Result<OwnedFd, LaunchError> {
            let (reader, writer) = io::pipe().map_err(|e| system("a pipe", &e))?;
            pipes.push(OwnedFd::from(reader));
            Ok(writer.into())
        };
        let null = || -> Result<OwnedFd, LaunchError> {
            let file = File::options().read(true).write(true).open("/dev/null");
            file.map(OwnedFd::from).map_err(|e| system("standard streams", &e))
        };
        let mut log_begin = None;
        // Both are one where there is no second.
        let (stdout, stderr) = match &self.output {
            Output::Null => (null()?, None),
            Output::File(path) => {
                let file = open_log(path).map_err(|e| {
                    let message = format!("cannot open the log `{}`: {}", path.display(), program::in_words(&e));
                    LaunchError::new(LaunchErrorKind::System, message)
                })?;
                log_begin = LogPlace::end_of(&file);
                (file.into(), None)
            }
            Output::Pipe => (pipe()?, None),
            Output::Pipes => (pipe()?, Some(pipe()?)),
        };
        let stdin = match self.stdin {
            Stdin::Null => Some(null()?),
            Stdin::Inherit => None,
        };
        let has_terminal = stdin.is_none() && terminal::is_ours();
        let image = Image {
            path: &path,
            argv: &self.argv,
            environment: &self.environment,
            cwd: &self.cwd,
            streams: [
                stdin.as_ref().map(OwnedFd::as_fd),
                Some(stdout.as_fd()),
                Some(stderr.as_ref().unwrap_or(&stdout).as_fd()),
            ],
            has_terminal,
        };
        let mut outside = None;
        let inside = self.cgroup.as_ref().map(|cgroup| {
            let directory = cgroup.open().map_err(|error| Refused { step: Step::Fork, error })?;
            spawn(&image, Some(directory.as_fd()))
        });
        let pid = match inside {
            Some(Ok(pid)) => Ok(pid),
            // What is wrong may be the cgroup or the program: without the one the other is seen.
            Some(Err(refused)) => spawn(&image, None).inspect(|_| outside = Some(refused.error)),
            None => spawn(&image, None),
        };
        let pid = pid.map_err(|refused| program::refusal(&path, &self.cwd, &refused))?;
        if has_terminal {
            terminal::lend(pid);
        }
        // Not reaped yet, since the gate is held: even if it has ended, its entry is still there.
        let identity = Proc::default().identity(pid).unwrap_or(Identity { pid, started: 0 });
        Ok(Started { identity, pipes, log_begin, outside, lent: has_terminal })
    }
}

#[cfg(test)]
impl Launch {
    /// A command of a shell, with nothing around it.
    pub fn shell(script: &str) -> Self {
        Self {
            argv: ["/bin/sh", "-c", script].map(Into::into).to_vec(),
            environment: Arc::default(),
            cwd: "/".into(),
            search: None,
            stdin: Stdin::Null,
            output: Output::Null,
            cgroup: None,
        }
    }
}

fn show(argv: &[OsString]) -> impl fmt::Display {
    argv.first().map(|w| w.display().to_string()).unwrap_or_default()
}
