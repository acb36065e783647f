//! Tests of the receiver's section.

mod jobs;
mod problems;

use super::TargetSettings;
use super::receiver::{FACTORY, Whole, targets};
use crate::collector::testing::{problems_of, read_section};

/// The targets of a Prometheus configuration.
fn read(yaml: &str) -> Vec<TargetSettings> {
    read_section(yaml, |config| targets(config, &Whole::default()))
}

/// The targets of one job `j` with the target `h:1` and these further keys.
fn read_job(keys: &str) -> Vec<TargetSettings> {
    read(&format!("scrape_configs:\n  - job_name: j\n    static_configs: [{{targets: ['h:1']}}]\n{keys}"))
}

/// The problems of the receiver's section, one line each: `LINE PATH: MESSAGE`.
fn problems(yaml: &str) -> Vec<String> {
    let text = problems_of(yaml, |section| drop((FACTORY.configure)(section)));
    let mut lines = Vec::new();
    let mut said = String::new();
    for line in text.lines() {
        if let Some(message) = line.strip_prefix("error: ").or_else(|| line.strip_prefix("warning: ")) {
            message.trim_start_matches("component.").clone_into(&mut said);
        } else if let Some((_, number)) = line.rsplit_once("c.yaml:") {
            lines.push(format!("{number} {said}"));
        }
    }
    lines
}
