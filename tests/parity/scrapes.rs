//! Scrapes: targets that answer with one page after the other, as `tests/data/scrapes` has them (its README tells the
//! form). All jobs of all files are scraped by one collector, in pipelines of their own kind; each job's first lines and
//! its first request are compared.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::bed::{Case, both};
use super::side::Side;
use super::target::Page;
use crate::harness::{DEADLINE, Program, component, free_port};

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; version=0.0.4";

/// A job as it is scraped.
struct Job {
    name: String,
    /// How many lines of the output are compared.
    scrapes: usize,
    /// The `service.name` of its resource, where that is not its name.
    recorded_as: String,
    /// Whether its lines come in any order: several targets.
    unordered: bool,
    /// Metrics that differ on purpose.
    different: Vec<String>,
}

/// What all files say.
#[derive(Default)]
struct Scripts {
    jobs: Vec<Job>,
    receivers: Map<String, Value>,
    pages: Vec<(String, Vec<Page>)>,
}

fn data(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder)
}

fn text(value: &Value) -> &'static str {
    value.as_str().expect("a text").to_owned().leak()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn joined(lines: &Value) -> Vec<u8> {
    let lines = lines.as_array().expect("a list").iter();
    lines.flat_map(|line| [text(line).as_bytes(), b"\n"].concat()).collect()
}

fn page(value: &Value) -> Page {
    let mut body = match value {
        Value::Array(_) => joined(value),
        _ if value.get("lines").is_some() => joined(&value["lines"]),
        _ if value.get("file").is_some() => fs::read(data("pages").join(text(&value["file"]))).expect("a page"),
        _ if value.get("base64").is_some() => {
            data_encoding::BASE64.decode(text(&value["base64"]).as_bytes()).expect("base64")
        }
        _ => value["text"].as_str().unwrap_or_default().as_bytes().to_vec(),
    };
    let is = |key: &str| value[key] == json!(true);
    if is("openmetrics") && !is("no_end") {
        body.extend_from_slice(b"# EOF\n");
    }
    let mut headers = Vec::new();
    match value.get("content_type") {
        Some(Value::Null) => {}
        Some(given) => headers.push(("content-type", text(given))),
        None => headers.push(("content-type", if is("openmetrics") { OPENMETRICS } else { TEXT })),
    }
    if is("gzip") {
        body = gzip(&body);
        headers.push(("content-encoding", "gzip"));
    }
    for (name, given) in value["headers"].as_object().into_iter().flatten() {
        headers.push((name.clone().leak(), text(given)));
    }
    let status = value["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(200);
    let delay = Duration::from_secs_f64(value["delay"].as_f64().unwrap_or(0.0));
    Page { status, headers, body, delay }
}

fn pages(value: &Value) -> Vec<Page> {
    value.as_array().expect("pages").iter().map(page).collect()
}

impl Scripts {
    /// All files of the folder.
    fn read() -> Self {
        let mut files: Vec<PathBuf> =
            fs::read_dir(data("scrapes")).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
        files.sort();
        let mut scripts = Self::default();
        for file in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "json")) {
            let content: Value = serde_json::from_slice(&fs::read(file).expect("a file")).expect("JSON");
            for (place, group) in content.as_array().expect("a list of receivers").iter().enumerate() {
                let name = file.file_stem().expect("a name").to_string_lossy();
                scripts.add(format!("prometheus/{name}_{place}"), group);
            }
        }
        scripts
    }

    fn add(&mut self, receiver: String, group: &Value) {
        let jobs: Vec<Value> = group["jobs"].as_array().expect("jobs").iter().map(|job| self.job(job)).collect();
        let global = group.get("global").cloned().unwrap_or(json!({}));
        let mut section = group.get("receiver").cloned().unwrap_or(json!({}));
        section["discovery_reload_on_startup"] = json!(true);
        section["config"] = json!({"global": global, "scrape_configs": jobs});
        self.receivers.insert(receiver, section);
    }

    fn job(&mut self, job: &Value) -> Value {
        let name = text(&job["name"]).to_owned();
        assert!(self.jobs.iter().all(|known| known.name != name), "two jobs of the name {name}");
        let own = pages(&job["pages"]);
        let mut different = Vec::new();
        if let Some(on_purpose) = job.get("different") {
            let row = text(&on_purpose["row"]);
            let table = include_str!("../../docs/collector-differences.md");
            assert!(table.contains(row), "{name}: no row `{row}` among the differences");
            different.extend(on_purpose["metrics"].as_array().into_iter().flatten().map(|name| text(name).to_owned()));
        }
        let path = format!("/{name}");
        let scrapes = job["scrapes"].as_u64().map_or(own.len(), |count| usize::try_from(count).expect("a count"));
        // All are through after some twelve seconds, and none is scraped more often than it takes.
        let interval = ["10s", "10s", "5s"].get(scrapes).unwrap_or(&"2500ms");
        let mut config = json!({
            "job_name": name, "scrape_interval": interval, "metrics_path": path,
            "static_configs": [{"targets": ["$TARGET"], "labels": job.get("labels").unwrap_or(&json!({}))}]
        });
        for (key, value) in job["job"].as_object().into_iter().flatten() {
            config[key] = value.clone();
        }
        self.jobs.push(Job {
            scrapes,
            recorded_as: job["as"].as_str().unwrap_or(&name).to_owned(),
            unordered: job["unordered"] == json!(true),
            different,
            name,
        });
        self.pages.push((path, own));
        for (path, value) in job["also"].as_object().into_iter().flatten() {
            self.pages.push((path.clone(), pages(value)));
        }
        config
    }

    /// The scrapes of the longest job of a receiver.
    fn longest(&self, section: &Value) -> usize {
        let jobs = section["config"]["scrape_configs"].as_array().into_iter().flatten();
        let of = |job: &Value| self.jobs.iter().find(|known| json!(known.name) == job["job_name"]);
        jobs.filter_map(of).map(|job| job.scrapes).max().unwrap_or_default()
    }

    fn case(&self) -> Case {
        let mut sections: Vec<(&String, Value)> =
            self.receivers.iter().map(|(name, section)| (name, section.clone())).collect();
        // One after the other, so that the targets do not get all first requests at once; the longest scripts begin.
        sections.sort_by_key(|(_, section)| std::cmp::Reverse(self.longest(section)));
        for (place, (_, section)) in sections.iter_mut().enumerate() {
            section["initial_scrape_offset"] = json!(format!("{}ms", 1 + 300 * place));
        }
        let receivers: Vec<&String> = self.receivers.keys().collect();
        let sections: Map<String, Value> =
            sections.into_iter().map(|(name, section)| (name.clone(), section)).collect();
        let config = json!({
            "receivers": sections,
            "exporters": {"file": {"path": "$OUT/x.jsonl", "flush_interval": "100ms"}},
            "service": {
                "telemetry": {"metrics": {"level": "none"}, "logs": {"level": "error"}},
                "pipelines": {"metrics": {"receivers": receivers, "exporters": ["file"]}}
            }
        });
        let mut case = Case::new(config.to_string());
        for (path, pages) in &self.pages {
            case = case.serve(path.clone().leak(), pages.clone());
        }
        case
    }
}

