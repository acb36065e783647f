//! One collector of the two: its process, ports, folder and record.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::bed::Case;
use super::normalise::{Normaliser, merge};
use super::target::{Page, Target};
use crate::harness::{Program, eventually_async, free_ports, json_lines, json_lines_so_far, text_so_far};

const PORTS: [&str; 4] = ["HTTP", "GRPC", "HEALTH", "TARGET"];

/// A running (or ended) collector.
pub struct Side {
    folder: TempDir,
    ports: [u16; 4],
    program: Program,
    client: reqwest::Client,
    /// What it asks and is answered.
    pub target: Target,
    normaliser: Normaliser,
    rows: Vec<Value>,
    killed: bool,
}

/// A body of a request.
#[derive(Clone)]
pub struct Body {
    pub content_type: &'static str,
    pub encoding: Option<&'static str>,
    pub bytes: Vec<u8>,
}

impl Side {
    /// Starts `program --config FILE` in an empty folder, and waits until the ports that the configuration names are
    /// open. In the configuration `$HTTP`, `$GRPC`, `$HEALTH` and `$TARGET` stand for addresses, `$OUT` for the folder.
    pub async fn start(program: &[String], case: &Case) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let ports = free_ports();
        let mut text = case.config.replace("$OUT", &folder.path().display().to_string());
        // Where there is no health check, its port may be that of the collector's own metrics.
        text = text.replace("$OWNPORT", &ports[2].to_string());
        for (name, port) in PORTS.iter().zip(ports) {
            text = text.replace(&format!("${name}"), &format!("127.0.0.1:{port}"));
        }
        let file = folder.path().join("collector.yaml");
        fs::write(&file, &text).expect("writes");
        let target = Target::serve(ports[3], case.pages.clone()).await;
        let normaliser = Normaliser::new(PORTS.iter().copied().zip(ports));
        let log = fs::File::create(folder.path().join("stderr.txt")).expect("creates");
        let mut command = Command::new(&program[0]);
        command.args(&program[1..]).arg("--config").arg(&file).current_dir(folder.path());
        command.env_clear().envs(case.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a second handle")).stderr(log);
        let program = Program::start(&mut command);
        // Without certificates, which take longer to read than all requests.
        let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        let client = client.tls_certs_only([]).build().expect("a client");
        let mut side = Self { folder, ports, program, client, target, normaliser, rows: Vec::new(), killed: false };
        for (name, port) in
            PORTS.iter().zip(ports).take(3).filter(|(name, _)| case.config.contains(&format!("${name}")))
        {
            let open = async || tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok();
            side.until(&format!("{name} is open"), open).await;
        }
        side
    }

    /// Sends a request to OTLP/HTTP and records the whole answer.
    pub async fn post(&mut self, path: &str, body: Body) {
        let (status, content_type, bytes) = self.request(path, body).await;
        let text = if content_type == "application/x-protobuf" {
            data_encoding::BASE64.encode(&bytes)
        } else {
            self.normaliser.text(&String::from_utf8_lossy(&bytes))
        };
        self.row(json!({"post": path, "status": status, "content_type": content_type, "body": text}));
    }

    /// The same; of the answer's body only the code of its google.rpc.Status is recorded, since texts differ.
    pub async fn post_for_code(&mut self, path: &str, body: Body) {
        let sent = format!("{} bytes {}", body.bytes.len(), body.encoding.unwrap_or_default());
        let (status, content_type, bytes) = self.request(path, body).await;
        let code = match (content_type.as_str(), bytes.as_slice()) {
            ("application/json", text) => {
                serde_json::from_slice::<Value>(text).ok().and_then(|answer| answer.get("code").cloned())
            }
            ("application/x-protobuf", [8, code, ..]) => Some(json!(code)),
            _ => None,
        };
        self.row(json!({"post": path, "sent": sent, "status": status, "content_type": content_type, "code": code}));
    }

