//! The configuration as a whole: sections of components, and the service that wires them.
//!
//! Every declared component is read and checked, used or not, and all problems are reported at once. What is returned
//! can be built: ids exist, signals fit, connectors are used on both sides, there is no cycle.

use regex::Regex;

use super::node::{Entry, Node};
use super::pipelines::{self, Pipeline};
use super::secrets::Secrets;
use super::section::{Findings, Section};
use super::service::{self, Reference};
use super::{addresses, files};
use crate::collector::component::{Connector, Exporter, Extension, Factory, Processor, Receiver, Signals};
use crate::collector::connectors::CONNECTORS;
use crate::collector::exporters::EXPORTERS;
use crate::collector::extensions::EXTENSIONS;
use crate::collector::own::Telemetry;
use crate::collector::processors::PROCESSORS;
use crate::collector::receivers::RECEIVERS;
use crate::collector::storage::Credential;
use crate::diag::{Problem, Problems};
use crate::otlp::Signal;

/// A declared component: its id, and what its factory made of its section.
pub struct Declared<C: ?Sized + 'static> {
    /// `type` or `type/name`, as pipelines refer to it.
    pub id: String,
    /// The line of its key.
    pub line: u32,
    /// The signals of its kind.
    pub signals: Signals,
    /// The checked component; `None` if its section had problems.
    pub component: Option<Box<C>>,
}

/// All declared components, in the order of the file.
#[derive(Default)]
pub struct Components {
    /// By id: where data comes in.
    pub receivers: Vec<Declared<dyn Receiver>>,
    /// By id: what happens on the way.
    pub processors: Vec<Declared<dyn Processor>>,
    /// By id: where data goes out.
    pub exporters: Vec<Declared<dyn Exporter>>,
    /// By id: from pipelines to pipelines.
    pub connectors: Vec<Declared<dyn Connector>>,
    /// By id: beside the data.
    pub extensions: Vec<Declared<dyn Extension>>,
}

/// A declared component that could be read.
type Used<'a, C> = (&'a Declared<C>, &'a C);

impl Components {
    /// The receivers that pipelines name.
    pub(super) fn receivers_in<'a>(
        &'a self,
        pipelines: &'a [Pipeline],
    ) -> impl Iterator<Item = Used<'a, dyn Receiver>> {
        used(&self.receivers, |id| pipelines.iter().any(|pipeline| pipeline.receivers.contains(id)))
    }

    /// The exporters that pipelines name.
    pub(super) fn exporters_in<'a>(
        &'a self,
        pipelines: &'a [Pipeline],
    ) -> impl Iterator<Item = Used<'a, dyn Exporter>> {
        used(&self.exporters, |id| pipelines.iter().any(|pipeline| pipeline.exporters.contains(id)))
    }

    /// The extensions of these ids.
    pub(super) fn extensions_of<'a>(&'a self, ids: &'a [String]) -> impl Iterator<Item = Used<'a, dyn Extension>> {
        used(&self.extensions, |id| ids.contains(id))
    }
}

fn used<'a, C: ?Sized>(
    declared: &'a [Declared<C>],
    is_used: impl Fn(&String) -> bool + 'a,
) -> impl Iterator<Item = Used<'a, C>> {
    let used = declared.iter().filter(move |declared| is_used(&declared.id));
    used.filter_map(|declared| Some((declared, declared.component.as_deref()?)))
}

/// A checked configuration.
pub struct Config {
    /// The declared components; those that no pipeline names are not built.
    pub components: Components,
    /// The ids of the extensions to start, in order.
    pub extensions: Vec<String>,
    /// The pipelines in an order in which each stands before those that its connectors feed.
    pub pipelines: Vec<Pipeline>,
    /// What the collector says about itself.
    pub telemetry: Telemetry,
    /// What headers refer to; see [`Credentials`](crate::collector::storage::Credentials).
    pub credentials: Vec<Credential>,
    /// What the author should know although the configuration runs.
    pub warnings: Problems,
    /// What no text may show.
    pub secrets: Secrets,
}

