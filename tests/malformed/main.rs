//! The corpora of the fuzz targets, sent to a running collector while good traffic goes on: what is malformed gets its
//! error, what is not is taken, and no good span is lost.

mod grpc;
#[path = "../harness/mod.rs"]
mod harness;
mod traffic;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use axum::Router;
use axum::extract::{Request, State};
use bytes::Bytes;
use gymrun::collector::fuzzing::{decompress, encodings, grpc_message, scrape};
use gymrun::otlp::{Payload, Signal};
use serde_json::Value;

use grpc::Channel;
use harness::{Collector, eventually_async, free_port};
use traffic::Traffic;

/// What the receivers take at most: the defaults.
const HTTP_LIMIT: usize = 20 << 20;
const GRPC_LIMIT: usize = 4 << 20;

/// The inputs of a target, by name.
fn corpus(target: &str) -> BTreeMap<String, Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpora").join(target);
    let entries = fs::read_dir(folder).expect("a corpus").map(|entry| entry.expect("readable").path());
    entries
        .map(|path| {
            (path.file_name().expect("a name").to_string_lossy().into_owned(), fs::read(&path).expect("readable"))
        })
        .collect()
}

/// Everything that arrives goes into one file; `jobs` are scraped.
fn config(grpc: u16, jobs: &str) -> String {
    let (prometheus, used) = match jobs {
        "" => (String::new(), "otlp"),
        jobs => {
            let jobs = format!("{{global: {{scrape_interval: 60s}}, scrape_configs: [{jobs}]}}");
            (format!("  prometheus: {{config: {jobs}}}\n"), "otlp, prometheus")
        }
    };
    format!(
        "receivers:\n  otlp:\n    protocols:\n      http: {{endpoint: $HTTP}}\n      grpc: {{endpoint: \"127.0.0.1:{grpc}\"}}\n\
         {prometheus}\
         extensions:\n  health_check: {{endpoint: $HEALTH}}\n\
         exporters:\n  file: {{path: $OUT/x.jsonl, flush_interval: 50ms}}\n\
         service:\n  extensions: [health_check]\n  pipelines:\n\
         \x20   traces: {{receivers: [otlp], exporters: [file]}}\n\
         \x20   metrics: {{receivers: [{used}], exporters: [file]}}\n\
         \x20   logs: {{receivers: [otlp], exporters: [file]}}\n"
    )
}

#[tokio::test]
async fn malformed_requests_get_their_error_and_nothing_else_suffers() {
    let grpc = free_port();
    let mut collector = Collector::start(&config(grpc, ""), &[]).await;
    let traffic = Traffic::start(collector.http, grpc).await;
    let client = reqwest::Client::new();
    let post = async |signal: Signal, kind: &str, encoding: &str, body: &[u8]| {
        let url = format!("http://127.0.0.1:{}/v1/{}", collector.http, signal.name());
        let mut request = client.post(url).header("content-type", kind).body(body.to_vec());
        if !encoding.is_empty() {
            request = request.header("content-encoding", encoding);
        }
        let answer = request.send().await.expect("an answer");
        let status = answer.status().as_u16();
        assert!(status == 200 || !answer.bytes().await.expect("a body").is_empty(), "an error without words");
        status
    };
    let channel = Channel::connect(grpc).await;
    let http_status = |good: bool| if good { 200 } else { 400 };
    let mut refused = 0;
    for signal in Signal::ALL {
        for (name, body) in corpus("otlp_wire") {
            let good = Payload::decode(signal, body.clone()).is_ok();
            assert!(!good || !name.starts_with("bad_") || signal != Signal::Traces, "{name} is taken");
            refused += usize::from(!good);
            assert_eq!(post(signal, "application/x-protobuf", "", &body).await, http_status(good), "{name}");
            let code = channel.send(signal, None, &grpc::frame(&body)).await;
            assert_eq!(code, if good { 0 } else { 13 }, "{name} by gRPC");
        }
        for (name, body) in corpus("otlp_json") {
            let good = Payload::from_json(signal, &body).is_ok();
            assert!(!good || !name.starts_with("bad_") || signal != Signal::Traces, "{name} is taken");
            refused += usize::from(!good);
            assert_eq!(post(signal, "application/json", "", &body).await, http_status(good), "{name}");
        }
    }
    for (name, body) in corpus("bodies") {
        for encoding in encodings().filter(|encoding| !encoding.is_empty()) {
            let plain = decompress(encoding, body.clone().into(), HTTP_LIMIT).expect("known");
            let good = plain.is_ok_and(|plain| Payload::decode(Signal::Logs, plain).is_ok());
            let status = post(Signal::Logs, "application/x-protobuf", encoding, &body).await;
            assert_eq!(status, http_status(good), "{name} as {encoding}");
        }
        // The gRPC server's names for what HTTP calls so.
        for (encoding, known) in
            [(None, ""), (Some("gzip"), "gzip"), (Some("zstd"), "zstd"), (Some("snappy"), "x-snappy-framed")]
        {
            let message = grpc_message(known, Bytes::from(body.clone()), GRPC_LIMIT);
            let good = message.is_ok_and(|message| Payload::decode(Signal::Logs, message).is_ok());
            let code = channel.send(Signal::Logs, encoding, &body).await;
            assert_eq!(code == 0, good, "{name} as {encoding:?}: {code}");
        }
    }
    assert!(refused > 150, "{refused} requests were malformed");
    let sent = traffic.stop().await;
    let health = reqwest::get(format!("http://127.0.0.1:{}/", collector.health)).await.expect("an answer");
    assert_eq!(health.status(), 200);
    assert_eq!(collector.stop().await, 0, "{}", collector.stderr());
    // Some of what is taken is no UTF-8, and is passed on as it is.
    let written = fs::read(collector.path("x.jsonl")).expect("readable");
    let written = String::from_utf8_lossy(&written).matches("\"name\":\"good\"").count();
    assert_eq!(written, sent, "spans of the good senders");
    let delivery = collector.delivery();
    assert_eq!(delivery["traces"]["received"], delivery["traces"]["written"], "{delivery}");
    assert_eq!(delivery["traces"]["dropped"].as_object().map_or(0, serde_json::Map::len), 0, "{delivery}");
}

