//! Recorded cases of the reference collector (v0.161.0), run against `gymrun collector`.
//!
//! A case of `tests/data/collector-cases` has a configuration, steps, and what the reference answered and wrote; `run.py` carries
//! the steps out and compares (after the normalisation that its README documents). Every case must be met, but for those of
//! [`DIFFERENT`].

#![expect(clippy::disallowed_methods, reason = "tests start the program under test themselves")]

mod harness;

use std::path::PathBuf;
use std::process::Command;

use harness::{binary, python, repository};

/// Cases in which gymrun differs on purpose, each with words of its row in `docs/collector-differences.md`.
const DIFFERENT: &[(&str, &str)] = &[
    ("spanm_cumulative", "first value of a new `calls` series"),
    ("spanm_defaults", "first value of a new `calls` series"),
    ("spanm_empty_namespace_no_histogram", "first value of a new `calls` series"),
    ("spanm_events", "first value of a new `calls` series"),
    ("spanm_exponential", "first value of a new `calls` series"),
    ("spanm_instance_id", "first value of a new `calls` series"),
    ("spanm_kinds_and_status", "first value of a new `calls` series"),
    ("spanm_resources", "first value of a new `calls` series"),
    ("spanm_seconds_namespace", "first value of a new `calls` series"),
    ("spanm_no_flush_at_shutdown", "spans since the last flush at the stop"),
    ("text_histogram_amd64", "histogram whose counts are NaN, negative or fall"),
];

/// Beginnings of names; each group is one test.
const PROCESSORS: &[&str] = &["attributes_", "batch_", "filter_", "memory_limiter_", "resource_", "transform_"];
const CONFIGURATION: &[&str] = &["config_", "env_"];
const EXPORTERS: &[&str] = &["file_", "health_", "otlp_http_exporter"];
const RECEIVER: &[&str] = &["otlp_"];
const PAGES: &[&str] = &["text_", "om_"];
const SCRAPES: &[&str] = &["scrape_"];
const SPAN_METRICS: &[&str] = &["spanm_"];

fn folder() -> PathBuf {
    repository().join("tests/data/collector-cases")
}

fn cases() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).expect("the cases are there").map(|entry| entry.expect("an entry"));
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().join("steps.json").exists())
        .map(|entry| entry.file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    names
}

/// Runs the cases of a group; skipped where there is no python3, unless it is required.
fn meet(group: &[&str], but: &[&str]) {
    let begins = |name: &str, words: &[&str]| words.iter().any(|word| name.starts_with(word));
    let names: Vec<String> = cases().into_iter().filter(|name| begins(name, group) && !begins(name, but)).collect();
    let collector = format!("{} collector --config {{config}}", binary());
    let Some(python) = python() else { return };
    let mut command = Command::new(python);
    command.arg(folder().join("run.py")).args(["--collector", &collector]).args(&names);
    let output = command.env("PYTHONDONTWRITEBYTECODE", "1").output().expect("python3 starts");
    let said = String::from_utf8_lossy(&output.stdout);
    for name in &names {
        // One that no longer differs has no place in the table.
        let different = DIFFERENT.iter().any(|(case, _)| case == name);
        let word = if different { "FAIL" } else { "PASS" };
        let outcome = said.lines().any(|line| line.starts_with(&format!("{word} {name} (")));
        assert!(outcome, "no `{word} {name}`: {said}{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn configuration() {
    meet(CONFIGURATION, &[]);
}

#[test]
fn exporters_and_health() {
    meet(EXPORTERS, &[]);
}

#[test]
fn otlp() {
    meet(RECEIVER, EXPORTERS);
}

#[test]
fn pages() {
    meet(PAGES, &[]);
}

#[test]
fn processors() {
    meet(PROCESSORS, &[]);
}

#[test]
fn scrapes() {
    meet(SCRAPES, &[]);
}

#[test]
fn span_metrics() {
    meet(SPAN_METRICS, &[]);
}

#[test]
fn every_case_belongs_to_a_group_and_every_exception_to_a_row() {
    let names = cases();
    let groups = [CONFIGURATION, EXPORTERS, RECEIVER, PAGES, PROCESSORS, SCRAPES, SPAN_METRICS].concat();
    for name in &names {
        assert!(groups.iter().any(|word| name.starts_with(word)), "{name} belongs to no group");
    }
    let page = repository().join("docs/collector-differences.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    for (case, words) in DIFFERENT {
        assert!(names.iter().any(|name| name == case), "no case {case}");
        assert!(page.lines().any(|line| line.starts_with("| ") && line.contains(words)), "no row `{words}`");
    }
}