/// What the real `node_exporter` answers at this moment, in both dialects, as scripts of one page.
async fn add_node(scripts: &mut Scripts) {
    let Some(program) = component("node_exporter", "GYMRUN_TEST_NODE_EXPORTER") else { return };
    let port = free_port();
    let mut command = std::process::Command::new(program);
    command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
    command.stdin(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let _exporter = Program::start(&mut command);
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().expect("a client");
    let begin = Instant::now();
    let mut jobs = Vec::new();
    for accept in ["text/plain;version=0.0.4", "application/openmetrics-text;version=1.0.0"] {
        let answer = loop {
            let request = client.get(format!("http://127.0.0.1:{port}/metrics")).header("accept", accept);
            if let Ok(answer) = request.send().await {
                break answer;
            }
            assert!(begin.elapsed() < DEADLINE, "node_exporter does not answer");
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
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
    place: u64,
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
        let mut new = String::new();
        if let Ok(mut file) = fs::File::open(side.path("x.jsonl")) {
            file.seek(SeekFrom::Start(self.place)).expect("seeks");
            file.read_to_string(&mut new).expect("reads");
        }
        let whole = &new[..new.rfind('\n').map_or(0, |end| end + 1)];
        self.place += whole.len() as u64;
        for line in whole.lines() {
            let line: Value = serde_json::from_str(line).expect("JSON");
            let job = names(&line).find_map(|name| self.jobs.get(name));
            let job = job.unwrap_or_else(|| panic!("a line of no job: {line}"));
            self.of.entry(job.clone()).or_default().push(line);
        }
    }

    fn missing<'j>(&self, jobs: &'j [Job]) -> Vec<&'j str> {
        let has = |job: &Job| self.of.get(&job.name).map_or(0, Vec::len);
        jobs.iter().filter(|job| has(job) < job.scrapes).map(|job| job.name.as_str()).collect()
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_script() {
    let mut scripts = Scripts::read();
    add_node(&mut scripts).await;
    both(scripts.case(), async |side| {
        let mut lines = Lines::new(&scripts.jobs);
        let begin = Instant::now();
        loop {
            lines.read(side);
            let missing = lines.missing(&scripts.jobs);
            if missing.is_empty() {
                break;
            }
            assert!(begin.elapsed() < DEADLINE, "never scraped: {missing:?}: {}", side.stderr());
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        side.stop().await;
        for job in &scripts.jobs {
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
            side.row(json!({format!("request {path}"): request}));
        }
    })
    .await;
}