#[tokio::test]
async fn malformed_pages_are_down_and_the_others_are_scraped() {
    let kinds = [("text", "text/plain; version=0.0.4"), ("open", "application/openmetrics-text; version=1.0.0")];
    let pages: Vec<(String, &str, Vec<u8>)> = kinds
        .into_iter()
        .flat_map(|(word, kind)| {
            corpus("exposition").into_iter().map(move |(name, page)| (format!("{word}_{name}"), kind, page))
        })
        .chain([("good".to_owned(), kinds[0].1, b"good 1\n".to_vec())])
        .collect();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let port = listener.local_addr().expect("an address").port();
    let jobs = pages.iter().map(|(name, ..)| {
        format!("{{job_name: {name}, metrics_path: /{name}, static_configs: [{{targets: [\"127.0.0.1:{port}\"]}}]}}")
    });
    let jobs = jobs.collect::<Vec<_>>().join(", ");
    let served: BTreeMap<String, (&str, Vec<u8>)> =
        pages.iter().map(|(name, kind, page)| (format!("/{name}"), (*kind, page.clone()))).collect();
    let router = Router::new().fallback(give).with_state(std::sync::Arc::new(served));
    tokio::spawn(async move { axum::serve(listener, router).await });

    let mut collector = Collector::start(&config(free_port(), &jobs), &[]).await;
    // So many pages may take longer than one request may.
    let scraped = async || (collector.admin("/-/scrape").await.0 == 200).then_some(());
    eventually_async("all are scraped", scraped).await;
    assert_eq!(collector.stop().await, 0, "{}", collector.stderr());
    let mut up: BTreeMap<String, Vec<bool>> = BTreeMap::new();
    for line in collector.lines("x.jsonl") {
        for (job, value) in ups(&line) {
            up.entry(job).or_default().push(value);
        }
    }
    let mut down = 0;
    for (name, kind, page) in &pages {
        let good = scrape(&[page], kind)[0].error.is_none();
        down += usize::from(!good);
        let seen = up.remove(name).unwrap_or_default();
        assert!(!seen.is_empty() && seen.iter().all(|up| *up == good), "{name}: {seen:?}, should be {good}");
    }
    assert!(up.is_empty() && down > 50, "{down} pages were malformed; {up:?}");
}

type Served = std::sync::Arc<BTreeMap<String, (&'static str, Vec<u8>)>>;

async fn give(State(served): State<Served>, request: Request) -> ([(&'static str, &'static str); 1], Vec<u8>) {
    let (kind, page) = served.get(request.uri().path()).expect("a page");
    ([("content-type", kind)], page.clone())
}

/// The values of `up` in a line, by job.
fn ups(line: &Value) -> Vec<(String, bool)> {
    let mut all = Vec::new();
    for resource in line["resourceMetrics"].as_array().into_iter().flatten() {
        let attributes = resource["resource"]["attributes"].as_array().cloned().unwrap_or_default();
        let job = attributes.iter().find(|attribute| attribute["key"] == "service.name");
        let job = job.and_then(|attribute| attribute["value"]["stringValue"].as_str()).unwrap_or_default();
        let metrics = resource["scopeMetrics"].as_array().into_iter().flatten();
        for metric in metrics.filter_map(|scope| scope["metrics"].as_array()).flatten() {
            if metric["name"] == "up" {
                all.push((job.to_owned(), metric["gauge"]["dataPoints"][0]["asDouble"] == 1));
            }
        }
    }
    all
}
