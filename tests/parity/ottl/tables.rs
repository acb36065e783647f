//! Tables of statements, and the configurations that run them.

use std::fmt::Write as _;

use gymrun::otlp::Signal;
use serde_json::{Value, json};

use super::super::requests::path;
use super::super::side::{Body, Side};
use super::acceptance::{self, Asked};
use super::inputs;

/// The contexts, with the signal that they are of and the attributes that they have.
pub const CONTEXTS: [(&str, Signal, &str); 7] = [
    ("resource", Signal::Traces, "attributes"),
    ("scope", Signal::Traces, "attributes"),
    ("span", Signal::Traces, "attributes"),
    ("spanevent", Signal::Traces, "attributes"),
    ("metric", Signal::Metrics, "metadata"),
    ("datapoint", Signal::Metrics, "attributes"),
    ("log", Signal::Logs, "attributes"),
];

/// One line of a table.
#[derive(Clone, Debug)]
pub struct Line {
    /// Place in [`CONTEXTS`].
    pub context: usize,
    pub text: String,
    /// The reference takes it, and here it is a start error, as the documentation says.
    pub ours_refuses: bool,
}

impl Line {
    pub fn signal(&self) -> Signal {
        CONTEXTS[self.context].1
    }
}

/// The text of a table.
pub fn table(name: &str) -> String {
    let path = format!("{}/tests/data/ottl/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).expect(&path)
}

/// Reads a table: `[context]` begins a section, `#` a comment; `! ` stands before what only the reference takes.
pub fn read(name: &str) -> Vec<Line> {
    let table = table(name);
    let mut context = None;
    let mut lines = Vec::new();
    for line in table.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let named = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
        if let Some(place) = named.and_then(|name| CONTEXTS.iter().position(|(known, ..)| *known == name)) {
            context = Some(place);
            continue;
        }
        let (ours_refuses, text) = match line.strip_prefix("! ") {
            Some(text) => (true, text),
            None => (false, line),
        };
        lines.push(Line { context: context.expect("a section"), text: text.to_owned(), ours_refuses });
    }
    lines
}

/// A group of statements as a configuration has it.
pub fn group(context: usize, statements: &[String]) -> Value {
    json!({"context": CONTEXTS[context].0, "error_mode": "silent", "statements": statements})
}

/// The lines of which both programs take the statement; panics if they do not take the same ones. None without a
/// reference.
pub fn accepted_lines(lines: &[Line], statement: impl Fn(&Line) -> String) -> Option<Vec<Line>> {
    let asked = lines.iter().map(|line| {
        let group = group(line.context, &[statement(line)]);
        let settings = json!({ statements_key(line.signal()): [group] }).to_string();
        Asked { text: &line.text, processor: ("transform", settings), ours_refuses: line.ours_refuses }
    });
    let places = acceptance::accepted(&asked.collect::<Vec<_>>())?;
    Some(places.into_iter().map(|place| lines[place].clone()).collect())
}

/// The key of a signal's statements.
pub fn statements_key(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "trace_statements",
        Signal::Metrics => "metric_statements",
        Signal::Logs => "log_statements",
    }
}

/// A configuration in which these processors run, one after the other, in a pipeline of each signal with a file of its
/// own.
pub fn config(processors: &[(&str, String)]) -> String {
    let used: Vec<&str> = processors.iter().map(|(name, _)| *name).collect();
    let (mut exporters, mut pipelines) = (String::new(), String::new());
    for signal in Signal::ALL.map(Signal::name) {
        writeln!(exporters, "  file/{signal}: {{path: $OUT/{signal}.jsonl, flush_interval: 50ms}}").expect("memory");
        let used = used.join(", ");
        writeln!(pipelines, "    {signal}: {{receivers: [otlp], processors: [{used}], exporters: [file/{signal}]}}")
            .expect("memory");
    }
    let processors = processors.iter().map(|(name, settings)| ((*name).to_owned(), settings.clone()));
    whole(processors, exporters.trim(), pipelines.trim())
}

/// A configuration of these parts, which are YAML. A dollar in settings is one.
pub fn whole(processors: impl Iterator<Item = (String, String)>, exporters: &str, pipelines: &str) -> String {
    let mut text =
        "receivers: {otlp: {protocols: {http: {endpoint: $HTTP}, grpc: {endpoint: $GRPC}}}}\nprocessors:\n".to_owned();
    for (name, settings) in processors {
        writeln!(text, "  {name}: {}", settings.replace('$', "$$")).expect("memory");
    }
    write!(
        text,
        "exporters:\n  {exporters}\nservice:\n  telemetry: {{metrics: {{level: none}}}}\n  pipelines:\n    {pipelines}\n"
    )
    .expect("memory");
    text
}

/// Sends a request and records the status.
pub async fn send(side: &mut Side, signal: Signal, request: &Value) {
    let bytes = request.to_string().into_bytes();
    side.post_for_code(path(signal), Body { content_type: "application/json", encoding: None, bytes }).await;
}

/// The telemetry of a signal.
pub fn request(signal: Signal, copies: usize) -> Value {
    match signal {
        Signal::Traces => inputs::traces(copies),
        Signal::Metrics => inputs::metrics(copies),
        Signal::Logs => inputs::logs(copies),
    }
}

/// The name of a signal's list of resources.
pub fn resources_key(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "resourceSpans",
        Signal::Metrics => "resourceMetrics",
        Signal::Logs => "resourceLogs",
    }
}

/// The same with attributes and the entries of maps in the order of their keys.
pub fn in_order(node: Value) -> Value {
    match node {
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, in_order(value))).collect(),
        Value::Array(items) => {
            let mut items: Vec<Value> = items.into_iter().map(in_order).collect();
            if items.iter().any(|item| item.get("key").is_some()) {
                items.sort_by_cached_key(|item| item["key"].as_str().unwrap_or_default().to_owned());
            }
            Value::Array(items)
        }
        other => other,
    }
}
