//! What a row means, and whether all rows are so.

use std::fmt::Write as _;

use super::{exporters, processors, receivers};
use crate::collector::config::Config;
use crate::collector::config::load::read_text;
use crate::collector::config::section::Findings;
use crate::diag::{Problem, Severity};

/// One component: its section and type, the keys that it cannot do without, and rows of YAML.
#[derive(Clone, Copy)]
pub(super) struct Table {
    pub section: &'static str,
    pub kind: &'static str,
    pub base: &'static str,
    /// Taken without a word.
    pub good: &'static [&'static str],
    /// An error at the row's line that says what is not supported.
    pub refused: &'static [&'static str],
    /// What it does with a key that nobody knows.
    pub unknown: Severity,
}

/// The problems of a component with this row, which stands in line 3.
fn problems(table: &Table, row: &str) -> Vec<Problem> {
    let mut yaml = format!("{}:\n  {}:\n    {row}\n", table.section, table.kind);
    let key = row.split(':').next().unwrap_or_default();
    for line in table.base.lines().filter(|line| line.split(':').next() != Some(key)) {
        writeln!(yaml, "    {line}").expect("writes");
    }
    let findings = Findings::new("c.yaml");
    let root = read_text(&yaml, &|_| None, &findings).unwrap_or_else(|problems| panic!("{yaml}: {problems}"));
    let path = format!("{}.{}", table.section, table.kind);
    let (Err(problems) | Ok(Config { warnings: problems, .. })) = Config::from_node(&root, Vec::new(), findings);
    problems.into_iter().filter(|problem| problem.path.starts_with(&path)).collect()
}

#[test]
fn every_key_of_the_reference_is_taken_or_refused_at_its_line() {
    let mut wrong = Vec::new();
    for table in [receivers::TABLES, processors::TABLES, exporters::TABLES].concat() {
        for row in table.good {
            let found = problems(&table, row);
            if !found.is_empty() {
                wrong.push(format!("{}: {row}: {}", table.kind, found[0]));
            }
        }
        for row in table.refused {
            let found = problems(&table, row);
            let at_its_line = |problem: &&Problem| problem.location.line == Some(3);
            let errors = found.iter().filter(at_its_line).filter(|problem| problem.severity == Severity::Error);
            let mut texts = errors.map(|problem| problem.message.as_str());
            if !texts.any(|text| ["support", "is no value", "is not a value"].iter().any(|word| text.contains(word))) {
                let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
                wrong.push(format!("{}: {row}: not refused as not supported: {texts:?}", table.kind));
            }
        }
        let found = problems(&table, "nobody_knows_this: 1");
        let [problem] = found.as_slice() else {
            wrong.push(format!("{}: {} problems for an unknown key", table.kind, found.len()));
            continue;
        };
        if problem.severity != table.unknown || !problem.message.contains("`nobody_knows_this`") {
            wrong.push(format!("{}: an unknown key: {problem}", table.kind));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Older spellings are the same kinds, with a name after a slash too.
#[test]
fn old_and_named_types_are_known() {
    let yaml = "receivers: {otlp/2: {protocols: {http: }}}\n\
                connectors: {spanmetrics: , spanmetrics/a: , span_metrics/b: }\n\
                exporters: {otlphttp: {endpoint: 'http://x:1'}, otlphttp/a: {endpoint: 'http://x:1'}, otlp: {endpoint: 'x:1'}, otlp/2: {endpoint: 'x:1'}, nop: }\n\
                service: {pipelines: {traces: {receivers: [otlp/2], exporters: [otlphttp, otlphttp/a, otlp, otlp/2, spanmetrics]}, metrics/x: {receivers: [spanmetrics], exporters: [nop]}}}\n";
    let findings = Findings::new("c.yaml");
    let root = read_text(yaml, &|_| None, &findings).expect("YAML");
    if let Err(problems) = Config::from_node(&root, Vec::new(), findings) {
        panic!("{problems}");
    }
}
