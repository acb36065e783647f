//! The `service` section: which components run, and the collector's own log.

use super::log::Level;
use super::node::Value;
use super::section::Section;
use crate::diag::Problem;

/// An id in a list, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// `type` or `type/name`.
    pub id: String,
    /// Where it stands.
    pub line: u32,
}

/// A pipeline as it is written.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// `signal` or `signal/name`.
    pub id: String,
    /// The line of its key.
    pub line: u32,
    /// Receivers, and connectors that feed it.
    pub receivers: Vec<Reference>,
    /// In order.
    pub processors: Vec<Reference>,
    /// Exporters, and connectors that it feeds.
    pub exporters: Vec<Reference>,
}

/// What the section says.
pub struct Service {
    /// The extensions to start.
    pub extensions: Vec<Reference>,
    /// The pipelines in the order of the file.
    pub pipelines: Vec<Draft>,
    /// `telemetry.logs.level`.
    pub log_level: Level,
    /// `telemetry.resource`: the collector's own attributes.
    pub resource: Vec<(String, String)>,
}

impl Default for Service {
    fn default() -> Self {
        Self { extensions: Vec::new(), pipelines: Vec::new(), log_level: Level::Info, resource: Vec::new() }
    }
}

/// Reads it.
pub fn read(section: &mut Section<'_>) -> Service {
    let extensions = references(section, "extensions");
    let (log_level, resource) = section.section("telemetry", telemetry).unwrap_or_default();
    let pipelines = pipelines(section);
    Service { extensions, pipelines, log_level: log_level.unwrap_or(Level::Info), resource }
}

fn pipelines(section: &mut Section<'_>) -> Vec<Draft> {
    let entries = section.node("pipelines").map(|node| node.entries().ok_or_else(|| node.kind()));
    let entries = match entries {
        Some(Ok(entries)) if !entries.is_empty() => entries,
        Some(Err(kind)) => {
            section.problem("pipelines", Problem::new(format!("expected a map, found {kind}")));
            return Vec::new();
        }
        _ => {
            section.problem("pipelines", Problem::new("there is no pipeline"));
            return Vec::new();
        }
    };
    let mut drafts = Vec::new();
    for entry in entries {
        let draft = section.inner(entry, "pipelines", |inner| Draft {
            id: entry.key.clone(),
            line: entry.line,
            receivers: references(inner, "receivers"),
            processors: references(inner, "processors"),
            exporters: references(inner, "exporters"),
        });
        drafts.extend(draft);
    }
    drafts
}

fn references(section: &mut Section<'_>, key: &'static str) -> Vec<Reference> {
    // The getter checks the types; the nodes have the lines.
    let texts = section.texts(key).unwrap_or_default();
    let lines = match section.node(key).map(|node| (&node.value, node.line)) {
        Some((Value::List(items), _)) => items.iter().map(|item| item.line).collect(),
        Some((_, line)) => vec![line; texts.len()],
        None => Vec::new(),
    };
    texts.into_iter().zip(lines).map(|(id, line)| Reference { id, line }).collect()
}

/// The collector's own telemetry: it writes lines on stderr and opens no port for metrics, so what the reference has for
/// metrics and traces is accepted and has no effect.
fn telemetry(section: &mut Section<'_>) -> (Option<Level>, Vec<(String, String)>) {
    let level = section.section("logs", |logs| {
        logs.unsupported(&["output_paths", "error_output_paths", "initial_fields", "processors"]);
        for key in ["encoding", "development", "disable_caller", "disable_stacktrace", "sampling"] {
            logs.has(key);
        }
        logs.text("level").and_then(|text| {
            let level = match text.to_ascii_lowercase().as_str() {
                "debug" => Level::Debug,
                "info" => Level::Info,
                "warn" => Level::Warn,
                "error" | "dpanic" | "panic" | "fatal" => Level::Error,
                _ => {
                    let problem = Problem::new(format!("`{text}` is no level"));
                    logs.problem("level", problem.suggest(&text, ["debug", "info", "warn", "error"]));
                    return None;
                }
            };
            Some(level)
        })
    });
    section.section("metrics", |metrics| {
        metrics.word("level", &["none", "basic", "normal", "detailed"]);
        for key in ["readers", "views", "address"] {
            metrics.has(key);
        }
    });
    if section.has("traces") {
        let problem = Problem::warning("`traces` has no effect: this collector records no traces of its own");
        section.problem("traces", problem);
    }
    let resource = section.node("resource").and_then(|node| node.entries()).unwrap_or_default();
    let text = |entry: &super::node::Entry| Some((entry.key.clone(), entry.node.as_written()?.to_owned()));
    (level.flatten(), resource.iter().filter_map(text).collect())
}
