//! The contexts: what a statement runs once for, what it can see from there, and which context is meant where none is
//! named.

use super::syntax::{Named, Path};
use crate::otlp::{SEVERITY_NUMBERS, SPAN_KINDS, STATUS_CODES, Signal, TEMPORALITIES};

/// A part of the telemetry: a context that statements run in, and what paths lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Once for each resource.
    Resource,
    /// Once for each instrumentation scope of a resource.
    Scope,
    /// Once for each span.
    Span,
    /// Once for each event of a span.
    SpanEvent,
    /// Once for each metric.
    Metric,
    /// Once for each data point of a metric.
    DataPoint,
    /// Once for each log record.
    Log,
}

/// Whether paths must begin with the name of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// A path without one belongs to the context.
    Optional,
    /// As in flat lists.
    Required,
}

/// Where the inference looks first.
const PRIORITY: [Level; 7] =
    [Level::Log, Level::DataPoint, Level::Metric, Level::SpanEvent, Level::Span, Level::Scope, Level::Resource];

const TYPES: [&str; 6] = ["NONE", "GAUGE", "SUM", "HISTOGRAM", "EXPONENTIAL_HISTOGRAM", "SUMMARY"];
const FLAGS: [&str; 2] = ["NONE", "NO_RECORDED_VALUE"];

impl Level {
    /// As configurations and paths name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Resource => "resource",
            Self::Scope => "scope",
            Self::Span => "span",
            Self::SpanEvent => "spanevent",
            Self::Metric => "metric",
            Self::DataPoint => "datapoint",
            Self::Log => "log",
        }
    }

    /// The contexts of a signal.
    #[must_use]
    pub fn of(signal: Signal) -> &'static [Self] {
        match signal {
            Signal::Traces => &[Self::Resource, Self::Scope, Self::Span, Self::SpanEvent],
            Signal::Metrics => &[Self::Resource, Self::Scope, Self::Metric, Self::DataPoint],
            Signal::Logs => &[Self::Resource, Self::Scope, Self::Log],
        }
    }

    /// What statements in this context can see, itself first.
    pub(super) fn sees(self) -> &'static [Self] {
        match self {
            Self::Resource => &[Self::Resource],
            Self::Scope => &[Self::Scope, Self::Resource],
            Self::Span => &[Self::Span, Self::Scope, Self::Resource],
            Self::SpanEvent => &[Self::SpanEvent, Self::Span, Self::Scope, Self::Resource],
            Self::Metric => &[Self::Metric, Self::Scope, Self::Resource],
            Self::DataPoint => &[Self::DataPoint, Self::Metric, Self::Scope, Self::Resource],
            Self::Log => &[Self::Log, Self::Scope, Self::Resource],
        }
    }

    /// The part that a path's first name means, if it can be seen from here.
    pub(super) fn seen_as(self, name: &str) -> Option<Self> {
        // The former name of scopes is known everywhere but in their own context.
        let name = if name == "instrumentation_scope" && self != Self::Scope { "scope" } else { name };
        Self::named(name).filter(|level| self.sees().contains(level))
    }

    /// The number of an enumeration's name.
    pub(super) fn enumeration(self, word: &str) -> Option<i64> {
        let among =
            |names: &[&str]| names.iter().position(|name| *name == word).and_then(|place| i64::try_from(place).ok());
        let of = |prefix: &str, names: &[&str]| {
            let rest = word.strip_prefix(prefix)?;
            names.iter().position(|name| *name == rest).and_then(|place| i64::try_from(place).ok())
        };
        match self {
            Self::Resource | Self::Scope => None,
            Self::Span | Self::SpanEvent => among(SPAN_KINDS).or_else(|| among(STATUS_CODES)),
            Self::Metric | Self::DataPoint => among(TEMPORALITIES)
                .or_else(|| of("METRIC_DATA_TYPE_", &TYPES))
                .or_else(|| of("FLAG_", &FLAGS).filter(|_| self == Self::DataPoint)),
            Self::Log => among(SEVERITY_NUMBERS),
        }
    }

    /// The context of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        PRIORITY.into_iter().find(|level| level.name() == name)
    }

    /// The innermost of those that are named.
    fn first_named(names: &[&str]) -> Option<Self> {
        let is_named = |level: &Self| names.iter().any(|name| Self::named(name) == Some(*level));
        PRIORITY.into_iter().find(is_named)
    }
}

/// What some statements or conditions name, from which their context follows.
#[derive(Default)]
pub(super) struct Hints<'a> {
    /// The first names of paths that have several, with where they stand; of other paths the empty text.
    contexts: Vec<&'a str>,
    functions: Vec<&'a str>,
    words: Vec<&'a str>,
}