impl Config {
    /// Checks an expanded configuration.
    pub fn from_node(root: &Node, credentials: Vec<Credential>, findings: Findings) -> Result<Self, Problems> {
        let mut components = Components::default();
        let mut service = service::Service::default();
        Section::read(&findings, root, "", 1, |section| {
            components.receivers = declared(section, "receivers", "receiver", RECEIVERS, &findings);
            components.processors = declared(section, "processors", "processor", PROCESSORS, &findings);
            components.exporters = declared(section, "exporters", "exporter", EXPORTERS, &findings);
            components.connectors = declared(section, "connectors", "connector", CONNECTORS, &findings);
            components.extensions = declared(section, "extensions", "extension", EXTENSIONS, &findings);
            service = section.section("service", service::read).unwrap_or_else(|| {
                section.problem_here(Problem::new("there is no `service` with at least one pipeline"));
                service::Service::default()
            });
        });
        both_sides(&components, &findings);
        let extensions = extensions(&service.extensions, &components, &findings);
        let pipelines = pipelines::check(service.pipelines, &components, &findings);
        addresses::check(root, &components, &extensions, &pipelines, &service.telemetry, &findings);
        files::check(root, &components, &pipelines, &findings);
        storages(root, &components, &extensions, &pipelines, &findings);
        report(&service.telemetry.report, &pipelines, &findings);
        let problems = findings.problems.into_inner();
        if problems.any_error() {
            return Err(problems);
        }
        Ok(Self {
            components,
            extensions,
            pipelines,
            telemetry: service.telemetry,
            credentials,
            warnings: problems,
            secrets: findings.secrets.into_inner(),
        })
    }
}

/// Reads one section of components, each with the factory of its type.
pub(in crate::collector) fn declared<C: ?Sized>(
    top: &mut Section<'_>,
    key: &'static str,
    word: &str,
    factories: &'static [Factory<C>],
    findings: &Findings,
) -> Vec<Declared<C>> {
    let Some(node) = top.node(key) else { return Vec::new() };
    let Some(entries) = node.entries() else {
        top.problem(key, Problem::new(format!("expected a map, found {}", node.kind())));
        return Vec::new();
    };
    let one = |entry: &Entry| {
        let path = format!("{key}.{}", entry.key);
        let kind = match check_id(&entry.key) {
            Ok(kind) => kind,
            Err(why) => {
                findings.push(entry.line, &path, Problem::new(format!("`{}` is no id: {why}", entry.key)));
                return None;
            }
        };
        let Some(factory) = factories.iter().find(|factory| factory.names.contains(&kind)) else {
            let known = factories.iter().filter_map(|factory| factory.names.first().copied());
            let problem = Problem::new(format!("unknown {word} type `{kind}`")).suggest(kind, known);
            findings.push(entry.line, &path, problem);
            return None;
        };
        let component = Section::read(findings, &entry.node, &path, entry.line, factory.configure).flatten();
        Some(Declared { id: entry.key.clone(), line: entry.line, signals: factory.signals, component })
    };
    // An id that cannot be built still exists, so that pipelines that name it cause no second problem.
    let broken = |entry: &Entry| Declared {
        id: entry.key.clone(),
        line: entry.line,
        signals: Signals::Each(crate::collector::component::EVERY_SIGNAL),
        component: None,
    };
    entries.iter().map(|entry| one(entry).unwrap_or_else(|| broken(entry))).collect()
}

/// The type of an id, if the id is well formed.
pub(super) fn check_id(id: &str) -> Result<&str, &'static str> {
    let (kind, name) = match id.split_once('/') {
        Some((kind, name)) => (kind, Some(name)),
        None => (id, None),
    };
    if !kind.starts_with(|c: char| c.is_ascii_alphabetic())
        || kind.len() > 63
        || !kind.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    {
        return Err("the type begins with a letter and has letters, digits and `_`");
    }
    match name {
        Some("") => Err("the part after `/` is empty"),
        Some(name) if name.chars().any(|c| c.is_whitespace() || c.is_control()) => Err("the name has blanks"),
        Some(name) if has_symbols(name) => Err("the name has symbols, such as `$`, `+`, `=`, `<`, `|` or `~`"),
        _ => Ok(kind),
    }
}

/// Characters of Unicode's categories Z, C and S, which the reference takes in no name.
fn has_symbols(name: &str) -> bool {
    let ascii = |c: char| "$+<=>^`|~".contains(c);
    name.contains(ascii) || !name.is_ascii() && Regex::new(r"[\pZ\pC\pS]").is_ok_and(|symbol| symbol.is_match(name))
}

