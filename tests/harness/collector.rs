//! A `gymrun collector` of a test: its configuration in a folder of its own, on free loopback ports.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

use super::gymrun::binary;
use super::lines::{json_lines, json_lines_so_far};
use super::ports::free_ports;
use super::program::Program;
use super::wait::eventually_async;

/// A running (or ended) collector.
pub struct Collector {
    pub folder: TempDir,
    pub http: u16,
    pub health: u16,
    program: Program,
    client: reqwest::Client,
}

impl Collector {
    /// Starts it with a configuration in which `$HTTP`, `$HEALTH` and `$OUT` stand for its ports and folder.
    pub fn spawn(config: &str, environment: &[(&str, &str)]) -> Self {
        Self::spawn_with(config, environment, None)
    }

    /// The same with another stderr than a file of its folder.
    pub fn spawn_with(config: &str, environment: &[(&str, &str)], stderr: Option<Stdio>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let [http, health] = free_ports();
        let text = config
            .replace("$HTTP", &format!("127.0.0.1:{http}"))
            .replace("$HEALTH", &format!("127.0.0.1:{health}"))
            .replace("$OUT", &folder.path().display().to_string());
        let file = folder.path().join("collector.yaml");
        fs::write(&file, text).expect("writes");
        let log = fs::File::create(folder.path().join("stderr.txt")).expect("creates");
        let mut command = Command::new(binary());
        command.args(["collector", "--config"]).arg(&file).env_clear().envs(environment.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr.unwrap_or(log.into()));
        // Reading the system's certificates takes longer than anything else here.
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().expect("a client");
        Self { folder, http, health, program: Program::start(&mut command), client }
    }

    /// Starts it and waits until the health check says that it is ready.
    pub async fn start(config: &str, environment: &[(&str, &str)]) -> Self {
        let mut collector = Self::spawn(config, environment);
        collector.ready().await;
        collector
    }

    /// Waits until the health check says that it is ready.
    pub async fn ready(&mut self) {
        let ready = async || {
            let ended = self.program.status();
            assert!(ended.is_none(), "not ready: {}", self.stderr());
            (self.status().await == Some(200)).then_some(())
        };
        eventually_async("the collector is ready", ready).await;
    }

    /// What the health check answers.
    pub async fn status(&self) -> Option<u16> {
        let answer = self.client.get(format!("http://127.0.0.1:{}/", self.health)).send().await;
        answer.ok().map(|answer| answer.status().as_u16())
    }

    /// The greatest resident memory so far, in bytes.
    pub fn peak_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line of every kernel");
        let kibibytes = line.trim().strip_suffix(" kB").and_then(|text| text.parse::<u64>().ok());
        kibibytes.expect("a number") * 1024
    }

    /// Sends an OTLP/JSON request; gives the status and body of the answer.
    pub async fn post(&self, path: &str, body: &Value) -> (u16, String) {
        self.send(self.http, path, body.to_string(), "application/json").await
    }

    /// A POST to the health port.
    pub async fn admin(&self, path: &str) -> (u16, String) {
        self.send(self.health, path, String::new(), "text/plain").await
    }

    async fn send(&self, port: u16, path: &str, body: String, content_type: &str) -> (u16, String) {
        let request = self.client.post(format!("http://127.0.0.1:{port}{path}"));
        let answer = request.header("content-type", content_type).body(body).send().await.expect("answers");
        (answer.status().as_u16(), answer.text().await.expect("a body"))
    }

    pub fn pid(&self) -> u32 {
        self.program.pid()
    }

    pub fn signal(&self, signal: Signal) {
        self.program.signal(signal);
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Waits for the end; gives the exit code.
    pub async fn ended(&mut self) -> i32 {
        let status = eventually_async("the collector's end", async || self.program.status()).await;
        status.code().unwrap_or_else(|| panic!("ended by a signal: {}", self.stderr()))
    }

    /// SIGTERM and the end.
    pub async fn stop(&mut self) -> i32 {
        self.terminate();
        self.ended().await
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.path("stderr.txt")).unwrap_or_default()).into_owned()
    }

    /// The whole lines of an output file, each as JSON; fails if one is torn.
    pub fn lines(&self, name: &str) -> Vec<Value> {
        json_lines(&self.path(name))
    }

    /// The whole lines of an output file that is still being written.
    pub fn lines_so_far(&self, name: &str) -> Vec<Value> {
        json_lines_so_far(&self.path(name))
    }

    /// The report of an ended collector.
    pub fn delivery(&self) -> Value {
        let text = fs::read_to_string(self.path("delivery.json")).expect("a report");
        serde_json::from_str(&text).expect("JSON")
    }
}
