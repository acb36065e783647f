//! Jobs for tests: written in the keys of a job file, run by `supervisor::run` in a process of their own.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gymrun::events::Sink;
use gymrun::plan::{
    CollectorPlan, Kind, LogMode, MemoryPlan, MemoryScope, OnExit, Plan, PortChoice, PortPolicy, Probe, ProbeKind,
    Readiness, Reference, Stdin, StopPolicy, StopSignal, TelemetryPlan, Text, Tree, Unit, Value as PlanValue, Variable,
    VariableValue,
};
use gymrun::supervisor::{DriverOutput, RunOptions, ShowOutput, run as supervise};
use serde_json::Value;

use super::outside::{alive, eventually};

/// A job that was started.
pub struct Job {
    pub id: String,
    pub dir: tempfile::TempDir,
    process: Child,
}

/// A job that is over.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
    pub events: Vec<Value>,
    pub dir: tempfile::TempDir,
}

/// `child STEP...` as a command: steps are separated by blanks.
pub fn child(steps: &str) -> Value {
    let own = std::env::current_exe().expect("a test has a file");
    let mut words = vec![own.display().to_string(), "child".to_owned()];
    words.extend(steps.split_ascii_whitespace().map(str::to_owned));
    words.into()
}

impl Job {
    /// Starts a job whose text may say `@DIR` for its directory.
    pub fn start(description: &Value) -> Self {
        Self::start_with(description, |_| {})
    }

    pub fn start_with(description: &Value, change: impl FnOnce(&mut Command)) -> Self {
        Self::start_as(description, &[], change)
    }

    /// Through another program, which gets the executable and the job's directory as its last arguments.
    pub fn start_by(description: &Value, program: &[&str]) -> Self {
        Self::start_as(description, program, |_| {})
    }

    fn start_as(description: &Value, program: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let id = format!("t{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::SeqCst));
        let dir = tempfile::tempdir().expect("a scratch directory");
        let mut description = description.clone();
        description["job_id"] = id.clone().into();
        let text = description.to_string().replace("@DIR", &dir.path().display().to_string());
        std::fs::write(dir.path().join("job.json"), text).expect("a scratch file");
        let own = std::env::current_exe().expect("a test has a file");
        let first = program.first().map_or(own.as_os_str(), |word| std::ffi::OsStr::new(word));
        #[expect(clippy::disallowed_methods, reason = "the gymrun under test is no child of a gymrun")]
        let mut command = Command::new(first);
        if let Some(rest) = program.get(1..) {
            command.args(rest).arg(&own);
        } else {
            command.arg("run");
        }
        command.arg(dir.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        change(&mut command);
        Self { id, process: command.spawn().expect("it starts"), dir }
    }

    pub fn pid(&self) -> i32 {
        self.process.id().cast_signed()
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

    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.pid()), signal).expect("it runs");
    }

    /// The same after the reader of its stdout has gone away.
    #[track_caller]
    pub fn end_without_reading(mut self) -> Ended {
        drop(self.process.stdout.take());
        self.end()
    }