/// An id that is a connector and an exporter or receiver at once could mean both.
fn both_sides(components: &Components, findings: &Findings) {
    for connector in &components.connectors {
        let exporter = components.exporters.iter().any(|other| other.id == connector.id);
        let receiver = components.receivers.iter().any(|other| other.id == connector.id);
        if exporter || receiver {
            let other = if exporter { "an exporter" } else { "a receiver" };
            let message = format!("`{}` is ambiguous: it is a connector and {other}", connector.id);
            findings.push(connector.line, &format!("connectors.{}", connector.id), Problem::new(message));
        }
    }
}

/// The report is written when nothing can be sent any more, so it goes to files (or the log).
fn report(references: &[Reference], pipelines: &[Pipeline], findings: &Findings) {
    for Reference { id, line } in references {
        let kind = id.split('/').next().unwrap_or_default();
        let takes_metrics = |pipeline: &Pipeline| pipeline.signal == Signal::Metrics && pipeline.exporters.contains(id);
        let problem = if !["file", "debug"].contains(&kind) {
            Problem::new(format!("`{id}` cannot write the report")).hint("name exporters of the type `file` or `debug`")
        } else if pipelines.iter().any(takes_metrics) {
            continue;
        } else {
            Problem::new(format!("`{id}` is no exporter of a pipeline of metrics"))
        };
        findings.push(*line, "service.telemetry.metrics.report", problem);
    }
}

/// An exporter in use that stores what it cannot send needs its extension.
fn storages(root: &Node, components: &Components, started: &[String], pipelines: &[Pipeline], findings: &Findings) {
    for (Declared { id, .. }, exporter) in components.exporters_in(pipelines) {
        let missing = |storage: &&str| !started.iter().any(|extension| extension == storage);
        let Some(storage) = exporter.storage().filter(missing) else { continue };
        let problem = Problem::new(format!("the extension `{storage}` is not in `service.extensions`"));
        let problem = problem.suggest(storage, components.extensions.iter().map(|extension| extension.id.as_str()));
        let keys = ["exporters", id, "sending_queue", "storage"];
        findings.push(root.line_at(&keys), &keys.join("."), problem);
    }
}

fn extensions(references: &[Reference], components: &Components, findings: &Findings) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for reference in references {
        if components.extensions.iter().any(|extension| extension.id == reference.id) {
            if !ids.contains(&reference.id) {
                ids.push(reference.id.clone());
            }
            continue;
        }
        let problem = Problem::new(format!("the extension `{}` is not declared", reference.id));
        let known = components.extensions.iter().map(|extension| extension.id.as_str());
        findings.push(reference.line, "service.extensions", problem.suggest(&reference.id, known));
    }
    ids
}

#[cfg(test)]
mod tests {
    use crate::collector::fuzzing::load_config;

    #[test]
    fn exporters_have_what_their_pipelines_and_their_stores_need() {
        let problems = |storage: &str, started: &str, used: &str| {
            let text = format!(
                "receivers: {{otlp: {{protocols: {{http: }}}}}}\nextensions: {{file_storage/q: {{directory: /tmp}}}}\n\
                 exporters:\n  nop:\n  otlp_http: {{endpoint: \"http://localhost:1\", sending_queue: {{storage: {storage}}}}}\n\
                 service: {{extensions: [{started}], pipelines: {{traces: {{receivers: [otlp], exporters: [{used}]}}}}}}\n"
            );
            load_config(&text, &|_| None).err().map(|problems| problems.to_string()).unwrap_or_default()
        };
        assert_eq!(problems("file_storage/q", "file_storage/q", "otlp_http"), "");
        assert_eq!(problems("nope", "", "nop"), "", "unused");
        let only = |used: &str| {
            let text = format!(
                "receivers: {{otlp: {{protocols: {{http: }}}}}}\nexporters:\n  otlp_http:\n    metrics_endpoint: \"http://localhost:1\"\n\
                 service:\n  pipelines: {{{used}: {{receivers: [otlp], exporters: [otlp_http]}}}}\n"
            );
            load_config(&text, &|_| None).err().map(|problems| problems.to_string()).unwrap_or_default()
        };
        assert_eq!(only("metrics"), "");
        assert!(only("traces").contains("no endpoint for traces"), "{}", only("traces"));
        for (storage, started) in [("file_storage/q", ""), ("file_storage/p", "file_storage/q")] {
            let text = problems(storage, started, "otlp_http");
            assert!(text.contains("is not in `service.extensions`") && text.contains(":5"), "{text}");
        }
    }
}
