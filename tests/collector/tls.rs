//! The endpoint's certificate is checked, under the name that the configuration gives; our own is shown.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{ChildStdout, Command, Stdio};

use serde_json::json;

use crate::harness::{Collector, Program, python};
use crate::{config, spans};

struct Endpoint {
    _program: Program,
    port: u16,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Endpoint {
    /// `None` where there is no python3.
    fn start() -> Option<Self> {
        let mut program = Program::start(Command::new(python()?).arg(data().join("sink.py")).stdout(Stdio::piped()));
        let mut lines = BufReader::new(program.stdout().expect("its output")).lines();
        let port = lines.next().expect("a line").expect("text").parse().expect("a port");
        Some(Self { _program: program, port, lines })
    }
}

fn data() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/collector/tls")
}

fn to(port: u16, tls: &str) -> String {
    let tls = tls.replace("DATA", &data().display().to_string());
    let exporter = format!(
        "  otlp_http:\n    endpoint: https://127.0.0.1:{port}\n    retry_on_failure: {{enabled: false}}\n    tls: {{{tls}}}\n"
    );
    config("  batch: {timeout: 10ms}", "batch", &exporter, "file, otlp_http")
}

const OWN: &str = "cert_file: DATA/cert.pem, key_file: DATA/key.pem";

#[tokio::test]
async fn a_certificate_for_another_name_needs_the_override() {
    let Some(mut endpoint) = Endpoint::start() else { return };
    let trusted = format!("ca_file: DATA/ca.pem, {OWN}");
    let named = format!("{trusted}, server_name_override: sink.test");
    let unchecked = format!("insecure_skip_verify: true, {OWN}");
    for (tls, sent) in [(trusted, 0), (named, 1), (unchecked, 1)] {
        let mut collector = Collector::start(&to(endpoint.port, &tls), &[]).await;
        assert_eq!(collector.post("/v1/traces", &spans(1)).await.0, 200);
        assert_eq!(collector.stop().await, 0);
        assert_eq!(collector.delivery()["traces"]["sent"], json!(sent), "{tls}: {}", collector.stderr());
        if sent == 1 {
            let line = endpoint.lines.next().expect("a line").expect("text");
            assert_eq!(line, format!("/v1/traces 127.0.0.1:{}", endpoint.port));
        } else {
            assert!(collector.stderr().contains("certificate"), "{}", collector.stderr());
        }
    }
}

#[tokio::test]
async fn missing_files_are_named() {
    for (tls, name) in [("ca_file: /no/ca.pem", "/no/ca.pem"), ("cert_file: DATA/cert.pem, key_file: /no/k", "/no/k")] {
        let mut collector = Collector::spawn(&to(1, tls), &[]);
        assert_eq!(collector.ended().await, 1);
        assert!(collector.stderr().contains(name), "{}", collector.stderr());
    }
}

#[tokio::test]
async fn a_target_over_tls_is_scraped_when_its_certificate_is_right() {
    let Some(target) = Endpoint::start() else { return };
    let folder = data().display().to_string();
    let own = OWN.replace("DATA", &folder);
    let ca = format!("ca_file: {folder}/ca.pem");
    for (tls, up) in [
        (format!("{ca}, {own}, server_name: sink.test"), true),
        (format!("insecure_skip_verify: true, {own}"), true),
        (format!("{ca}, {own}"), false),
        (format!("{ca}, server_name: sink.test"), false),
    ] {
        let text = format!(
            "receivers:\n  prometheus:\n    config:\n      scrape_configs:\n      - job_name: j\n        scheme: https\n\
             \x20       tls_config: {{{tls}}}\n        static_configs: [{{targets: ['127.0.0.1:{}']}}]\n\
             extensions: {{health_check: {{endpoint: $HEALTH}}}}\nexporters: {{file: {{path: $OUT/x.jsonl}}}}\n\
             service:\n  extensions: [health_check]\n  pipelines: {{metrics: {{receivers: [prometheus], exporters: [file]}}}}\n",
            target.port
        );
        let mut collector = Collector::start(&text, &[]).await;
        assert_eq!(collector.admin("/-/scrape").await.0, 200);
        assert_eq!(collector.stop().await, 0);
        let written = serde_json::to_string(&collector.lines("x.jsonl")).expect("JSON");
        assert!(written.contains("\"up\""), "{written}");
        assert_eq!(written.contains("of_the_page"), up, "{tls}: {}", collector.stderr());
    }
}
