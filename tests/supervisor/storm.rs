//! Jobs at random under faults at random, run by the real binary: each ends with the right code, its files are whole, and
//! nothing of it is left.
//!
//! `GYMRUN_STORM_SECONDS` says for how long (4); `GYMRUN_STORM_SEED` repeats the one job whose seed a failure has printed.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::cases::Case;
use crate::harness::{DEADLINE, Program, Running, eventually, gymrun, small_disk};
use crate::jobs::{child, with};

#[path = "storm_end.rs"]
mod end;

pub const CASES: &[Case] = &[("a_storm_of_faults_leaves_nothing", a_storm_of_faults_leaves_nothing)];

const SIDE_BY_SIDE: usize = 3;
/// A collector that cannot send, graces and probes that are over: all of it is cut short in these jobs.
const LIMIT: Duration = DEADLINE.saturating_mul(2);

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Nothing,
    /// The target ends of itself,
    Exit,
    /// is killed from outside,
    Kill,
    /// or stops, as if its interpreter's lock were held.
    Hang,
    /// It is never ready,
    NeverReady,
    /// ends before it is,
    DiesAtStart,
    /// does not exist,
    Missing,
    /// or finds its port taken.
    PortTaken,
    /// gymrun is told to stop,
    Stop,
    /// twice,
    StopTwice,
    /// is killed,
    KillGymrun,
    /// or its time is over.
    TimeLimit,
    /// Nobody reads its output any more.
    ReaderGone,
    /// The job directory's disk is full.
    FullDisk,
    /// The endpoint refuses what the collector sends.
    EndpointRefuses,
}

const FAULTS: &[Fault] = &[
    Fault::Nothing,
    Fault::Exit,
    Fault::Kill,
    Fault::Hang,
    Fault::NeverReady,
    Fault::DiesAtStart,
    Fault::Missing,
    Fault::PortTaken,
    Fault::Stop,
    Fault::StopTwice,
    Fault::KillGymrun,
    Fault::TimeLimit,
    Fault::ReaderGone,
    Fault::FullDisk,
    Fault::EndpointRefuses,
];

/// How the driver ends: its last step, and what gymrun makes of it.
const DRIVER_ENDS: &[(&str, i32)] =
    &[("exit:0", 0), ("exit:1", 1), ("exit:42", 42), ("exit:255", 255), ("raise:KILL", 137), ("raise:SEGV", 139)];

/// What a server does beside serving.
const TREES: &[&str] = &[
    "",
    "fork { forever }",
    "fork { ignore:TERM ignore:INT forever }",
    "fork { fork { forever } forever }",
    "daemon { forever }",
    "daemon { ignore:TERM ignore:INT forever }",
    "orphans:20",
    "threads:5",
];
const OUTPUTS: &[&str] = &["", "print:hello", "bytes:88ff0a", "flood:2", "repeat:y:300000", "close"];

/// One job and what happens to it.
struct Story {
    seed: u64,
    fault: Fault,
    /// `on_exit` of the target.
    on_exit: &'static str,
    driver_end: (&'static str, i32),
    signal: (Signal, i32),
    random: fastrand::Rng,
    scratch: tempfile::TempDir,
    /// Holds the port that is taken.
    taken: Option<std::net::TcpListener>,
    job: Value,
}

impl Story {
    fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let fault = FAULTS[random.usize(..FAULTS.len())];
        let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut story = Self {
            seed,
            fault,
            on_exit: ["stop", "ignore", "restart"][random.usize(..3)],
            driver_end: DRIVER_ENDS[random.usize(..DRIVER_ENDS.len())],
            signal: [(Signal::SIGTERM, 143), (Signal::SIGINT, 130)][random.usize(..2)],
            random,
            scratch: tempfile::tempdir().expect("a scratch directory"),
            job: Value::Null,
            taken: None,
        };
        let port = taken.local_addr().expect("an address").port();
        story.job = story.describe(port);
        story.taken = (fault == Fault::PortTaken).then_some(taken);
        story
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        // Whoever is killed can stop nobody but its direct children.
        if self.fault == Fault::KillGymrun { "" } else { from[self.random.usize(..from.len())] }
    }

