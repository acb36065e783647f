//! What the processor is told: conditions by context, conditions that name their contexts, or lists of names.

use std::sync::Arc;

use super::super::matching::{self, Matching, Properties};
use super::super::statements::{Said, Texts, context, error_mode, flat_and_groups, inner_list, list};
use super::processor::{Pass, Settings, Step, Test};
use crate::collector::component::{EVERY_SIGNAL, Factory, Processor, Signals};
use crate::collector::config::node::{Node, Value};
use crate::collector::config::section::Section;
use crate::collector::ottl::{Conditions, ErrorMode, Level, misread};
use crate::diag::Problem;
use crate::otlp::Signal;

/// The kind.
pub const FACTORY: Factory<dyn Processor> =
    Factory { names: &["filter"], signals: Signals::Each(EVERY_SIGNAL), configure: read };

/// From the outermost to the innermost.
const ORDER: [Level; 7] =
    [Level::Resource, Level::Scope, Level::Span, Level::SpanEvent, Level::Metric, Level::DataPoint, Level::Log];

#[expect(clippy::unnecessary_wraps, reason = "the shape of every `configure`")]
fn read(section: &mut Section<'_>) -> Option<Box<dyn Processor>> {
    profiles(section);
    let mode = error_mode(section).unwrap_or_default();
    let spans = section.section("spans", matching::read).unwrap_or_default();
    let traces = Block::read(
        section,
        "traces",
        &[("resource", Level::Resource), ("span", Level::Span), ("spanevent", Level::SpanEvent)],
        mode,
    );
    let metrics = Block::read(
        section,
        "metrics",
        &[("resource", Level::Resource), ("metric", Level::Metric), ("datapoint", Level::DataPoint)],
        mode,
    );
    let logs = Block::read(section, "logs", &[("resource", Level::Resource), ("log_record", Level::Log)], mode);
    let mut refusals = [None, None, None];
    let mut passes = [Vec::new(), Vec::new(), Vec::new()];
    let spans_given = spans.of(Signal::Traces).map_or(true, |matching| !matching.is_empty());
    for (signal, block, conditions) in [
        (Signal::Traces, traces, "trace_conditions"),
        (Signal::Metrics, metrics, "metric_conditions"),
        (Signal::Logs, logs, "log_conditions"),
    ] {
        let inferred = inferred(section, conditions, signal, mode);
        let place = signal as usize;
        let is_inferred = section.node(conditions).is_some_and(|node| node.value != Value::Null);
        let lists = !block.lists.is_empty() || (signal == Signal::Traces && spans_given);
        if is_inferred && (block.has_conditions || (signal != Signal::Traces && lists)) {
            let other = signal.name();
            section.problem(conditions, Problem::new(format!("`{conditions}` and `{other}` cannot be given together")));
        } else if block.has_conditions && lists {
            let message =
                format!("conditions on {} and `include` or `exclude` cannot be given together", signal.name());
            section.problem(signal.name(), Problem::new(message));
        }
        passes[place] = if inferred.is_empty() {
            let mut pass = block.conditions;
            pass.extend(block.lists);
            if signal == Signal::Traces && pass.is_empty() && !block.has_conditions {
                match spans.of(Signal::Traces) {
                    Ok(matching) if !matching.is_empty() => {
                        pass.push(Step { level: Level::Span, test: Test::Unless(Box::new(matching)) });
                    }
                    Ok(_) => {}
                    Err(problem) => refusals[place] = Some(format!("`spans`: {}", problem.message)),
                }
            }
            if pass.is_empty() { Vec::new() } else { vec![pass] }
        } else {
            inferred
        };
    }
    let passes = passes.map(Arc::<[Pass]>::from);
    Some(Box::new(Settings { passes, refusals }))
}

/// Conditions on profiles may be given as long as they are empty.
fn profiles(section: &mut Section<'_>) {
    let message = "profiles are not supported by this collector";
    if list(section, "profile_conditions").is_some_and(|items| !items.is_empty()) {
        section.problem("profile_conditions", Problem::new(message));
    }
    if section.node("profiles").and_then(Node::entries).is_some_and(|entries| !entries.is_empty()) {
        section.problem("profiles", Problem::new(message));
    }
}

/// `traces`, `metrics` or `logs`.
#[derive(Default)]
struct Block {
    /// Whether there are lists of conditions, be they empty.
    has_conditions: bool,
    conditions: Pass,
    /// What `include` and `exclude` say.
    lists: Pass,
}

