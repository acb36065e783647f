//! A `gymrun collector` of a test: its configuration in a folder of its own, on free loopback ports.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// How long a condition may take to come true on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A running (or ended) collector.
pub struct Collector {
    pub folder: TempDir,
    pub http: u16,
    pub health: u16,
    child: Child,
}

/// A port that nobody has at this moment.
pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}

impl Collector {
    /// Starts it with a configuration in which `$HTTP`, `$HEALTH` and `$OUT` stand for its ports and folder.
    pub fn spawn(config: &str, environment: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (http, health) = (free_port(), free_port());
        let text = config
            .replace("$HTTP", &format!("127.0.0.1:{http}"))
            .replace("$HEALTH", &format!("127.0.0.1:{health}"))
            .replace("$OUT", &folder.path().display().to_string());
        let file = folder.path().join("collector.yaml");
        fs::write(&file, text).expect("writes");
        let log = fs::File::create(folder.path().join("stderr.txt")).expect("creates");
        let child = Command::new(env!("CARGO_BIN_EXE_gymrun"))
            .args(["collector", "--config"])
            .arg(&file)
            .env_clear()
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("starts");
        Self { folder, http, health, child }
    }

    /// Starts it and waits until the health check says that it is ready.
    pub async fn start(config: &str, environment: &[(&str, &str)]) -> Self {
        let mut collector = Self::spawn(config, environment);
        let url = format!("http://127.0.0.1:{}/", collector.health);
        let begin = std::time::Instant::now();
        loop {
            if reqwest::get(&url).await.is_ok_and(|answer| answer.status() == 200) {
                return collector;
            }
            let ended = collector.child.try_wait().expect("waits");
            assert!(ended.is_none() && begin.elapsed() < PATIENCE, "not ready: {}", collector.stderr());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
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
        let request = reqwest::Client::new().post(format!("http://127.0.0.1:{port}{path}"));
        let answer = request.header("content-type", content_type).body(body).send().await.expect("answers");
        (answer.status().as_u16(), answer.text().await.expect("a body"))
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).expect("a pid"));
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("signals");
    }

    /// Waits for the end; gives the exit code.
    pub async fn ended(&mut self) -> i32 {
        let begin = std::time::Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("waits") {
                return status.code().expect("a code");
            }
            assert!(begin.elapsed() < PATIENCE, "does not end: {}", self.stderr());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
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
        fs::read_to_string(self.path("stderr.txt")).unwrap_or_default()
    }

    /// The whole lines of an output file, each as JSON; fails if one is torn.
    pub fn lines(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        assert!(text.is_empty() || text.ends_with('\n'), "a torn line at the end of {name}");
        text.lines().map(|line| serde_json::from_str(line).expect("whole JSON")).collect()
    }

    /// The whole lines of an output file that is still being written.
    #[allow(dead_code, reason = "of use to some of the tests that share this file")]
    pub fn lines_so_far(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).expect("whole JSON")).collect()
    }

    /// The report of an ended collector.
    pub fn delivery(&self) -> Value {
        let text = fs::read_to_string(self.path("delivery.json")).expect("a report");
        serde_json::from_str(&text).expect("JSON")
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
