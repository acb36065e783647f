//! What `include` and `exclude` are told.

use super::super::actions::any_value;
use super::properties::{Attributes, Library, MatchType, Matching, Properties, Texts};
use crate::collector::config::node::Value;
use crate::collector::config::section::Section;
use crate::diag::Problem;
use crate::otlp::{AnyValue, SPAN_KINDS, Signal};

/// The properties, with what is wrong for a signal.
#[derive(Clone, Debug, Default)]
pub(in crate::collector::processors) struct Forms {
    matching: Matching,
    /// By signal: why it cannot be used there.
    refusals: [Option<String>; 3],
}

impl Forms {
    /// What is meant, if the keys that were used are of this signal.
    pub fn of(&self, signal: Signal) -> Result<Matching, Problem> {
        match &self.refusals[signal as usize] {
            Some(why) => Err(Problem::new(why.clone())),
            None => Ok(self.matching.clone()),
        }
    }
}

/// Keys that are not for spans, for metrics, for log records; and one of which must be there.
const NOT_FOR: [&[&str]; 3] = [
    &["log_bodies", "log_severity_texts", "log_severity_number", "metric_names"],
    &[
        "log_bodies",
        "log_severity_texts",
        "log_severity_number",
        "span_names",
        "span_kinds",
        "services",
        "attributes",
        "libraries",
    ],
    &["span_names", "services", "span_kinds", "metric_names"],
];
const ONE_OF: [&[&str]; 3] = [
    &["services", "span_names", "attributes", "libraries", "resources", "span_kinds"],
    &["metric_names", "resources"],
    &["attributes", "libraries", "resources", "log_bodies", "log_severity_texts", "log_severity_number"],
];

/// Reads `include` and `exclude` of a section.
pub(in crate::collector::processors) fn read(section: &mut Section<'_>) -> Forms {
    let mut forms = Forms::default();
    for (key, is_include) in [("include", true), ("exclude", false)] {
        // Null is the same as no key here.
        if section.node(key).is_none_or(|node| node.value == Value::Null) {
            continue;
        }
        let Some((properties, given)) = section.section(key, properties) else { continue };
        for signal in Signal::ALL {
            let place = signal as usize;
            let wrong = NOT_FOR[place].iter().find(|wrong| given.contains(wrong));
            let refusal = match wrong {
                Some(wrong) => Some(format!("`{key}`: `{wrong}` is not for {}", signal.name())),
                None if ONE_OF[place].iter().any(|one| given.contains(one)) => None,
                None => {
                    let known = ONE_OF[place].iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
                    Some(format!("`{key}` for {} needs one of {known}", signal.name()))
                }
            };
            forms.refusals[place] = forms.refusals[place].take().or(refusal);
        }
        *(if is_include { &mut forms.matching.include } else { &mut forms.matching.exclude }) = Some(properties);
    }
    forms
}

/// `match_type`, if it is there and right.
pub(in crate::collector::processors) fn match_type(section: &mut Section<'_>) -> Option<MatchType> {
    // How results are cached makes no difference.
    section.section("regexp", |regexp| {
        regexp.boolean("cacheenabled");
        regexp.integer("cachemaxnumentries", 0);
    });
    let word = section.text("match_type").filter(|word| !word.is_empty())?;
    match word.as_str() {
        "strict" => Some(MatchType::Strict),
        "regexp" => Some(MatchType::Regexp),
        _ => {
            let problem = Problem::new(format!("`{word}` is not a value of `match_type`"));
            section.problem("match_type", problem.suggest(&word, ["strict", "regexp"]));
            None
        }
    }
}

