//! The `service` section: which components run, and what the collector says about itself.

use super::node::Value;
use super::section::Section;
use crate::collector::own::{self, Telemetry};
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
#[derive(Default)]
pub struct Service {
    /// The extensions to start.
    pub extensions: Vec<Reference>,
    /// The pipelines in the order of the file.
    pub pipelines: Vec<Draft>,
    /// What the collector says about itself.
    pub telemetry: Telemetry,
}

/// Reads it.
pub fn read(section: &mut Section<'_>) -> Service {
    let extensions = references(section, "extensions");
    let telemetry = section.section("telemetry", own::read).unwrap_or_default();
    let pipelines = pipelines(section);
    Service { extensions, pipelines, telemetry }
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

/// The ids of a list, each with its line.
pub(in crate::collector) fn references(section: &mut Section<'_>, key: &'static str) -> Vec<Reference> {
    // The getter checks the types; the nodes have the lines.
    let texts = section.texts(key).unwrap_or_default();
    let lines: Vec<u32> = match section.node(key).map(|node| &node.value) {
        Some(Value::List(items)) => items.iter().map(|item| item.line).collect(),
        Some(Value::Text(_)) => {
            section.problem(key, Problem::new("expected a list of ids, found text").hint("write `[a, b]`"));
            Vec::new()
        }
        _ => Vec::new(),
    };
    texts.into_iter().zip(lines).map(|(id, line)| Reference { id, line }).collect()
}