    fn id(&self) -> String {
        format!("storm-{}-{}", std::process::id(), self.seed)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn describe(&mut self, taken: u16) -> Value {
        let count = self.random.usize(1..=4);
        let target = self.random.usize(..count);
        let mut servers = serde_json::Map::new();
        for number in 0..count {
            let server = self.server(number == target, taken);
            let needs: Vec<String> =
                (0..number).filter(|_| self.random.bool()).map(|other| format!("s{other}")).collect();
            servers.insert(format!("s{number}"), with(server, "depends_on", json!(needs)));
        }
        let (tree, output) = (self.pick(TREES), self.pick(OUTPUTS));
        // A driver on a full disk fills it; it must not notice.
        let output = if self.fault == Fault::FullDisk { "flood:4" } else { output };
        let last = match self.fault {
            Fault::TimeLimit => "forever".to_owned(),
            _ => format!("wait:@DIR/end {}", self.driver_end.0),
        };
        let steps = format!("{tree} {output} append:@DIR/ran:x {last}");
        let driver = json!({"command": self.command(&steps), "grace_seconds": 0.5});
        let mut job = json!({"name": "storm", "servers": servers, "driver": driver, "otel": self.otel()});
        if self.fault == Fault::TimeLimit {
            job["time_limit_seconds"] = 1.into();
        }
        job
    }

    fn otel(&mut self) -> Value {
        let dead = self.fault == Fault::EndpointRefuses;
        if dead || self.random.u8(..4) == 0 {
            let endpoint = if dead { json!("http://127.0.0.1:9") } else { json!(false) };
            json!({"endpoint": endpoint, "shutdown_wait_seconds": 1, "scrape_interval_seconds": 1})
        } else {
            json!({"enabled": false})
        }
    }

    fn server(&mut self, is_target: bool, taken: u16) -> Value {
        let fault = if is_target { self.fault } else { Fault::Nothing };
        let (tree, output) = (self.pick(TREES), self.pick(OUTPUTS));
        let obeys = self.pick(&["", "ignore:INT", "trap:INT:@DIR/stops:s:0.05:0", "trap:INT:@DIR/stops:s:0.05:143"]);
        // A child that writes to a full disk itself is another story.
        let output = if self.fault == Fault::FullDisk { "" } else { output };
        let (serve, last) = match fault {
            Fault::Exit => ("serve:${port:self}", "wait:@DIR/fault remove:@DIR/fault exit:7"),
            Fault::Hang => ("serve:${port:self}", "wait:@DIR/fault remove:@DIR/fault raise:STOP forever"),
            Fault::NeverReady => ("serve:${port:self}:503", "forever"),
            Fault::DiesAtStart => ("", "exit:3"),
            _ => ("serve:${port:self}", "forever"),
        };
        let begin = if is_target { "pid:@DIR/target" } else { "" };
        let mut server = json!({
            "type": "resources_servers",
            "command": self.command(&format!("{tree} {output} {obeys} {serve} {begin} {last}")),
            "port": "auto",
            "health_check": {"path": "/", "timeout_seconds": if fault == Fault::NeverReady { 0.5 } else { 120.0 }},
            "grace_seconds": 0.3,
            "log": if self.random.bool() { "pipe" } else { "file" },
        });
        match fault {
            Fault::Exit | Fault::Kill | Fault::Hang => {
                server["on_exit"] = self.on_exit.into();
                if self.on_exit == "restart" {
                    server["restart"] = json!({"backoff_seconds": 0.05});
                }
                if fault == Fault::Hang {
                    server["liveness"] = json!({"path": "/", "interval_seconds": 0.1, "request_timeout_seconds": 0.5});
                }
            }
            Fault::Missing => server["command"] = json!(["/no/such/program"]),
            Fault::PortTaken => server["port"] = taken.into(),
            _ => {}
        }
        server
    }

    fn command(&self, steps: &str) -> Value {
        child(&steps.replace("@DIR", &self.scratch.path().display().to_string()))
    }

    /// What gymrun's exit code must be; `None` if it is killed.
    fn code(&self) -> Option<i32> {
        match self.fault {
            Fault::KillGymrun => None,
            Fault::Exit | Fault::Kill | Fault::Hang if self.on_exit == "stop" => Some(125),
            Fault::NeverReady | Fault::DiesAtStart | Fault::Missing | Fault::PortTaken => Some(125),
            Fault::Stop | Fault::StopTwice => Some(self.signal.1),
            Fault::TimeLimit => Some(124),
            _ => Some(self.driver_end.1),
        }
    }

    fn touch(&self, name: &str) {
        std::fs::write(self.path(name), "").expect("a scratch file");
    }

    /// The pids of the target, one for each time that it was started and served.
    fn targets(&self) -> Vec<i32> {
        let text = std::fs::read_to_string(self.path("target")).unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| line.parse().expect("a pid")).collect()
    }