    /// Waits for the end, which must come within a minute, and sees that nothing of the job is left.
    #[track_caller]
    pub fn end(mut self) -> Ended {
        let read = |stream: Option<Box<dyn std::io::Read + Send>>| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                if let Some(mut stream) = stream {
                    let _ = stream.read_to_end(&mut bytes);
                }
                bytes
            })
        };
        let stdout = read(self.process.stdout.take().map(|s| Box::new(s) as _));
        let stderr = read(self.process.stderr.take().map(|s| Box::new(s) as _));
        let end = std::time::Instant::now() + Duration::from_mins(1);
        let status = loop {
            if let Some(status) = self.process.try_wait().expect("it can be waited for") {
                break status;
            }
            if std::time::Instant::now() > end {
                let _ = self.process.kill();
                panic!("the job did not end; events: {:#?}", events(self.dir.path()));
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let left = alive(&self.id);
        for (pid, _) in &left {
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(*pid), nix::sys::signal::Signal::SIGKILL);
        }
        assert!(left.is_empty(), "left behind: {left:?}");
        let events = events(self.dir.path());
        Ended {
            code: status.code(),
            stdout: stdout.join().expect("a reader"),
            stderr: String::from_utf8_lossy(&stderr.join().expect("a reader")).into_owned(),
            events,
            dir: self.dir,
        }
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

fn events(dir: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(dir.join("events.jsonl")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The process under test.
pub fn run(dir: &Path) -> ExitCode {
    let text = std::fs::read_to_string(dir.join("job.json")).expect("the job");
    let plan = plan(&serde_json::from_str(&text).expect("JSON"), dir);
    let log = OpenOptions::new().create(true).append(true).open(dir.join("events.jsonl")).expect("a log of events");
    let log = Mutex::new(log);
    let sink = Sink::new(move |event| {
        let line = serde_json::to_string(&event).expect("events are plain data");
        writeln!(log.lock().expect("nobody panics here"), "{line}").expect("the log can be written");
    });
    let outcome = supervise(
        &plan,
        RunOptions {
            job_dir: dir.to_owned(),
            traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into(),
            environment: std::env::vars_os().collect(),
            sink,
            show: ShowOutput { driver: DriverOutput::Apart, lines: Arc::new(|line| eprintln!("{line}")) },
            before_collector_stop: Box::new(|| ()),
        },
    );
    eprintln!("{}", outcome.message);
    ExitCode::from(u8::try_from(outcome.code).expect("an exit code"))
}

fn plan(job: &Value, dir: &Path) -> Plan {
    let mut units = Vec::new();
    let collector = job["otel"].as_object().map(|_| collector(&job["otel"]));
    for (group, kind) in [("services", Kind::Service), ("servers", Kind::Server)] {
        let members = job[group].as_object().cloned().unwrap_or_default();
        units.extend(members.iter().map(|(name, value)| unit(name, kind, value, dir)));
    }
    // Start order, as a compiled plan has it.
    let mut ordered: Vec<Unit> = Vec::new();
    if collector.is_some() {
        let mut unit = unit("otel_collector", Kind::Collector, &job["otel"], dir);
        unit.port = None;
        unit.ports.insert("health".into(), PortChoice::Range(13_133, 13_233));
        ordered.push(unit);
    }
    while !units.is_empty() {
        let able = units.iter().position(|u: &Unit| u.depends_on.iter().all(|d| ordered.iter().any(|o| o.name == *d)));
        ordered.push(units.remove(able.expect("no circle")));
    }
    if job["driver"].is_object() {
        ordered.push(unit("driver", Kind::Driver, &job["driver"], dir));
    }
    Plan {
        name: "test".into(),
        job_id: job["job_id"].as_str().expect("an id").to_owned(),
        user: "tester".into(),
        cluster: "local".into(),
        job_file: "job.json".into(),
        site: Vec::new(),
        output_path: dir.display().to_string(),
        job_dir: dir.display().to_string(),
        time_limit_seconds: job["time_limit_seconds"].as_f64(),
        ports: PortPolicy { auto: auto_ports(job), avoid: Vec::new() },
        collector,
        telemetry: TelemetryPlan {
            enabled: false,
            service_group: "nemo-gym".into(),
            run_id: "run".into(),
            traces_enabled: true,
            metrics_enabled: true,
            endpoint: None,
            memory: MemoryPlan {
                enabled: job["pss"].as_bool().unwrap_or_default(),
                interval_seconds: job["interval_seconds"].as_f64().unwrap_or(0.1),
                pss_interval_seconds: 0.1,
                include: vec![MemoryScope::Servers, MemoryScope::Services],
            },
        },
        attributes: Default::default(),
        scrape: Vec::new(),
        files: Vec::new(),
        units: ordered,
        warnings: Vec::new(),
    }
}

fn auto_ports(job: &Value) -> (u16, u16) {
    let end = |index: usize| job["auto_ports"][index].as_u64().and_then(|n| u16::try_from(n).ok());
    (end(0).unwrap_or(21_000), end(1).unwrap_or(29_999))
}

fn health() -> Text {
    Text::reference(Reference::Port { process: "otel_collector".into(), key: Some("health".into()) })
}

fn collector(otel: &Value) -> CollectorPlan {
    let mut own_metrics = Text::literal("127.0.0.1:");
    own_metrics.push(&health());
    let embedded = otel["embedded"].as_bool().unwrap_or(true);
    let receivers = Tree::Map([("prometheus".to_owned(), Tree::Null)].into_iter().collect());
    CollectorPlan {
        embedded,
        required: otel["required"].as_bool().unwrap_or_default(),
        endpoint: None,
        scrape_interval_seconds: 1.0,
        final_scrape_grace_seconds: otel["final_scrape_grace_seconds"].as_f64().unwrap_or(20.0),
        shutdown_wait_seconds: 30.0,
        own_metrics: (!embedded).then_some(own_metrics),
        config: Tree::Map([("receivers".to_owned(), receivers)].into_iter().collect()),
    }
}

/// `${port:NAME}` and `${url:NAME}`; `self` is the unit.
fn text(text: &str, own: &str) -> Text {
    let mut out = Text::default();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (inner, tail) = after.split_once('}').expect("a closing brace");
        let (kind, name) = inner.split_once(':').expect("kind and name");
        let process = name.strip_prefix("self").map_or_else(|| name.to_owned(), |key| format!("{own}{key}"));
        out.push_literal(before);
        out.push_reference(match kind {
            "port" => match process.split_once('.') {
                Some((process, key)) => Reference::Port { process: process.into(), key: Some(key.into()) },
                None => Reference::Port { process, key: None },
            },
            "url" => Reference::Url { process },
            "secret" => Reference::Secret { name: process, default: None },
            _ => panic!("no such reference: {inner}"),
        });
        rest = tail;
    }
    out.push_literal(rest);
    out
}

fn texts(value: &Value, own: &str) -> Vec<Text> {
    value.as_array().into_iter().flatten().map(|word| text(word.as_str().expect("text"), own)).collect()
}

fn unit(name: &str, kind: Kind, job: &Value, dir: &Path) -> Unit {
    let string = |key: &str| job[key].as_str();
    let probed = job["health_check"].as_object().map(|_| &job["health_check"]);
    let port = match &job["port"] {
        Value::Number(number) => {
            Some(PortChoice::Fixed(number.as_u64().and_then(|n| u16::try_from(n).ok()).expect("a port")))
        }
        Value::String(text) => Some(match text.split_once('-') {
            Some((low, high)) => PortChoice::Range(low.parse().expect("a port"), high.parse().expect("a port")),
            None => PortChoice::Auto,
        }),
        _ => None,
    };
    let env = job["env"].as_object().cloned().unwrap_or_default();
    Unit {
        name: name.to_owned(),
        kind,
        type_name: string("type").unwrap_or("command").to_owned(),
        location: gymrun::diag::Location::new("job.json", 1),
        argv: texts(&job["command"], name),
        cwd: string("cwd").map_or_else(|| dir.display().to_string(), str::to_owned),
        env: env
            .iter()
            .map(|(key, value)| {
                let value =
                    value.as_str().map_or(VariableValue::Unset, |v| VariableValue::Set(PlanValue::Text(text(v, name))));
                (key.clone(), Variable { value, source: "test".into(), masked: None })
            })
            .collect(),
        port,
        ports: Default::default(),
        depends_on: job["depends_on"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|d| d.as_str().map(str::to_owned))
            .collect(),
        readiness: match (probed, string("type")) {
            (Some(probe), _) => Readiness::Probe(self::probe(probe, name, port)),
            (None, Some("task")) => Readiness::Exited { timeout_seconds: None },
            (None, _) => Readiness::Started,
        },
        on_exit: if string("on_exit") == Some("ignore") { OnExit::Ignore } else { OnExit::Stop },
        stop: StopPolicy {
            signal: StopSignal::parse(string("stop_signal").unwrap_or("TERM")).expect("a signal"),
            grace_seconds: job["grace_seconds"].as_f64().unwrap_or(10.0),
        },
        log: match (string("log"), kind) {
            (Some("pipe"), _) | (None, Kind::Driver) => LogMode::Pipe,
            _ => LogMode::File,
        },
        stdin: Stdin::Null,
        model: None,
    }
}

fn probe(probe: &Value, own: &str, port: Option<PortChoice>) -> Probe {
    let kind = match probe["type"].as_str().unwrap_or("http") {
        "tcp" => ProbeKind::Tcp,
        "exec" => ProbeKind::Exec { command: texts(&probe["command"], own) },
        _ => ProbeKind::Http {
            paths: vec![probe["path"].as_str().unwrap_or("/health").to_owned()],
            statuses: vec![(200, 299)],
        },
    };
    let of_host = !matches!(kind, ProbeKind::Exec { .. });
    Probe {
        kind,
        host: of_host.then(|| Text::from(probe["host"].as_str().unwrap_or("127.0.0.1"))),
        // As a compiled plan has it: a fixed port is a number.
        port: of_host.then(|| match (own, port) {
            ("otel_collector", _) => health(),
            (_, Some(PortChoice::Fixed(port))) => Text::from(port.to_string()),
            _ => Text::reference(Reference::Port { process: own.to_owned(), key: None }),
        }),
        timeout_seconds: probe["timeout_seconds"].as_f64().unwrap_or(30.0),
        interval_seconds: None,
        request_timeout_seconds: probe["request_timeout_seconds"].as_f64().unwrap_or(5.0),
    }
}
