//! The quickstart's traffic: what its servers, its driver and gymrun itself sent in a run, recorded once
//! (`tests/data/quickstart`), through the configuration that was rendered for that run.

use serde_json::{Value, json};

use super::bed::{Case, both};
use super::side::{Body, Side};
use super::target::Page;
use crate::harness::text_so_far;

const CONFIG: &str = include_str!("../data/quickstart/collector.yaml");
const TRAFFIC: &str = include_str!("../data/quickstart/traffic.jsonl");

fn page(body: &str) -> Page {
    let headers = vec![("content-type", "text/plain; version=0.0.4; charset=utf-8")];
    Page { headers, body: body.as_bytes().to_vec(), ..Page::default() }
}

/// The requests, in order: path and body.
fn requests() -> Vec<(&'static str, Body)> {
    let request = |line: &'static str| {
        let recorded: Value = serde_json::from_str(line).expect("JSON");
        let path = ["/v1/traces", "/v1/metrics", "/v1/logs"].into_iter().find(|path| recorded["path"] == json!(path));
        let (content_type, bytes) = match recorded["protobuf"].as_str() {
            Some(text) => ("application/x-protobuf", data_encoding::BASE64.decode(text.as_bytes()).expect("base64")),
            None => ("application/json", recorded["json"].to_string().into_bytes()),
        };
        (path.expect("a path"), Body { content_type, encoding: None, bytes })
    };
    TRAFFIC.lines().map(request).collect()
}

/// Metrics by where they come from: batches of the pipeline mix them as time has it.
fn by_source(side: &Side) -> [Vec<Value>; 3] {
    let [mut scraped, mut counted, mut sent] = [(); 3].map(|()| Vec::new());
    let text = std::fs::read_to_string(side.path("metrics.jsonl")).expect("metrics");
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        for resource in line["resourceMetrics"].as_array().into_iter().flatten() {
            let scope = resource["scopeMetrics"][0]["scope"]["name"].as_str().unwrap_or_default();
            let list = match scope {
                "spanmetricsconnector" => &mut counted,
                _ if scope.ends_with("prometheusreceiver") => &mut scraped,
                _ => &mut sent,
            };
            list.push(resource.clone());
        }
    }
    [scraped, counted, sent]
}

/// Starts depend on the borders of batches.
fn without_starts(node: &mut Value) {
    match node {
        Value::Object(map) => {
            map.shift_remove("startTimeUnixNano");
            map.values_mut().for_each(without_starts);
        }
        Value::Array(items) => items.iter_mut().for_each(without_starts),
        _ => {}
    }
}

/// The last entry of each resource.
fn last_of_each(entries: &[Value]) -> Vec<Value> {
    let mut last: Vec<Value> = Vec::new();
    for entry in entries {
        match last.iter_mut().find(|known| known["resource"] == entry["resource"]) {
            Some(known) => known.clone_from(entry),
            None => last.push(entry.clone()),
        }
    }
    last
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_quickstart() {
    let pages = vec![page(include_str!("../data/pages/vllm.1.txt")), page(include_str!("../data/pages/vllm.2.txt"))];
    let case = Case::new(CONFIG).serve("/metrics", pages);
    both(case, async |side| {
        for (path, body) in requests() {
            side.post(path, body).await;
        }
        // The first flush after the spans says 0 calls in the reference, the second how many there were.
        let calls = "traces.span.metrics.calls";
        let now = text_so_far(&side.path("metrics.jsonl"), 0).lines().filter(|line| line.contains(calls)).count();
        side.wait_lines("metrics.jsonl", now + 3, calls).await;
        side.wait_lines("metrics.jsonl", 2, "scrape_samples_scraped").await;
        side.stop().await;
        for name in ["traces.jsonl", "logs.jsonl"] {
            side.merged_output(name);
        }
        let [scraped, mut counted, sent] = by_source(side);
        counted.iter_mut().for_each(without_starts);
        let scraped = scraped.into_iter().take(2).collect();
        for (name, entries) in [("scraped", scraped), ("counted", last_of_each(&counted)), ("sent", sent)] {
            let mut entries: Vec<Value> = entries.into_iter().map(|entry| side.normalised(entry)).collect();
            entries.sort_by_key(ToString::to_string);
            side.row(json!({name: entries}));
        }
    })
    .await;
}