impl<'a> Hints<'a> {
    /// Takes up one name.
    pub fn add(&mut self, named: &Named<'a>) {
        match named {
            Named::Path(Path { names, .. }) => {
                let keyed = names.first().is_some_and(|(_, keys)| !keys.is_empty());
                let first = names.first().filter(|_| names.len() > 1 && !keyed);
                self.contexts.push(first.map_or("", |(name, _)| name));
            }
            Named::Function(call) => self.functions.push(&call.name),
            // A word with small letters is a function's name.
            Named::Word(word) if word.contains(|c: char| c.is_ascii_lowercase()) => {}
            Named::Word(word) => self.words.push(word),
        }
    }

    /// The context of all of them: the innermost one that a path names; or one further in, if that one lacks a function
    /// or enumeration. `has` tells whether a context has a function. None if no path names one of the signal, or no one
    /// context has all.
    pub fn infer(&self, signal: Signal, has: impl Fn(Level, &str) -> bool) -> Option<Level> {
        let candidates = Level::of(signal);
        let level = Level::first_named(&self.contexts)?;
        let lacks = |level: Level| {
            self.functions.iter().any(|name| !has(level, name))
                || self.words.iter().any(|word| level.enumeration(word).is_none())
        };
        if !candidates.contains(&level) {
            return None;
        }
        let further = PRIORITY.into_iter().filter(|other| candidates.contains(other) && *other != level);
        let mut further = further.filter(|other| other.sees().contains(&level));
        if lacks(level) { further.find(|other| !lacks(*other)) } else { Some(level) }
    }

    /// Where things are looked at whose context cannot be inferred, so that all that is wrong with them is found: the
    /// context that follows from what the signal has of them; else the one that they name; else the innermost one that has
    /// their functions.
    pub fn likely(&self, signal: Signal, has: impl Fn(Level, &str) -> bool + Copy) -> Level {
        let levels = Level::of(signal);
        let somewhere = |test: &dyn Fn(Level) -> bool| levels.iter().any(|level| test(*level));
        let context = |name: &&&str| Level::named(name).is_some_and(|level| levels.contains(&level));
        let known = Hints {
            contexts: self.contexts.iter().filter(context).copied().collect(),
            functions: self.functions.iter().filter(|name| somewhere(&|level| has(level, name))).copied().collect(),
            words: self
                .words
                .iter()
                .filter(|word| somewhere(&|level| level.enumeration(word).is_some()))
                .copied()
                .collect(),
        };
        let whole = |level: &Level| known.functions.iter().all(|name| has(*level, name));
        let inner = || levels.iter().rev().copied();
        let named = known.infer(signal, has).or_else(|| Level::first_named(&known.contexts));
        named.or_else(|| inner().find(whole)).or_else(|| inner().next()).unwrap_or(Level::Resource)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::ottl::parser;

    fn inferred(signal: Signal, text: &str) -> Option<Level> {
        let parsed = parser::statement(text).expect(text);
        let mut hints = Hints::default();
        parsed.each_name(&mut |named| hints.add(&named));
        hints.infer(signal, |level, name| name != "IsRootSpan" || level == Level::Span)
    }

    #[test]
    fn the_innermost_context_that_is_named() {
        let of = |text: &str| inferred(Signal::Traces, text);
        assert_eq!(of("set(span.name, resource.attributes[\"a\"])"), Some(Level::Span));
        assert_eq!(of("set(scope.name, \"x\") where spanevent.name == \"y\""), Some(Level::SpanEvent));
        assert_eq!(of("set(resource.attributes[span.name], 1)"), Some(Level::Span));
        assert_eq!(of("set(resource.schema_url, \"\")"), Some(Level::Resource));
        // A function or an enumeration may need a context further in.
        assert_eq!(of("set(resource.attributes[\"a\"], IsRootSpan())"), Some(Level::Span));
        assert_eq!(of("set(resource.attributes[\"a\"], SPAN_KIND_SERVER)"), Some(Level::SpanEvent));
        for none in ["set(name, 1)", "set(metric.name, 1)", "set(spanevent.name, IsRootSpan())"] {
            assert_eq!(of(none), None, "{none}");
        }
        assert_eq!(inferred(Signal::Metrics, "set(metric.name, datapoint.attributes[\"a\"])"), Some(Level::DataPoint));
    }

    #[test]
    fn enumerations() {
        assert_eq!(Level::Span.enumeration("SPAN_KIND_CONSUMER"), Some(5));
        assert_eq!(Level::SpanEvent.enumeration("STATUS_CODE_ERROR"), Some(2));
        assert_eq!(Level::Log.enumeration("SEVERITY_NUMBER_INFO"), Some(9));
        assert_eq!(Level::Log.enumeration("SEVERITY_NUMBER_FATAL4"), Some(24));
        assert_eq!(Level::Metric.enumeration("METRIC_DATA_TYPE_SUMMARY"), Some(5));
        assert_eq!(Level::Metric.enumeration("FLAG_NONE"), None);
        assert_eq!(Level::DataPoint.enumeration("FLAG_NO_RECORDED_VALUE"), Some(1));
        assert_eq!(Level::Resource.enumeration("STATUS_CODE_OK"), None);
    }
}
