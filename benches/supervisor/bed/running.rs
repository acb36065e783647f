//! One running supervisor, measured from outside.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use tempfile::TempDir;

use super::kit::scratch;
use super::{Fifo, Guard, Kit, Supervisor};

/// How long anything may take on a loaded machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// A supervisor with its children.
pub struct Running {
    child: Child,
    folder: TempDir,
    /// From the exec to the word of the last child.
    pub started_in: Duration,
}

impl Running {
    /// Starts it with so many children and waits until all of them run.
    pub fn start(supervisor: Supervisor, kit: &Kit, count: usize) -> Self {
        let folder = scratch();
        let mut fifo = Fifo::make(folder.path().join("started"));
        let command = supervisor.command(kit, count, fifo.path(), folder.path());
        Self::launch(command, folder, &mut fifo, count)
    }

    /// The same with a command of its own, whose files are in `folder`.
    pub fn launch(command: Command, folder: TempDir, fifo: &mut Fifo, count: usize) -> Self {
        let log = File::create(folder.path().join("log.txt")).expect("creates");
        Self::launch_into(log, command, folder, fifo, count)
    }

    /// The same, and what it says goes nowhere.
    pub fn launch_unheard(command: Command, folder: TempDir, fifo: &mut Fifo, count: usize) -> Self {
        let nowhere = File::options().write(true).open("/dev/null").expect("opens");
        Self::launch_into(nowhere, command, folder, fifo, count)
    }

    fn launch_into(log: File, mut command: Command, folder: TempDir, fifo: &mut Fifo, count: usize) -> Self {
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a second handle")).stderr(log);
        command.current_dir(folder.path());
        let begin = Instant::now();
        let child = command.spawn().expect("starts");
        let heard = fifo.hear(count, PATIENCE);
        let running = Self { child, folder, started_in: begin.elapsed() };
        assert!(heard, "not all children have started: {}", running.log());
        running
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it said.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log.txt")).unwrap_or_default()
    }

    /// Tells it to stop.
    pub fn tell(&self) {
        kill(Pid::from_raw(self.pid().cast_signed()), Signal::SIGTERM).expect("signals");
    }

    /// Stops it by SIGTERM: how long it took until it and everything below it was gone. Nothing else may be running.
    pub fn stop(self) -> Duration {
        let begin = Instant::now();
        self.tell();
        Self::wait_for_all();
        begin.elapsed()
    }

    /// Waits for all processes below this one, those included that were left behind.
    pub fn wait_for_all() {
        let guard = Guard::set(PATIENCE);
        loop {
            match waitpid(None::<Pid>, None) {
                Err(Errno::ECHILD) => break,
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => panic!("cannot wait: {error}"),
            }
        }
        assert!(!guard.fired(), "something did not end, and was killed");
    }
}
