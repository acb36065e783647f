//! The scripts of `tests/data/scrapes`, read into one configuration and its target's pages.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::bed::Case;
use super::target::Page;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; version=0.0.4";

/// A job as it is scraped.
pub struct Job {
    pub name: String,
    /// How many lines of the output are compared.
    pub scrapes: usize,
    /// The `service.name` of its resource, where that is not its name.
    pub recorded_as: String,
    /// Whether its lines come in any order: several targets.
    pub unordered: bool,
    /// Metrics that differ on purpose.
    pub different: Vec<String>,
    /// The paths that it asks for.
    paths: Vec<String>,
}

/// What all files say.
#[derive(Default)]
pub struct Scripts {
    pub jobs: Vec<Job>,
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
    pub fn read() -> Self {
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

    /// One receiver more.
    pub fn add(&mut self, receiver: String, group: &Value) {
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
        let also = job["also"].as_object().into_iter().flatten();
        let paths = [&path].into_iter().chain(also.clone().map(|(path, _)| path)).cloned().collect();
        self.jobs.push(Job {
            paths,
            scrapes,
            recorded_as: job["as"].as_str().unwrap_or(&name).to_owned(),
            unordered: job["unordered"] == json!(true),
            different,
            name,
        });
        self.pages.push((path, own));
        for (path, value) in also {
            self.pages.push((path.clone(), pages(value)));
        }
        config
    }

    /// Gives up all jobs but those of these names or paths.
    pub fn keep(&mut self, names: &[String]) {
        let is_kept = |job: &Job| names.contains(&job.name) || job.paths.iter().any(|path| names.contains(path));
        self.jobs.retain(is_kept);
        for section in self.receivers.values_mut() {
            if let Some(configs) = section["config"]["scrape_configs"].as_array_mut() {
                configs.retain(|config| self.jobs.iter().any(|job| config["job_name"] == json!(job.name)));
            }
        }
        self.receivers.retain(|_, section| section["config"]["scrape_configs"] != json!([]));
    }

    /// The scrapes of the longest job of a receiver.
    fn longest(&self, section: &Value) -> usize {
        let jobs = section["config"]["scrape_configs"].as_array().into_iter().flatten();
        let of = |job: &Value| self.jobs.iter().find(|known| json!(known.name) == job["job_name"]);
        jobs.filter_map(of).map(|job| job.scrapes).max().unwrap_or_default()
    }

    /// All that there is, for both sides.
    pub fn case(&self) -> Case {
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
