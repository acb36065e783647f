//! The section as a whole: what the receiver adds to Prometheus's own configuration.

use std::time::Duration;

use super::super::scrape::PrometheusReceiver;
use super::global::Global;
use super::job::{self, TargetSettings};
use crate::collector::component::{Factory, Receiver, Signals};
use crate::collector::config::node::{Node, Value};
use crate::collector::config::section::Section;
use crate::diag::Problem;
use crate::otlp::Signal;

/// The kind.
pub const FACTORY: Factory<dyn Receiver> =
    Factory { names: &["prometheus"], signals: Signals::Each(&[Signal::Metrics]), configure };

/// What `extra_scrape_metrics` was in older versions.
const OLD_KEY: &str = "report_extra_scrape_metrics";

/// What holds for all jobs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Whole {
    /// Whether type and unit are cut off the names of metrics.
    pub trim_suffixes: bool,
    /// Added before each target's first scrape.
    pub offset: Duration,
    /// Whether every target is scraped once more at the stop.
    pub scrape_at_stop: bool,
}

fn configure(section: &mut Section<'_>) -> Option<Box<dyn Receiver>> {
    section.unsupported(&["target_allocator"]);
    // Here the first scrape always comes soon.
    section.boolean("discovery_reload_on_startup");
    section.section("api_server", |server| {
        server.has("server_config");
        if server.boolean("enabled") == Some(true) {
            server.problem("enabled", Problem::new("`api_server` is not supported by this collector"));
        }
    });
    if section.has(OLD_KEY) {
        let problem = Problem::new(format!("`{OLD_KEY}` is no key any more"));
        section.problem(OLD_KEY, problem.hint("write `extra_scrape_metrics: true` into the job or into `global`"));
    }
    let whole = Whole {
        trim_suffixes: section.boolean("trim_metric_suffixes").unwrap_or(false),
        offset: section.duration("initial_scrape_offset").unwrap_or_default(),
        scrape_at_stop: section.boolean("scrape_on_shutdown").unwrap_or(false),
    };
    let targets = section.section("config", |config| targets(config, &whole));
    if targets.is_none() {
        section.missing("config");
    }
    Some(Box::new(PrometheusReceiver { targets: targets? }))
}

/// Prometheus's configuration.
pub fn targets(config: &mut Section<'_>, whole: &Whole) -> Vec<TargetSettings> {
    for key in ["alerting", "remote_read", "remote_write", "rule_files", "scrape_config_files"] {
        if config.node(key).is_some_and(|node| !is_empty(node)) {
            config.problem(key, Problem::new(format!("`{key}` is not supported by this collector")));
        }
    }
    // About Prometheus as a server and a store: without effect in otelcol as well.
    for key in ["otlp", "runtime", "storage", "tracing"] {
        config.has(key);
    }
    let global = config.section("global", Global::read).unwrap_or_default();
    let mut names = Vec::new();
    let jobs = config.sections("scrape_configs", |section| job::targets(section, &global, whole, &mut names));
    if jobs.as_ref().is_none_or(Vec::is_empty) {
        config.problem_here(Problem::new("there are no `scrape_configs`"));
    }
    jobs.unwrap_or_default().into_iter().flatten().collect()
}

/// Nothing, an empty list or map, or a map of such.
fn is_empty(node: &Node) -> bool {
    match &node.value {
        Value::Null => true,
        Value::List(items) => items.is_empty(),
        Value::Map(entries) => entries.iter().all(|entry| is_empty(&entry.node)),
        _ => false,
    }
}