    /// Sends a request again and again until this status comes; nothing is recorded.
    pub async fn post_until(&self, path: &str, body: Body, status: u16) {
        let came = async || (self.request(path, body.clone()).await.0 == status).then_some(());
        eventually_async(&format!("the status {status}"), came).await;
    }

    /// Asks OTLP/HTTP with this method and no body, and records the answer with its Location.
    pub async fn ask(&mut self, method: &str, path: &str) {
        // By hand: a client library would clean the path.
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", self.ports[0])).await.expect("a connection");
        let request = format!("{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("writes");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("reads");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let header = |name: &str| {
            let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(name))?;
            Some(line.split_once(": ")?.1.to_owned())
        };
        self.row(json!({"ask": format!("{method} {path}"), "status": head.split(' ').nth(1),
                        "content_type": header("content-type:"), "location": header("location:"), "body": body}));
    }

    /// Sends OTLP/HTTP these bytes and records what is comparable of the answer that comes before the connection is closed:
    /// status, types, and the body but for the words of a google.rpc.Status.
    pub async fn raw_http(&mut self, name: &str, request: &[u8]) {
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", self.ports[0])).await.expect("a connection");
        stream.write_all(request).await.expect("writes");
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        tokio::time::timeout(crate::harness::DEADLINE, read).await.expect("an end").expect("reads");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let mut answers = Vec::new();
        for answer in answer.split("HTTP/1.").skip(1) {
            let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
            let header = |name: &str| {
                let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(name))?;
                Some(line.split_once(": ")?.1.to_owned())
            };
            let status = head.split(' ').nth(1).expect("a status");
            let code = serde_json::from_str::<Value>(body).ok().and_then(|body| body.get("code").cloned());
            let body = code.unwrap_or_else(|| json!(body));
            answers.push(json!({"status": status, "content_type": header("content-type:"), "body": body,
                                "nosniff": header("x-content-type-options:"), "location": header("location:"),
                                "connection": header("connection:")}));
        }
        self.row(json!({"raw": name, "answers": answers}));
    }

    async fn request(&self, path: &str, body: Body) -> (u16, String, Vec<u8>) {
        let mut request = self.client.post(format!("http://127.0.0.1:{}{path}", self.ports[0]));
        request = request.header("content-type", body.content_type);
        if let Some(encoding) = body.encoding {
            request = request.header("content-encoding", encoding);
        }
        let answer = request.body(body.bytes).send().await.unwrap_or_else(|error| panic!("{error}: {}", self.stderr()));
        let content_type = answer.headers().get("content-type").and_then(|value| value.to_str().ok());
        let (status, content_type) = (answer.status().as_u16(), content_type.unwrap_or_default().to_owned());
        (status, content_type, answer.bytes().await.expect("a body").to_vec())
    }

    /// The port of the gRPC receiver.
    pub fn grpc_port(&self) -> u16 {
        self.ports[1]
    }

    /// Adds to the record.
    pub fn row(&mut self, row: Value) {
        self.rows.push(row);
    }

    /// Stops it by SIGTERM and records its exit code.
    pub async fn stop(&mut self) {
        self.program.signal(nix::sys::signal::Signal::SIGTERM);
        let status = eventually_async("the collector's end", async || self.program.status()).await;
        self.killed |= status.code().is_none();
        self.row(json!({"exit": status.code()}));
    }

    /// Whether a signal ended it.
    pub fn was_killed(&self) -> bool {
        self.killed
    }

    /// Records the messages of an output file, one by one.
    pub fn output(&mut self, name: &str) {
        let lines = self.lines(name).into_iter().map(|line| self.normaliser.line(line)).collect::<Vec<_>>();
        self.rows.extend(lines.into_iter().map(|line| json!({"line": line})));
    }

    /// The messages of an output file as they are.
    pub fn messages(&self, name: &str) -> Vec<Value> {
        self.lines(name)
    }

    /// The same without the metadata of metrics, of which the reference leaves out some when it splits a metric.
    pub fn output_without_metadata(&mut self, name: &str) {
        fn strip(node: &mut Value) {
            match node {
                Value::Object(map) => {
                    map.shift_remove("metadata");
                    map.values_mut().for_each(strip);
                }
                Value::Array(items) => items.iter_mut().for_each(strip),
                _ => {}
            }
        }
        for mut line in self.lines(name) {
            strip(&mut line);
            let line = self.normaliser.line(line);
            self.rows.push(json!({"line": line}));
        }
    }

    /// Records the messages of an output file joined into one of each signal: for batches whose borders depend on time.
    pub fn merged_output(&mut self, name: &str) {
        let lines = self.lines(name).into_iter().map(|line| self.normaliser.line(line)).collect::<Vec<_>>();
        self.rows.extend(merge(&lines).into_iter().map(|line| json!({"merged": line})));
    }

    /// A message with its random parts named, its lists sorted.
    pub fn normalised(&self, message: Value) -> Value {
        self.normaliser.line(message)
    }

    /// Records the exact bytes of an output file.
    pub fn raw_output(&mut self, name: &str) {
        let bytes = fs::read(self.path(name)).unwrap_or_default();
        self.row(json!({"file": name, "bytes": data_encoding::BASE64.encode(&bytes)}));
    }

    /// Waits until an output file has this many lines that hold `word`.
    pub async fn wait_lines(&mut self, name: &str, count: usize, word: &str) {
        let path = self.path(name);
        let there = async || text_so_far(&path, 0).lines().filter(|line| line.contains(word)).count() >= count;
        self.until(&format!("{count} lines with `{word}` in {name}"), there).await;
    }

    /// Waits until the target was asked this many times for the path.
    pub async fn wait_asked(&mut self, path: &str, count: usize) {
        let target = self.target.clone();
        self.until(&format!("{count} requests for {path}"), async || target.count(path) >= count).await;
    }

    /// Records what the target was asked: method, path, these headers, and the body (JSON and OTLP decoded).
    pub fn asked(&mut self, headers: &[&str]) {
        for request in self.target.seen() {
            let shown: serde_json::Map<String, Value> =
                headers.iter().map(|name| ((*name).to_owned(), json!(request.headers.get(*name)))).collect();
            let body = self.normaliser.line(request.message());
            self.row(json!({"asked": format!("{} {}", request.method, request.path), "headers": shown, "body": body}));
        }
    }

    /// The page of its own metrics (at `$OWNPORT`), as soon as it is `ready`.
    pub async fn own_metrics(&mut self, ready: impl Fn(&str) -> bool) -> String {
        let url = format!("http://127.0.0.1:{}/metrics", self.ports[2]);
        let client = self.client.clone();
        let get = async || match client.get(&url).send().await {
            Ok(answer) => answer.text().await.unwrap_or_default(),
            Err(_) => String::new(),
        };
        self.until("its metrics are as they should be", async || ready(&get().await)).await;
        get().await
    }

    /// A file of its folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What it said at last.
    pub fn stderr(&self) -> String {
        let said = fs::read(self.path("stderr.txt")).unwrap_or_default();
        String::from_utf8_lossy(&said[said.len().saturating_sub(4000)..]).into_owned()
    }

    pub(super) fn record(mut self) -> Vec<Value> {
        std::mem::take(&mut self.rows)
    }

    fn lines(&self, name: &str) -> Vec<Value> {
        // Of one that a signal ended nothing is compared.
        if self.killed { json_lines_so_far(&self.path(name)) } else { json_lines(&self.path(name)) }
    }

    async fn until(&mut self, what: &str, condition: impl AsyncFn() -> bool) {
        let holds = async || {
            let ended = self.program.status();
            assert!(ended.is_none(), "never: {what} ({ended:?}): {}", self.stderr());
            condition().await.then_some(())
        };
        eventually_async(what, holds).await;
    }
}

/// A page of the target that is plain text.
pub fn page(text: &str) -> Page {
    Page {
        headers: vec![("content-type", "text/plain; version=0.0.4")],
        body: text.as_bytes().to_vec(),
        ..Page::default()
    }
}
