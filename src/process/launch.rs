//! A child's description, and how it is started.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::diag::exit;
use crate::plan::Stdin;
use crate::procfs::{Identity, Proc};

use super::{program, terminal};

/// Where a child's output goes.
#[derive(Debug)]
pub enum Output {
    /// Nowhere.
    Null,
    /// Both into this file, which the child then owns.
    File(File),
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
    pub environment: BTreeMap<OsString, OsString>,
    /// The working directory.
    pub cwd: PathBuf,
    /// A PATH: where a bare `argv[0]` is looked up, whatever the child's own PATH says.
    pub search: Option<OsString>,
    /// Standard input.
    pub stdin: Stdin,
    /// Standard output and error.
    pub output: Output,
}

/// A child that runs.
#[derive(Debug)]
pub struct Started {
    /// Its pid, which is also its process group, and its start time.
    pub identity: Identity,
    /// The reading ends of its pipes: one for [`Output::Pipe`], stdout and stderr for [`Output::Pipes`].
    pub pipes: Vec<OwnedFd>,
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
            LaunchError::new(LaunchErrorKind::System, format!("cannot make {what} for `{}`: {error}", show(&self.argv)))
        };
        let word = self.argv.first().cloned().unwrap_or_default();
        let path = program::find(&word, &self.cwd, self.search.as_deref())?;
        let mut pipes = Vec::new();
        let mut pipe = || -> Result<Stdio, LaunchError> {
            let (reader, writer) = io::pipe().map_err(|e| system("a pipe", &e))?;
            pipes.push(OwnedFd::from(reader));
            Ok(writer.into())
        };
        let (stdout, stderr) = match &self.output {
            Output::Null => (Stdio::null(), Stdio::null()),
            Output::File(file) => {
                let twin = file.try_clone().map_err(|e| system("a log", &e))?;
                let own = file.try_clone().map_err(|e| system("a log", &e))?;
                (own.into(), twin.into())
            }
            Output::Pipe => {
                let (reader, writer) = io::pipe().map_err(|e| system("a pipe", &e))?;
                let twin = writer.try_clone().map_err(|e| system("a pipe", &e))?;
                pipes.push(OwnedFd::from(reader));
                (writer.into(), twin.into())
            }
            Output::Pipes => (pipe()?, pipe()?),
        };
        #[expect(clippy::disallowed_methods, reason = "this is the one place where children are spawned")]
        let mut command = Command::new(&path);
        command
            .arg0(&word)
            .args(self.argv.iter().skip(1))
            .env_clear()
            .envs(&self.environment)
            .current_dir(&self.cwd)
            .stdin(match self.stdin {
                Stdin::Null => Stdio::null(),
                Stdin::Inherit => Stdio::inherit(),
            })
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0);
        let lent = self.stdin == Stdin::Inherit && terminal::is_ours();
        prepare(&mut command, lent);
        let child = command.spawn().map_err(|error| program::refusal(&path, &error))?;
        let pid = child.id().cast_signed();
        if lent {
            terminal::lend(pid);
        }
        // Not reaped yet, since the gate is held: even if it has ended, its entry is still there.
        let identity = Proc::default().identity(pid).unwrap_or(Identity { pid, started: 0 });
        Ok(Started { identity, pipes, lent })
    }
}

/// What happens in the child between fork and exec.
#[expect(unsafe_code, reason = "the child must be put in order between fork and exec")]
fn prepare(command: &mut Command, has_terminal: bool) {
    let parent = nix::unistd::getpid().as_raw();
    let setup = move || {
        // SAFETY: only async-signal-safe calls on plain values: nothing allocates, locks or touches memory of others.
        unsafe {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(io::Error::last_os_error());
            }
            // If gymrun died before the call above, nobody will send that signal any more.
            if libc::getppid() != parent {
                libc::_exit(exit::FAILED);
            }
            for signal in 1..=64 {
                // Fails for those that cannot be changed, which is what is wanted.
                libc::signal(signal, libc::SIG_DFL);
            }
            if has_terminal {
                libc::signal(libc::SIGTSTP, libc::SIG_IGN);
            }
            let mut none = std::mem::zeroed::<libc::sigset_t>();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
            // Whatever gymrun itself inherited goes no further; a kernel before 5.11 refuses, and our own are marked.
            libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
        }
        Ok(())
    };
    // SAFETY: the closure keeps to what is allowed after a fork in a process with threads, as said above.
    unsafe {
        command.pre_exec(setup);
    }
}

fn show(argv: &[OsString]) -> impl fmt::Display {
    argv.first().map(|w| w.display().to_string()).unwrap_or_default()
}