    /// Waits a moment that is another one in each story.
    fn moment(&mut self, at_most_milliseconds: u64) {
        std::thread::sleep(Duration::from_millis(self.random.u64(..at_most_milliseconds)));
    }

    fn run(mut self) -> Fault {
        let id = self.id();
        let file = self.path("job.yaml");
        std::fs::write(&file, self.job.to_string()).expect("a scratch file");
        let output = self.path("out");
        std::fs::create_dir(&output).expect("a scratch directory");
        let mut command = self.gymrun(&file, &output, &id);
        let mut program = Program::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        if self.fault == Fault::ReaderGone {
            drop(program.stdout());
        }
        let running = Running::read(program);
        self.happen(&running);
        let ended = running.end_within(LIMIT);
        self.assert_end(&id, &output, &ended);
        self.fault
    }

    fn gymrun(&self, file: &Path, output: &Path, id: &str) -> Command {
        let mut command = gymrun(&["run"]);
        if self.fault == Fault::FullDisk {
            // Where nothing can be mounted the disk is not full; what must hold is the same.
            let (at, kept) = (output.display().to_string(), self.path("kept").display().to_string());
            if let Some(words) = small_disk(&at, &kept, 1024) {
                command = through(&words, &command);
            }
        }
        command.arg(file).args(["--site", "local", "--job-id", id]).arg("--output-path").arg(output);
        command.env("OTEL_TOKEN", "t0ken");
        command
    }

    /// Lets happen what this story is about.
    fn happen(&mut self, running: &Running) {
        match self.fault {
            Fault::Stop | Fault::StopTwice => {
                self.wait_for_start();
                self.moment(800);
                running.signal(self.signal.0);
                if self.fault == Fault::StopTwice {
                    // As the echo of the first, or as an order of its own.
                    self.moment(2500);
                    running.signal_if_running(Signal::SIGTERM);
                }
                return;
            }
            Fault::KillGymrun => {
                self.wait_for_start();
                self.moment(800);
                return running.signal(Signal::SIGKILL);
            }
            Fault::NeverReady | Fault::DiesAtStart | Fault::Missing | Fault::PortTaken | Fault::TimeLimit => return,
            _ => eventually("the driver runs", || self.path("ran").exists().then_some(())),
        }
        match self.fault {
            Fault::Exit | Fault::Hang => self.touch("fault"),
            Fault::Kill => {
                // It serves a moment before it says who it is.
                let pid = eventually("the target's pid", || self.targets().first().copied());
                kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it runs");
            }
            _ => {
                self.moment(50);
                return self.touch("end");
            }
        }
        match self.on_exit {
            "restart" => eventually("the target is started again", || (self.targets().len() >= 2).then_some(())),
            "ignore" => self.moment(300),
            _ => return,
        }
        self.touch("end");
    }

    /// Until signals are held for it: it opens its log of events later.
    fn wait_for_start(&self) {
        let log = self.path("out").join(self.id()).join("storm/events.jsonl");
        eventually("a log of events", || log.exists().then_some(()));
    }
}

/// The same command line behind other words.
fn through(words: &[String], command: &Command) -> Command {
    #[expect(clippy::disallowed_methods, reason = "the gymrun under test is no child of a gymrun")]
    let mut other = Command::new(&words[0]);
    other.args(&words[1..]).arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => other.env(name, value),
            None => other.env_remove(name),
        };
    }
    other
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number")))
}

fn a_storm_of_faults_leaves_nothing() {
    if let Some(seed) = number("GYMRUN_STORM_SEED") {
        Story::new(seed).run();
        return;
    }
    let end = Instant::now() + Duration::from_secs(number("GYMRUN_STORM_SECONDS").unwrap_or(4));
    let over: Mutex<BTreeMap<Fault, usize>> = Mutex::default();
    let failed: Mutex<Vec<u64>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                while Instant::now() < end {
                    let seed = fastrand::u64(..1 << 48);
                    if let Ok(fault) = catch_unwind(AssertUnwindSafe(|| Story::new(seed).run())) {
                        *over.lock().expect("not poisoned").entry(fault).or_default() += 1;
                    } else {
                        println!("GYMRUN_STORM_SEED={seed} failed");
                        failed.lock().expect("not poisoned").push(seed);
                    }
                }
            });
        }
    });
    println!("storm: {:?}", over.into_inner().expect("not poisoned"));
    let failed = failed.into_inner().expect("not poisoned");
    assert!(failed.is_empty(), "seeds that failed: {failed:?}");
}