/// The properties, and the keys that have something in them.
fn properties(section: &mut Section<'_>) -> (Properties, Vec<&'static str>) {
    let match_type = match_type(section);
    let mut given = Vec::new();
    let mut texts = |section: &mut Section<'_>, key: &'static str| {
        let texts = section.texts(key).filter(|texts| !texts.is_empty())?;
        given.push(key);
        texts_of(section, key, &texts, match_type)
    };
    let mut properties = Properties {
        services: texts(section, "services"),
        span_names: texts(section, "span_names"),
        metric_names: texts(section, "metric_names"),
        bodies: texts(section, "log_bodies"),
        severity_texts: texts(section, "log_severity_texts"),
        span_kinds: texts(section, "span_kinds"),
        ..Properties::default()
    };
    if let Some(Texts::Equal(kinds)) = &properties.span_kinds
        && let Some(wrong) = kinds.iter().find(|kind| !SPAN_KINDS[1..].contains(&kind.as_str()))
    {
        let problem = Problem::new(format!("`{wrong}` is no kind of a span"));
        section.problem("span_kinds", problem.suggest(wrong, SPAN_KINDS[1..].iter().copied()));
    }
    if section.node("log_severity_number").is_some_and(|node| node.value != Value::Null) {
        given.push("log_severity_number");
        properties.severity = section.section("log_severity_number", |severity| {
            let least = severity.integer("min", 0).and_then(|least| i32::try_from(least).ok()).unwrap_or(0);
            (least, severity.boolean("match_undefined").unwrap_or(false))
        });
    }
    properties.attributes = attributes(section, "attributes", match_type);
    properties.resources = attributes(section, "resources", match_type);
    properties.libraries = section
        .sections("libraries", |library| {
            let name = library.text("name").unwrap_or_default();
            let version = library.text("version");
            let name = texts_of(library, "name", &[name], match_type)?;
            let version = match version {
                Some(version) => Some(texts_of(library, "version", &[version], match_type)?),
                None => None,
            };
            Some(Library { name, version })
        })
        .unwrap_or_default()
        .into_iter()
        .flatten()
        .collect();
    for (key, empty) in [
        ("attributes", properties.attributes.is_empty()),
        ("resources", properties.resources.is_empty()),
        ("libraries", properties.libraries.is_empty()),
    ] {
        if !empty {
            given.push(key);
        }
    }
    (properties, given)
}

/// Texts, compiled; None if that is not possible, which is recorded.
pub(in crate::collector::processors) fn texts_of(
    section: &Section<'_>,
    key: &str,
    texts: &[String],
    match_type: Option<MatchType>,
) -> Option<Texts> {
    let Some(match_type) = match_type else {
        let problem = Problem::new(format!("`{key}` needs a `match_type`"));
        section.problem(key, problem.hint("add `match_type: strict` or `match_type: regexp`"));
        return None;
    };
    match Texts::new(texts, match_type) {
        Ok(texts) => Some(texts),
        Err(why) => {
            section.problem(key, Problem::new(why));
            None
        }
    }
}

/// A list of attributes with `key` and perhaps `value`.
pub(in crate::collector::processors) fn attributes(
    section: &mut Section<'_>,
    key: &'static str,
    match_type: Option<MatchType>,
) -> Attributes {
    let mut attributes = Attributes::default();
    section.sections(key, |attribute| {
        let key = attribute.text("key").unwrap_or_default();
        let value = attribute.node("value").filter(|node| node.value != Value::Null);
        if key.is_empty() {
            attribute.missing("key");
            return;
        }
        let added = value.map(|node| any_value(node, true)).transpose();
        let added: Result<(), String> =
            added.and_then(|value: Option<AnyValue>| attributes.add(&key, value, match_type));
        if let Err(why) = added {
            attribute.problem("value", Problem::new(why));
        }
    });
    attributes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::testing::{problems_of, read_section};

    #[test]
    fn keys_are_checked_for_each_signal() {
        let forms = read_section(
            "include: {match_type: strict, span_names: [a], attributes: [{key: x, value: 1}]}\nexclude:\n",
            read,
        );
        assert!(
            forms.of(Signal::Traces).is_ok_and(|matching| matching.include.is_some() && matching.exclude.is_none())
        );
        assert!(forms.of(Signal::Metrics).expect_err("spans").message.contains("`span_names` is not for metrics"));
        assert!(forms.of(Signal::Logs).is_err());
        let empty = read_section("exclude: {match_type: regexp}\n", read);
        assert!(empty.of(Signal::Logs).expect_err("empty").message.contains("needs one of"));
        let metrics =
            read_section("include: {match_type: regexp, metric_names: ['^a'], regexp: {cacheenabled: true}}", read);
        assert!(metrics.of(Signal::Metrics).is_ok());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (yaml, word) in [
            ("include: {span_names: [a]}", "needs a `match_type`"),
            ("include: {match_type: glob, span_names: [a]}", "glob"),
            ("include: {match_type: regexp, span_names: ['(']}", "no regular expression"),
            ("include: {match_type: strict, span_kinds: [SERVER]}", "no kind of a span"),
            ("include: {match_type: strict, attributes: [{value: 1}]}", "`key` is missing"),
            ("include: {match_type: regexp, attributes: [{key: a, value: 1}]}", "must be text"),
            ("include: {match_type: strict, nope: [a]}", "nope"),
        ] {
            let text = problems_of(yaml, |section| drop(read(section)));
            assert!(text.contains(word), "{yaml}: {text}");
        }
    }
}
