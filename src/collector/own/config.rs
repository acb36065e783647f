//! What `service.telemetry` says.

use std::time::Duration;

use super::instruments::Detail;
use super::logs::{self, LogSettings};
use super::page::{Constant, Style};
use super::pull::Pull;
use super::push::Push;
use super::readers::Reader;
use crate::collector::config::node::{Node, Value};
use crate::collector::config::section::Section;
use crate::collector::config::service::{Reference, references};
use crate::collector::exporters::read_own_exporter;
use crate::collector::net::host;
use crate::diag::Problem;
use crate::otlp::AnyValue;

/// The whole section.
#[derive(Default)]
pub struct Telemetry {
    /// The log.
    pub logs: LogSettings,
    /// Attributes; `None` takes a default away.
    pub resource: Vec<(String, Option<AnyValue>)>,
    /// How much is told.
    pub detail: Detail,
    /// Who is told.
    pub readers: Vec<Reader>,
    /// Exporters that write the report at the end.
    pub report: Vec<Reference>,
}

/// Reads it.
pub fn read(section: &mut Section<'_>) -> Telemetry {
    let logs = section.section("logs", logs::read).unwrap_or_default();
    let (detail, readers, report) = section.section("metrics", metrics).unwrap_or_default();
    let traces = section.section("traces", |traces| {
        traces.has("propagators");
        let processors =
            traces.node("processors").is_some_and(|node| !matches!(&node.value, Value::List(l) if l.is_empty()));
        traces.text("level").is_none_or(|level| !level.eq_ignore_ascii_case("none")) && processors
    });
    if traces == Some(true) {
        let problem = Problem::warning("`traces` has no effect: this collector records no traces of its own");
        section.problem("traces", problem);
    }
    let resource = section.section("resource", resource).unwrap_or_default();
    let readers = if detail == Detail::None { Vec::new() } else { readers };
    Telemetry { logs, resource, detail, readers, report }
}

fn metrics(section: &mut Section<'_>) -> (Detail, Vec<Reader>, Vec<Reference>) {
    section.unsupported(&["views"]);
    let detail = section.text("level").and_then(|text| match text.to_ascii_lowercase().as_str() {
        "none" => Some(Detail::None),
        "basic" => Some(Detail::Basic),
        "normal" | "" => Some(Detail::Normal),
        "detailed" => Some(Detail::Detailed),
        _ => {
            let problem = Problem::new(format!("`{text}` is not a value of `level`"));
            section.problem("level", problem.suggest(&text, ["none", "basic", "normal", "detailed"]));
            None
        }
    });
    let detail = detail.unwrap_or_default();
    let readers = section.sections("readers", reader);
    if detail != Detail::None && readers.as_ref().is_some_and(Vec::is_empty) {
        let problem = Problem::new("`readers` is empty, and `level` is not `none`");
        section.problem("readers", problem.hint("leave `readers` out: this collector has none by itself"));
    }
    let report = references(section, "report");
    (detail, readers.unwrap_or_default().into_iter().flatten().collect(), report)
}

fn reader(section: &mut Section<'_>) -> Option<Reader> {
    section.unsupported(&["producers"]);
    let (is_pull, is_periodic) = (section.has("pull"), section.has("periodic"));
    if is_pull == is_periodic {
        section.problem_here(Problem::new("a reader is one of `pull` and `periodic`"));
    }
    let pulled = if is_pull { section.section("pull", pull).flatten() } else { None };
    let pushed = if is_periodic { section.section("periodic", periodic).flatten() } else { None };
    pulled.map(Reader::Pull).or(pushed.map(Reader::Push))
}

fn pull(section: &mut Section<'_>) -> Option<Pull> {
    let exporter = section.section("exporter", |exporter| {
        let pull = exporter.section("prometheus", prometheus);
        if pull.is_none() {
            exporter.missing("prometheus");
        }
        pull.flatten()
    });
    if exporter.is_none() {
        section.missing("exporter");
    }
    exporter.flatten()
}

