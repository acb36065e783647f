//! A program that a test has started. It ends with the test; a gymrun takes its children along.

use std::io::Read;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;

use super::wait::{DEADLINE, eventually};

/// A started (or ended) program.
pub struct Program {
    child: Child,
}

impl Program {
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        Self { child: command.spawn().unwrap_or_else(|error| panic!("{command:?} does not start: {error}")) }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid().cast_signed());
        nix::sys::signal::kill(pid, signal).expect("it runs");
    }

    /// The same to one that may have ended already.
    pub fn signal_if_running(&self, signal: Signal) {
        // It is not waited for before the test does so: the pid is still its own.
        let _ = nix::sys::signal::kill(Pid::from_raw(self.pid().cast_signed()), signal);
    }

    /// How it ended, if it has.
    pub fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it can be waited for")
    }

    /// Its stdout, once, if that is a pipe.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Its stderr, once, if that is a pipe.
    pub fn stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Has the program begin with a signal that waits until it is heard.
#[expect(unsafe_code, reason = "a signal is held back, and sent, between fork and exec")]
pub fn tell_beforehand(command: &mut Command, signal: Signal) {
    let tell = move || {
        [signal].into_iter().collect::<SigSet>().thread_block()?;
        Ok(nix::sys::signal::kill(nix::unistd::getpid(), signal)?)
    };
    // SAFETY: system calls alone.
    unsafe { command.pre_exec(tell) };
}

/// Has the program begin with a limit on the size of the files that it writes, in bytes.
#[expect(unsafe_code, reason = "a limit is set between fork and exec")]
pub fn limit_files(command: &mut Command, bytes: u64) {
    let limit = move || Ok(nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_FSIZE, bytes, bytes)?);
    // SAFETY: a system call alone.
    unsafe { command.pre_exec(limit) };
}

/// A program whose output is read.
pub struct Running {
    program: Program,
    stdout: Output,
    stderr: Output,
}

/// How it ended, and what it said.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stdout_bytes: Vec<u8>,
    pub stderr: String,
}

impl Running {
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        Self::read(Program::start(command.stdout(Stdio::piped()).stderr(Stdio::piped())))
    }

    /// Reads the pipes of a program from now on.
    pub fn read(mut program: Program) -> Self {
        let stdout = Output::read(program.stdout());
        let stderr = Output::read(program.stderr());
        Self { program, stdout, stderr }
    }

    pub fn pid(&self) -> u32 {
        self.program.pid()
    }

    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        self.program.signal(signal);
    }

    /// The same to one that may have ended already.
    pub fn signal_if_running(&self, signal: Signal) {
        self.program.signal_if_running(signal);
    }

    #[track_caller]
    pub fn wait_for_stdout(&self, word: &str) {
        eventually(word, || self.stdout.text().contains(word).then_some(()));
    }

    #[track_caller]
    pub fn wait_for_stderr(&self, word: &str) {
        eventually(word, || self.stderr.text().contains(word).then_some(()));
    }

    /// Waits for its end.
    #[track_caller]
    pub fn end(self) -> Ended {
        self.end_within(DEADLINE)
    }

    /// Waits for its end, for what takes longer than other things.
    #[track_caller]
    pub fn end_within(mut self, limit: Duration) -> Ended {
        let end = Instant::now() + limit;
        let status = loop {
            if let Some(status) = self.program.status() {
                break status;
            }
            assert!(Instant::now() < end, "no end within {limit:?}:\n{}", self.stderr.text());
            std::thread::sleep(Duration::from_millis(5));
        };
        let stdout_bytes = self.stdout.finish();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ended { code: status.code(), stdout: text(&stdout_bytes), stdout_bytes, stderr: text(&self.stderr.finish()) }
    }
}

impl Ended {
    /// The exit code, with what was said if it is not the one expected.
    #[track_caller]
    pub fn assert_code(&self, expected: i32) {
        assert_eq!(self.code, Some(expected), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
    }
}

struct Output {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl Output {
    fn read(pipe: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&bytes);
        let read = |mut from: _| {
            std::thread::spawn(move || {
                let mut buffer = vec![0; 65536];
                while let Ok(count @ 1..) = Read::read(&mut from, &mut buffer) {
                    to.lock().expect("not poisoned").extend_from_slice(&buffer[..count]);
                }
            })
        };
        Self { thread: pipe.map(read), bytes }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().expect("not poisoned")).into_owned()
    }

    fn finish(&mut self) -> Vec<u8> {
        if let Some(thread) = self.thread.take() {
            thread.join().expect("a reader does not panic");
        }
        std::mem::take(&mut self.bytes.lock().expect("not poisoned"))
    }
}
