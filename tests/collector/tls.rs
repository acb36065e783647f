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
    /// Wants a certificate of ours. `None` where there is no python3.
    fn start() -> Option<Self> {
        Self::with(&[])
    }

    /// Shows one of the certificates that signed themselves, and wants none.
    fn showing(own: &str) -> Option<Self> {
        Self::with(&[own])
    }

    fn with(arguments: &[&str]) -> Option<Self> {
        let mut command = Command::new(python()?);
        let mut program = Program::start(command.arg(data().join("sink.py")).args(arguments).stdout(Stdio::piped()));
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

/// Certificates that signed themselves and are their own `ca_file`, and what is said about each.
const OWN_AUTHORITIES: [(&str, Option<&str>); 5] = [
    ("own-authority.pem", None),
    ("own-plain.pem", None),
    ("own-expired.pem", Some("its certificate expired on 2021-01-01T00:00:00Z: it needs a new one")),
    ("own-other.pem", Some("its certificate is for `other.test`, not for `127.0.0.1`")),
    ("chains/own-for-clients.pem", Some("it is not for servers (extended key usage)")),
];

/// What stands in `ca_file` is an authority only if it says so, and what it says is kept to.
#[tokio::test]
async fn only_who_may_sign_is_an_authority() {
    for (name, wrong) in [
        ("good", None),
        ("between", None),
        ("depth-1-between", None),
        ("says-no", Some("its authority `says-no` does not allow to sign others")),
        ("between-may-not-sign", Some("its authority `between-may-not-sign` does not allow to sign others")),
        ("for-clients", Some("its authority `for-clients` is not for servers")),
        ("expired", Some("its authority `expired` expired on 2021-01-01T00:00:00Z")),
        ("depth-0-between", Some("its authority `depth-0` allows 0 authorities between")),
    ] {
        let Some(endpoint) = Endpoint::showing(&format!("chains/{name}.pem")) else { return };
        let trusted = format!("ca_file: DATA/chains/{name}-ca.pem");
        let mut collector = Collector::start(&to(endpoint.port, &trusted), &[]).await;
        assert_eq!(collector.post("/v1/traces", &spans(1)).await.0, 200);
        assert_eq!(collector.stop().await, 0);
        said(&collector, name, wrong, collector.delivery()["traces"]["sent"] == json!(1));
    }
}

/// As the reference takes them: trusted as they are, name and dates checked.
#[tokio::test]
async fn a_certificate_may_be_its_own_authority() {
    for (own, wrong) in OWN_AUTHORITIES {
        let Some(endpoint) = Endpoint::showing(own) else { return };
        let mut collector = Collector::start(&to(endpoint.port, &format!("ca_file: DATA/{own}")), &[]).await;
        assert_eq!(collector.post("/v1/traces", &spans(1)).await.0, 200);
        assert_eq!(collector.stop().await, 0);
        said(&collector, own, wrong, collector.delivery()["traces"]["sent"] == json!(1));
    }
    // Not among those that are trusted.
    let Some(endpoint) = Endpoint::showing("own-authority.pem") else { return };
    let mut collector = Collector::start(&to(endpoint.port, "ca_file: DATA/own-plain.pem"), &[]).await;
    assert_eq!(collector.post("/v1/traces", &spans(1)).await.0, 200);
    assert_eq!(collector.stop().await, 0);
    said(
        &collector,
        "another",
        Some("it is not in `tls.ca_file` itself"),
        collector.delivery()["traces"]["sent"] == json!(1),
    );
}

#[tokio::test]
async fn a_target_may_show_a_certificate_that_is_its_own_authority() {
    for (own, wrong) in OWN_AUTHORITIES {
        let Some(target) = Endpoint::showing(own) else { return };
        let collector = scrape(target.port, &format!("ca_file: {}", data().join(own).display())).await;
        let written = serde_json::to_string(&collector.lines("x.jsonl")).expect("JSON");
        said(&collector, own, wrong, written.contains("of_the_page"));
    }
}

/// One that cannot be read takes none of the others with it.
#[tokio::test]
async fn a_damaged_certificate_is_left_out_and_named() {
    let Some(endpoint) = Endpoint::showing("chains/good.pem") else { return };
    let mut collector = Collector::start(&to(endpoint.port, "ca_file: DATA/chains/damaged-ca.pem"), &[]).await;
    assert_eq!(collector.post("/v1/traces", &spans(1)).await.0, 200);
    assert_eq!(collector.stop().await, 0);
    assert_eq!(collector.delivery()["traces"]["sent"], json!(1), "{}", collector.stderr());
    let stderr = collector.stderr();
    assert!(stderr.contains("`tls.ca_file` ") && stderr.contains("certificate 1 cannot be read"), "{stderr}");
}

fn said(collector: &Collector, own: &str, wrong: Option<&str>, worked: bool) {
    let stderr = collector.stderr();
    assert_eq!(worked, wrong.is_none(), "{own}: {stderr}");
    assert!(stderr.contains(wrong.unwrap_or_default()), "{own}: {stderr}");
    assert!(!stderr.contains("docs.rs") && !stderr.contains("peer"), "{own}: {stderr}");
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
        let collector = scrape(target.port, &tls).await;
        let written = serde_json::to_string(&collector.lines("x.jsonl")).expect("JSON");
        assert!(written.contains("\"up\""), "{written}");
        assert_eq!(written.contains("of_the_page"), up, "{tls}: {}", collector.stderr());
    }
}

/// A collector that has scraped once, and has stopped.
async fn scrape(port: u16, tls: &str) -> Collector {
    let text = format!(
        "receivers:\n  prometheus:\n    config:\n      scrape_configs:\n      - job_name: j\n        scheme: https\n\
         \x20       tls_config: {{{tls}}}\n        static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n\
         extensions: {{health_check: {{endpoint: $HEALTH}}}}\nexporters: {{file: {{path: $OUT/x.jsonl}}}}\n\
         service:\n  extensions: [health_check]\n  pipelines: {{metrics: {{receivers: [prometheus], exporters: [file]}}}}\n"
    );
    let mut collector = Collector::start(&text, &[]).await;
    assert_eq!(collector.admin("/-/scrape").await.0, 200);
    assert_eq!(collector.stop().await, 0);
    collector
}