fn prometheus(section: &mut Section<'_>) -> Option<Pull> {
    let host = section.required_text("host");
    let port = section.integer("port", 0);
    if !section.has("port") {
        section.missing("port");
    }
    if port.is_some_and(|port| port > 65_535) {
        section.problem("port", Problem::new("`port` is not between 0 and 65535"));
    }
    let without = ["without_type_suffix", "without_units"].map(|key| section.boolean(key).unwrap_or(true));
    let scope = !section.boolean("without_scope_info").unwrap_or(true);
    let constant = section.section("with_resource_constant_labels", |labels| Constant {
        included: labels.texts("included").unwrap_or_default(),
        excluded: labels.texts("excluded").unwrap_or_default(),
    });
    // As in the reference, both must be said to leave them out.
    let style = Style { suffixes: without != [true, true], scope, constant };
    let line = section.node("port").map_or(0, |node| node.line);
    let (host, port) = (host?, port?);
    let bare = host::bare(&host);
    let host = if bare.contains(':') { format!("[{bare}]") } else { bare.to_owned() };
    Some(Pull { endpoint: format!("{host}:{port}"), line, style })
}

fn periodic(section: &mut Section<'_>) -> Option<Push> {
    let mut milliseconds = |key, default| {
        let given = section.integer(key, 1).and_then(|number| u64::try_from(number).ok());
        Duration::from_millis(given.unwrap_or(default))
    };
    let (interval, timeout) = (milliseconds("interval", 60_000), milliseconds("timeout", 30_000));
    let exporter = section.section("exporter", |exporter| {
        exporter.unsupported(&["console"]);
        let otlp = exporter.section("otlp", read_own_exporter);
        if otlp.is_none() {
            exporter.missing("otlp");
        }
        otlp.flatten()
    });
    if exporter.is_none() {
        section.missing("exporter");
    }
    exporter.flatten().map(|exporter| Push { interval, timeout, exporter })
}

/// Attributes as a list of `{name, value}` under `attributes`, or as they are.
fn resource(section: &mut Section<'_>) -> Vec<(String, Option<AnyValue>)> {
    section.unsupported(&["attributes_list", "detectors", "detection/development"]);
    section.text("schema_url");
    let mut listed = Vec::new();
    let read = section.sections("attributes", |attribute| {
        attribute.text("type");
        let name = attribute.required_text("name");
        let value = attribute.node("value").and_then(any_value);
        if value.is_none() {
            attribute.problem("value", Problem::new("expected a scalar or a list of scalars at `value`"));
        }
        if let (Some(name), Some(value)) = (name, value) {
            listed.push((name, Some(value)));
        }
    });
    let mut plain = Vec::new();
    for entry in section.rest() {
        match (&entry.node.value, entry.node.as_text()) {
            (_, Some(text)) => plain.push((entry.key.clone(), Some(AnyValue::from(text)))),
            (Value::Null, None) => plain.push((entry.key.clone(), None)),
            (_, None) => {
                let problem = Problem::new(format!("expected text, found {}", entry.node.kind()));
                section.problem(&entry.key, problem.hint("write the value in quotes"));
            }
        }
    }
    if read.is_some() && !plain.is_empty() {
        section.problem("attributes", Problem::new("`attributes` does not go together with attributes beside it"));
    }
    listed.extend(plain);
    listed
}

fn any_value(node: &Node) -> Option<AnyValue> {
    Some(match &node.value {
        Value::Text(text) => AnyValue::from(text.as_str()),
        Value::Boolean(value) => AnyValue::from(*value),
        Value::Integer(value) => AnyValue::from(*value),
        Value::Double(value) => AnyValue::from(*value),
        Value::List(items) => AnyValue::Array(items.iter().map(any_value).collect::<Option<_>>()?),
        Value::Null | Value::Untakable(_) | Value::Map(_) => return None,
    })
}
