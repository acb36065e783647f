//! Scrapes: targets that answer with one page after the other, as `tests/data/scrapes` has them (its README tells the
//! form). All jobs of all files are scraped by one collector; each job's first lines and its first request are compared.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use super::bed::{compare, records};
use super::scripts::{Job, Scripts};
use super::side::Side;
use crate::harness::{Program, component, eventually_async, free_port, text_so_far};

/// What the real `node_exporter` answers at this moment, in both dialects, as scripts of one page.
async fn add_node(scripts: &mut Scripts) {
    let Some(program) = component("node_exporter", "GYMRUN_TEST_NODE_EXPORTER") else { return };
    let port = free_port();
    let mut command = std::process::Command::new(program);
    command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
    command.stdin(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let _exporter = Program::start(&mut command);
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().expect("a client");
    let mut jobs = Vec::new();
    for accept in ["text/plain;version=0.0.4", "application/openmetrics-text;version=1.0.0"] {
        let ask = || client.get(format!("http://127.0.0.1:{port}/metrics")).header("accept", accept).send();
        let answer = eventually_async("node_exporter answers", async || ask().await.ok()).await;
        let content_type = answer.headers()["content-type"].to_str().expect("text").to_owned();
        let page = json!({"content_type": content_type, "text": answer.text().await.expect("a page")});
        jobs.push(json!({"name": format!("node_exporter_{}", jobs.len()), "pages": [page.clone(), page]}));
    }
    scripts.add("prometheus/node_exporter".into(), &json!({"jobs": jobs}));
}

/// The `service.name`s of the resources of a line.
fn names(line: &Value) -> impl Iterator<Item = &str> {
    let resources = line["resourceMetrics"].as_array().into_iter().flatten();
    let attributes = resources.filter_map(|resource| resource["resource"]["attributes"].as_array()).flatten();
    attributes
        .filter(|attribute| attribute["key"] == "service.name")
        .filter_map(|attribute| attribute["value"]["stringValue"].as_str())
}

/// Lines of the output by the job that they are of, read as they come.
struct Lines {
    place: usize,
    of: HashMap<String, Vec<Value>>,
    /// The job of a `service.name`.
    jobs: HashMap<String, String>,
}

impl Lines {
    fn new(jobs: &[Job]) -> Self {
        let names = |job: &Job| [job.name.clone(), job.recorded_as.clone()].map(|name| (name, job.name.clone()));
        Self { place: 0, of: HashMap::new(), jobs: jobs.iter().flat_map(names).collect() }
    }

    fn read(&mut self, side: &Side) {
        let whole = text_so_far(&side.path("x.jsonl"), self.place);
        self.place += whole.len();
        for line in whole.lines() {
            let line: Value = serde_json::from_str(line).expect("JSON");
            let job = names(&line).find_map(|name| self.jobs.get(name));
            let job = job.unwrap_or_else(|| panic!("a line of no job: {line}"));
            self.of.entry(job.clone()).or_default().push(line);
        }
    }

    fn has_all(&self, jobs: &[Job]) -> bool {
        jobs.iter().all(|job| self.of.get(&job.name).map_or(0, Vec::len) >= job.scrapes)
    }
}

/// Takes out what differs on purpose: metrics that the job names, and the start time of a vanished `_created` line
/// (2^63 in the reference, none here).
fn without_differences(node: &mut Value, different: &[String]) {
    match node {
        Value::Object(map) => {
            if map.get("startTimeUnixNano").is_some_and(|start| *start == json!("9223372036854775808")) {
                map.shift_remove("startTimeUnixNano");
            }
            if let Some(Value::Array(metrics)) = map.get_mut("metrics") {
                metrics.retain(|metric| different.iter().all(|name| metric["name"] != json!(name)));
            }
            map.values_mut().for_each(|value| without_differences(value, different));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| without_differences(item, different)),
        _ => {}
    }
}

/// The first request for each path, without what every client has of its own.
fn requests(side: &Side) -> BTreeMap<String, Value> {
    const OWN: [&str; 3] = ["host", "user-agent", "connection"];
    let mut first = BTreeMap::new();
    for asked in side.target.seen() {
        let headers: BTreeMap<_, _> = asked.headers.iter().filter(|(name, _)| !OWN.contains(&name.as_str())).collect();
        let row = json!({"method": asked.method, "query": asked.query, "headers": headers});
        first.entry(asked.path.clone()).or_insert(row);
    }
    first
}

/// What a side has to say: for each job its lines, for each path its first request.
async fn script(side: &mut Side, jobs: &[Job]) {
    let mut lines = Lines::new(jobs);
    eventually_async("each job is scraped", async || {
        lines.read(side);
        lines.has_all(jobs).then_some(())
    })
    .await;
    side.stop().await;
    for job in jobs {
        let mut of = lines.of.remove(&job.name).unwrap_or_default();
        of.truncate(job.scrapes);
        let mut rows: Vec<Value> = of.into_iter().map(|line| side.normalised(line)).collect();
        for row in &mut rows {
            without_differences(row, &job.different);
        }
        if job.unordered {
            rows.sort_by_key(ToString::to_string);
        }
        side.row(json!({job.name.clone(): rows}));
    }
    for (path, request) in requests(side) {
        let request = side.normalised(request);
        side.row(json!({path: request}));
    }
}

/// The names of the rows that one side lacks or has otherwise.
fn differing(ours: &[Value], theirs: &[Value]) -> Vec<String> {
    let named = |rows: &[Value]| -> BTreeMap<String, Value> {
        rows.iter().filter_map(Value::as_object).flatten().map(|(name, row)| (name.clone(), row.clone())).collect()
    };
    let (ours, theirs) = (named(ours), named(theirs));
    let all = ours.keys().chain(theirs.keys().filter(|name| !ours.contains_key(*name)));
    all.filter(|name| ours.get(*name) != theirs.get(*name)).cloned().collect()
}

/// On a machine that is busy a scrape may come too late. What differs is tried again alone, which takes nobody long; a
/// difference in what is recorded stays. What was tried again is printed: one that comes and goes leaves its trace.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stderr, reason = "for whoever reads the run")]
async fn every_script() {
    let mut scripts = Scripts::read();
    add_node(&mut scripts).await;
    let mut last = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let Some((ours, theirs)) = records(scripts.case(), async |side| script(side, &scripts.jobs).await).await else {
            return;
        };
        let different = differing(&ours, &theirs);
        if different.is_empty() {
            return;
        }
        eprintln!("tried again alone: {}", different.join(", "));
        scripts.keep(&different);
        last = (ours, theirs);
    }
    compare(&last.0, &last.1);
}
