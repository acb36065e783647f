//! One running collector, measured from outside.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::time::ClockId;
use nix::unistd::Pid;
use tempfile::TempDir;

use super::config::{Pipelines, Ports};
use super::programs::Program;

/// How long a condition may take to come true on a loaded machine.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// A collector that is ready; it ends when this is dropped.
pub struct Running {
    child: Child,
    folder: TempDir,
    pub ports: Ports,
    /// From the exec to the first 200 of the health check (or the first connection, where there is none).
    pub started_in: Duration,
}

/// Memory of a process in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// What is resident now.
    pub resident: u64,
    /// Of that what is no file's: heap and stacks. Pages of the program count as resident even where others share them.
    pub anonymous: u64,
    /// The most that was resident.
    pub peak: u64,
}

impl Running {
    /// Starts it in a folder of its own, in memory where that is possible, and waits until it is ready.
    pub fn start(program: Program, pipelines: Pipelines, sink: u16, core: Option<usize>) -> Self {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let folder = folder.expect("a folder");
        let ports = Ports::find();
        let config = folder.path().join("collector.yaml");
        fs::write(&config, pipelines.document(ports, folder.path(), sink)).expect("writes");
        let log = File::create(folder.path().join("log.txt")).expect("creates");
        let begin = Instant::now();
        let child = program
            .command(&config, ports, core)
            .envs([("OTEL_TOKEN", "s3cr3t"), ("SLURM_JOB_ID", "0042")])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .spawn()
            .expect("starts");
        let mut running = Self { child, folder, ports, started_in: Duration::ZERO };
        let ready = if program.has_health_check() { healthy } else { listening };
        let port = if program.has_health_check() { ports.health } else { ports.http };
        while !ready(port) {
            let ended = running.child.try_wait().expect("waits");
            let waits = ended.is_none() && begin.elapsed() < PATIENCE;
            assert!(waits, "{} is not ready ({ended:?}): {}", program.name(), running.log());
            std::thread::sleep(Duration::from_millis(1));
        }
        running.started_in = begin.elapsed();
        running
    }

    /// A file of its folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What it said.
    pub fn log(&self) -> String {
        fs::read_to_string(self.path("log.txt")).unwrap_or_default()
    }

    /// User and system time of all its threads, ended ones included.
    pub fn cpu(&self) -> Duration {
        let clock = ClockId::pid_cpu_clock_id(self.pid()).expect("a CPU clock");
        clock.now().expect("a time").into()
    }

    /// The same from this on.
    pub fn cpu_since(&self, before: Duration) -> Duration {
        self.cpu().saturating_sub(before)
    }

    /// Its memory now.
    pub fn memory(&self) -> Memory {
        let status = self.proc_file("status");
        let rollup = self.proc_file("smaps_rollup");
        // The kernel counts in KiB here.
        let [resident, peak] = ["VmRSS:", "VmHWM:"].map(|name| 1024 * sum(&status, name));
        Memory { resident, anonymous: 1024 * sum(&rollup, "Anonymous:"), peak }
    }

    /// Context switches of its threads so far.
    pub fn switches(&self) -> u64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("its threads");
        let status = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
        let both = ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"];
        status.map(|text| both.map(|name| sum(&text, name)).iter().sum::<u64>()).sum()
    }

    /// Stops it by SIGTERM: how long that took.
    pub fn stop(&mut self) -> Duration {
        let begin = Instant::now();
        kill(self.pid(), Signal::SIGTERM).expect("signals");
        while self.child.try_wait().expect("waits").is_none() {
            assert!(begin.elapsed() < PATIENCE, "does not end: {}", self.log());
            std::thread::sleep(Duration::from_millis(1));
        }
        begin.elapsed()
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a pid"))
    }

    fn proc_file(&self, name: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{name}", self.child.id())).expect("a file of /proc")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The sum of the numbers behind a name at the start of a line.
fn sum(text: &str, name: &str) -> u64 {
    let number = |line: &str| line.strip_prefix(name)?.split_whitespace().next()?.parse::<u64>().ok();
    text.lines().filter_map(number).sum()
}

fn listening(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

fn healthy(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let asked = stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let mut answer = [0; 12];
    asked.and_then(|()| stream.read_exact(&mut answer)).is_ok() && answer.ends_with(b" 200")
}
