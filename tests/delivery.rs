//! What a job with a collector leaves behind: no secrets, and telemetry up to its last moment.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test looks for python3 and says that it is skipped"
)]

mod binary;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use binary::{Job, read_json};
use serde_json::Value;

const TOKEN: &str = "t0ken-th4t-must-n0t-be-seen";

/// An endpoint that refuses every request and quotes its `Authorization` and its body. It ends with the test.
fn quoting_endpoint() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
                let (mut authorization, mut length) = (String::new(), 0);
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                    let (name, value) = line.trim().split_once(": ").unwrap_or_default();
                    match name.to_ascii_lowercase().as_str() {
                        "authorization" => value.clone_into(&mut authorization),
                        "content-length" => length = value.parse().expect("a length"),
                        _ => {}
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).expect("a body");
                let answer = format!("invalid credentials: {authorization}, {}", String::from_utf8_lossy(&body));
                let head = format!(
                    "HTTP/1.1 401 Unauthorized\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                    answer.len()
                );
                let _ = stream.write_all((head + &answer).as_bytes());
            });
        }
    });
    url
}

fn files_with(folder: &Path, word: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of the job").flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(files_with(&path, word));
        } else if fs::read(&path).is_ok_and(|bytes| bytes.windows(word.len()).any(|part| part == word.as_bytes())) {
            found.push(path);
        }
    }
    found
}

#[test]
fn an_endpoint_that_quotes_the_token_puts_it_nowhere() {
    // `MY_PASS` is not named like a secret: the header it stands in makes it one.
    for variable in ["MY_TOKEN", "MY_PASS"] {
        let job = Job::new(
            "job.yaml",
            &format!(
                "name: t\notel: {{endpoint: {}, token_env: {variable}, compression: none, service_name: evals}}\n\
                 driver: {{command: [\"true\"]}}\n",
                quoting_endpoint()
            ),
        );
        let job = job.with_variable(variable, TOKEN);
        let ended = job.run(&[]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let dir = job.dir("t");
        let delivery = read_json(&dir.join("otel/delivery.json"));
        assert!(delivery["traces"]["dropped"]["http_401"].as_u64() > Some(0), "{delivery}");
        assert!(
            delivery["last_error"].as_str().is_some_and(|text| text.contains("invalid credentials: ***")),
            "{delivery}"
        );
        assert_eq!(files_with(&dir, TOKEN), Vec::<PathBuf>::new());
        assert!(!ended.stdout.contains(TOKEN) && !ended.stderr.contains(TOKEN), "{}", ended.stderr);
    }
}

const PAGE: &str = r#"
import http.server, os
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(b"n 1\n")
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.0.0.1", int(os.environ["GYMRUN_PORT"])), Page).serve_forever()
"#;

/// The points of a gauge in the order of time: value and flags.
fn points(dir: &Path, name: &str) -> Vec<(Option<f64>, u64)> {
    let text = fs::read_to_string(dir.join("otel/metrics.jsonl")).expect("metrics");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("whole JSON"));
    let items = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let metrics = lines.flat_map(|line| items(&line, "resourceMetrics"));
    let metrics = metrics.flat_map(|resource| items(&resource, "scopeMetrics"));
    let metrics = metrics.flat_map(|scope| items(&scope, "metrics")).filter(|metric| metric["name"] == name);
    let points = metrics.flat_map(|metric| items(&metric["gauge"], "dataPoints"));
    points.map(|point| (point["asDouble"].as_f64(), point["flags"].as_u64().unwrap_or(0))).collect()
}

/// While the job stops, its servers go one after another; nobody looks at them any more.
#[test]
fn the_last_that_is_said_of_a_target_is_that_it_is_up() {
    if !Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success()) {
        let required = std::env::var("GYMRUN_TEST_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|word| word.trim() == "python3"), "python3 is required");
        eprintln!("skipped: python3 is not here");
        return;
    }
    let job = Job::new(
        "job.yaml",
        "name: t\notel: {endpoint: false, scrape_interval_seconds: 1}\n\
         services:\n\
         \x20 page: {command: [python3, page.py], port: auto, metrics: true, health_check: {path: /}}\n\
         \x20 slow: {shell: 'trap \"sleep 3; exit 0\" TERM; sleep 300 & wait', grace_seconds: 10}\n\
         driver: {command: [sleep, \"2\"]}\n",
    );
    fs::write(job.folder().join("page.py"), PAGE).expect("a program");
    let ended = job.run(&[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let dir = job.dir("t");
    for name in ["up", "n"] {
        let points = points(&dir, name);
        assert_eq!(points.last(), Some(&(Some(1.0), 0)), "{name}: {points:?}");
    }
}
