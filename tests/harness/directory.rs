//! The files of a job directory.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::lines::{json_lines, json_lines_so_far};
use super::telemetry::Telemetry;

/// `<output path>/<job id>/<job name>`.
pub struct JobDirectory(PathBuf);

impl JobDirectory {
    /// The one job directory below that of a job id.
    pub fn only_in(parent: &Path) -> Self {
        let mut found: Vec<_> = std::fs::read_dir(parent)
            .unwrap_or_else(|error| panic!("{}: {error}", parent.display()))
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .collect();
        assert_eq!(found.len(), 1, "{found:?}");
        Self(found.remove(0))
    }

    /// A path in it.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.0.join(relative)
    }

    /// A file's text.
    pub fn text(&self, relative: &str) -> String {
        let path = self.path(relative);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// A file of JSON lines; each must be whole, the last one too.
    pub fn json_lines(&self, relative: &str) -> Vec<Value> {
        let path = self.path(relative);
        assert!(path.exists(), "{} is missing", path.display());
        json_lines(&path)
    }

    /// A file of JSON.
    pub fn json(&self, relative: &str) -> Value {
        serde_json::from_str(&self.text(relative)).unwrap_or_else(|error| panic!("{relative}: {error}"))
    }

    /// The events of that kind.
    pub fn events(&self, kind: &str) -> Vec<Value> {
        self.json_lines("events.jsonl").into_iter().filter(|event| event["event"] == kind).collect()
    }

    /// The same while the job runs.
    pub fn events_so_far(&self, kind: &str) -> Vec<Value> {
        json_lines_so_far(&self.path("events.jsonl")).into_iter().filter(|event| event["event"] == kind).collect()
    }

    /// What the collector has written.
    pub fn telemetry(&self) -> Telemetry {
        Telemetry::new(
            self.json_lines("otel/traces.jsonl"),
            self.json_lines("otel/metrics.jsonl"),
            self.json_lines("otel/logs.jsonl"),
        )
    }

    /// The files below it that hold `word`.
    pub fn files_with(&self, word: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder of the job").flatten() {
                let path = entry.path();
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(path);
                } else if std::fs::read(&path)
                    .is_ok_and(|bytes| bytes.windows(word.len()).any(|part| part == word.as_bytes()))
                {
                    found.push(path);
                }
            }
        }
        found
    }
}