impl Block {
    fn read(section: &mut Section<'_>, key: &'static str, levels: &[(&'static str, Level)], mode: ErrorMode) -> Self {
        let block = section.section(key, |block| {
            let mut read = Self::default();
            for (name, level) in levels {
                let Some(items) = inner_list(block, name) else { continue };
                read.has_conditions = true;
                read.conditions.extend(compile(block, name, *level, &items, mode));
            }
            match key {
                "metrics" => read.lists = metric_lists(block),
                "logs" => read.lists = log_lists(block),
                _ => {}
            }
            read
        });
        block.unwrap_or_default()
    }
}

/// Conditions of one context.
fn compile(section: &Section<'_>, key: &'static str, level: Level, items: &[Node], mode: ErrorMode) -> Option<Step> {
    let texts = Texts::read(section, key, items);
    let conditions = Conditions::compile(level, &texts.list, mode);
    let conditions = conditions.map_err(|wrong| wrong.iter().for_each(|wrong| texts.say(section, wrong))).ok()?;
    Some(Step { level, test: Test::Conditions(conditions) })
}

/// A list of conditions that name their contexts, or of groups.
fn inferred(section: &mut Section<'_>, key: &'static str, signal: Signal, mode: ErrorMode) -> Vec<Pass> {
    let Some(items) = list(section, key) else { return Vec::new() };
    if items.iter().any(|item| item.value == Value::Null) {
        section.problem(key, Problem::new("a condition is empty"));
        return Vec::new();
    }
    let mut passes = Vec::new();
    let (flat, groups) = flat_and_groups(section, key, items, "conditions");
    if !flat.is_empty() {
        passes.extend(infer(section, key, &flat, signal, mode));
    }
    for (index, item) in groups {
        passes.extend(section.item(key, index, item, |group| read_group(group, signal, mode)).flatten());
    }
    passes
}

fn read_group(group: &mut Section<'_>, signal: Signal, mode: ErrorMode) -> Option<Pass> {
    let mode = error_mode(group).unwrap_or(mode);
    let context = context(group, signal);
    let items = inner_list(group, "conditions").unwrap_or_default();
    match context {
        Said::Nothing => infer(group, "conditions", &items, signal, mode),
        Said::Context(level) | Said::Wrong(Some(level)) => {
            compile(group, "conditions", level, &items, mode).map(|step| vec![step])
        }
        Said::Wrong(None) => {
            let texts = Texts::read(group, "conditions", &items);
            for wrong in misread(&[], &texts.list) {
                texts.say(group, &wrong);
            }
            None
        }
    }
}

fn infer(section: &Section<'_>, key: &'static str, items: &[Node], signal: Signal, mode: ErrorMode) -> Option<Pass> {
    let texts = Texts::read(section, key, items);
    let by_level = Conditions::infer(signal, &texts.list, mode);
    let mut by_level = by_level.map_err(|wrong| wrong.iter().for_each(|wrong| texts.say(section, wrong))).ok()?;
    by_level.sort_by_key(|(level, _)| ORDER.iter().position(|known| known == level));
    let step = |(level, conditions)| Step { level, test: Test::Conditions(conditions) };
    Some(by_level.into_iter().map(step).collect())
}

/// `include` and `exclude` of metrics: resources and names are looked at one after the other.
fn metric_lists(block: &mut Section<'_>) -> Pass {
    block.section("regexp", |regexp| {
        regexp.boolean("cacheenabled");
        regexp.integer("cachemaxnumentries", 0);
    });
    let mut resources = Matching::default();
    let mut names = Matching::default();
    for (key, is_include) in [("include", true), ("exclude", false)] {
        if block.node(key).is_none_or(|node| node.value == Value::Null) {
            continue;
        }
        let read = block.section(key, |properties| {
            properties.unsupported(&["expressions"]);
            let match_type = matching::match_type(properties);
            let attributes = matching::attributes(properties, "resource_attributes", match_type);
            let metric_names = properties.texts("metric_names").filter(|names| !names.is_empty());
            (
                attributes,
                metric_names.and_then(|names| matching::texts_of(properties, "metric_names", &names, match_type)),
            )
        });
        let Some((attributes, metric_names)) = read else { continue };
        if !attributes.is_empty() {
            let found = Properties { resources: attributes, ..Properties::default() };
            *(if is_include { &mut resources.include } else { &mut resources.exclude }) = Some(found);
        }
        if metric_names.is_some() {
            let found = Properties { metric_names, ..Properties::default() };
            *(if is_include { &mut names.include } else { &mut names.exclude }) = Some(found);
        }
    }
    let steps = [(Level::Resource, resources), (Level::Metric, names)].into_iter();
    let steps = steps.filter(|(_, matching)| !matching.is_empty());
    steps.map(|(level, matching)| Step { level, test: Test::Unless(Box::new(matching)) }).collect()
}

const SEVERITIES: [&str; 6] = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];

/// `include` and `exclude` of log records.
fn log_lists(block: &mut Section<'_>) -> Pass {
    let mut matching = Matching::default();
    for (key, is_include) in [("include", true), ("exclude", false)] {
        if block.node(key).is_none_or(|node| node.value == Value::Null) {
            continue;
        }
        let read = block.section(key, |properties| {
            let match_type = matching::match_type(properties);
            let texts = |properties: &mut Section<'_>, key: &'static str| {
                let texts = properties.texts(key).filter(|texts| !texts.is_empty())?;
                matching::texts_of(properties, key, &texts, match_type)
            };
            let mut found = Properties {
                resources: matching::attributes(properties, "resource_attributes", match_type),
                attributes: matching::attributes(properties, "record_attributes", match_type),
                severity_texts: texts(properties, "severity_texts"),
                bodies: texts(properties, "bodies"),
                ..Properties::default()
            };
            if properties.node("severity_number").is_some_and(|node| node.value != Value::Null) {
                found.severity = properties.section("severity_number", severity);
            }
            found
        });
        let is_empty = |found: &Properties| {
            found.resources.is_empty()
                && found.attributes.is_empty()
                && found.severity_texts.is_none()
                && found.bodies.is_none()
                && found.severity.is_none()
        };
        *(if is_include { &mut matching.include } else { &mut matching.exclude }) =
            read.filter(|found| !is_empty(found));
    }
    if matching.is_empty() {
        Vec::new()
    } else {
        vec![Step { level: Level::Log, test: Test::Unless(Box::new(matching)) }]
    }
}

/// `INFO`, `warn2` or a number; and whether records without a severity fit.
fn severity(section: &mut Section<'_>) -> (i32, bool) {
    let unknown = section.boolean("match_undefined").unwrap_or(false);
    let Some(word) = section.text("min").filter(|word| !word.is_empty()) else { return (0, unknown) };
    let capitals = word.to_uppercase();
    let (name, step) = match capitals.as_bytes().last() {
        Some(digit @ b'2'..=b'4') => (&capitals[..capitals.len() - 1], i32::from(digit - b'0')),
        _ => (capitals.as_str(), 1),
    };
    let named = SEVERITIES.iter().position(|severity| *severity == name).and_then(|place| i32::try_from(place).ok());
    let numbered = capitals.parse().ok().filter(|number: &i32| (1..=24).contains(number) && !capitals.starts_with('0'));
    let least = named.map(|place| place * 4 + step).or(numbered);
    if least.is_none() {
        let problem = Problem::new(format!("`{word}` is no severity"));
        section.problem("min", problem.suggest(&capitals, SEVERITIES));
    }
    (least.unwrap_or(0), unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::testing::{problems_of, read_section};

    #[test]
    fn all_styles_are_read() {
        for yaml in [
            "{}",
            "traces: {span: ['name == \"a\"'], spanevent: [], resource: ['attributes[\"a\"] == 1']}",
            "metrics: {metric: ['HasAttrKeyOnDatapoint(\"a\")'], datapoint: ['metric.type == METRIC_DATA_TYPE_SUM']}",
            "{error_mode: silent, trace_conditions: ['span.name == \"a\"', 'resource.attributes[\"a\"] == 1']}",
            "log_conditions: [{context: log, conditions: ['severity_number < 9'], error_mode: propagate}]",
            "spans: {include: {match_type: strict, services: [a]}}",
            "metrics: {include: {match_type: regexp, metric_names: ['^a']}, exclude: {match_type: strict, resource_attributes: [{key: a}]}}",
            "logs: {include: {match_type: strict, severity_number: {min: warn2}, bodies: [a]}, exclude: {match_type: strict}}",
        ] {
            read_section(yaml, |section| assert!(read(section).is_some(), "{yaml}"));
        }
        let severity = |word: &str| read_section(&format!("{{min: {word}}}"), severity);
        assert_eq!((severity("info"), severity("FATAL4"), severity("\"9\"")), ((9, false), (24, false), (9, false)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (yaml, word) in [
            ("traces: {span: ['name =']}", "compares two values"),
            ("traces: {spans: []}", "spans"),
            ("error_mode: shrug", "shrug"),
            ("{trace_conditions: ['span.name == \"a\"'], traces: {span: ['true']}}", "together"),
            ("metrics: {metric: ['true'], include: {match_type: strict, metric_names: [a]}}", "together"),
            ("trace_conditions: ['name == \"a\"']", "begin it with one of: spanevent, span"),
            ("trace_conditions: ['span.name == \"a\"', {conditions: []}]", "one list"),
            ("trace_conditions: [{context: log, conditions: []}]", "`log` of traces"),
            ("metrics: {include: {match_type: expr, expressions: [a]}}", "expressions"),
            ("logs: {include: {match_type: strict, severity_number: {min: loud}}}", "loud"),
            ("profiles: {profile: []}", "not supported"),
        ] {
            let text = problems_of(yaml, |section| drop(read(section)));
            assert!(text.contains(word), "{yaml}: {text}");
        }
    }
}
