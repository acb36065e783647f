//! The connector's section of the configuration.

use std::num::NonZeroUsize;
use std::time::Duration;

use super::connector::SpanMetrics;
use super::dimensions::{Dimensions, Named};
use crate::collector::component::{Connector, Factory, Signals};
use crate::collector::config::duration::parse_duration;
use crate::collector::config::node::Value;
use crate::collector::config::section::Section;
use crate::collector::text::glob::Glob;
use crate::diag::Problem;
use crate::otlp::{AnyValue, Signal};

/// The kind.
pub const FACTORY: Factory<dyn Connector> = Factory {
    names: &["span_metrics", "spanmetrics"],
    signals: Signals::Between(&[(Signal::Traces, Signal::Metrics)]),
    configure,
};

/// Attributes that every point has unless they are excluded.
pub(super) const BUILT_IN: [&str; 5] =
    ["service.name", "span.name", "span.kind", "status.code", "collector.instance.id"];

/// Upper bounds, in milliseconds, where the configuration has none.
const DEFAULT_BOUNDS_MS: [f64; 16] =
    [2.0, 4.0, 6.0, 8.0, 10.0, 50.0, 100.0, 200.0, 400.0, 800.0, 1000.0, 1400.0, 2000.0, 5000.0, 10_000.0, 15_000.0];

/// Buckets of an exponential histogram where the configuration has no number.
const DEFAULT_MOST: i32 = 160;

/// What the section says.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Put before the names of the metrics, with a dot.
    pub namespace: String,
    /// The histogram of durations; `None` if it is disabled.
    pub histogram: Option<Shape>,
    /// The unit of durations.
    pub unit: Unit,
    /// Attributes that tell series apart: of all metrics, calls, durations, events.
    pub dimensions: [Dimensions; 4],
    /// Whether there is a metric of the spans' events.
    pub events: bool,
    /// How many spans each point keeps as exemplars; `None` if exemplars are off.
    pub exemplars: Option<usize>,
    /// Scopes whose names are attributes.
    pub scopes: Vec<String>,
    /// Whether an attribute tells counted spans from extrapolated ones.
    pub sampling_method: bool,
    /// Which of [`BUILT_IN`] are left out.
    pub excluded: [bool; 5],
    /// Cumulative or delta.
    pub temporality: Temporality,
    /// How often the metrics are handed on.
    pub flush_interval: Duration,
    /// Which attributes tell resources apart; all of them if the list is empty.
    pub resource_key: Vec<String>,
    /// How many resources are kept.
    pub resources: NonZeroUsize,
    /// How many series each metric of each resource may have; 0 for any number.
    pub cardinality_limit: usize,
    /// Resources without new spans for this long are forgotten; zero for never.
    pub metrics_expiration: Duration,
    /// Series without new spans for this long are forgotten; zero for never.
    pub series_expiration: Duration,
    /// For how many series the time of the last point is kept (delta temporality).
    pub timestamps: NonZeroUsize,
}

/// Whether a point counts from the series' first span or from the flush before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Temporality {
    /// From the first span.
    Cumulative,
    /// From the flush before.
    Delta,
}

/// The kind of a histogram.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// With these upper bounds.
    Explicit(Vec<f64>),
    /// With powers of a base as bounds, and so many buckets at most.
    Exponential(i32),
}

/// A unit of durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Milliseconds,
    Seconds,
}

impl Unit {
    /// Its UCUM word.
    pub fn word(self) -> &'static str {
        if self == Self::Seconds { "s" } else { "ms" }
    }

    /// How many nanoseconds it has.
    pub fn nanoseconds(self) -> f64 {
        if self == Self::Seconds { 1e9 } else { 1e6 }
    }
}

const CUMULATIVE: &str = "AGGREGATION_TEMPORALITY_CUMULATIVE";
const DELTA: &str = "AGGREGATION_TEMPORALITY_DELTA";

#[expect(clippy::unnecessary_wraps, reason = "the signature of all kinds")]
fn configure(section: &mut Section<'_>) -> Option<Box<dyn Connector>> {
    // Without effect in the reference as well: it keeps no such cache any more, and resources always have their
    // attributes there unless a feature gate takes them away.
    section.integer("dimensions_cache_size", i64::MIN);
    section.boolean("add_resource_attributes");
    // Null (such as a variable that is not set) is the empty text here, not the default.
    let is_null = section.node("namespace").is_some_and(|node| node.value == Value::Null);
    let namespace = section.text("namespace");
    let namespace = namespace.unwrap_or_else(|| if is_null { "" } else { "traces.span.metrics" }.into());
    let common = dimensions(section, "dimensions");
    let calls = dimensions(section, "calls_dimensions");
    let (unit, histogram, durations) = section
        .section("histogram", histogram)
        .unwrap_or_else(|| (Unit::Milliseconds, Some(default_shape(Unit::Milliseconds)), Dimensions::default()));
    let events = section.section("events", events).flatten();
    let exemplars = section.section("exemplars", exemplars).flatten();
    let temporality = match section.word("aggregation_temporality", &[CUMULATIVE, DELTA]) {
        Some(DELTA) => Temporality::Delta,
        _ => Temporality::Cumulative,
    };
    let flush_interval = section.duration("metrics_flush_interval").unwrap_or(Duration::from_mins(1));
    if flush_interval.is_zero() {
        section.problem("metrics_flush_interval", Problem::new("the flush interval is zero"));
    }
    let mut size = |key, least| {
        let size = section.integer(key, least).and_then(|size| usize::try_from(size).ok());
        size.and_then(NonZeroUsize::new).unwrap_or(DEFAULT_SIZE)
    };
    let resources = size("resource_metrics_cache_size", 1);
    // Without delta temporality there are no such times.
    let least = if temporality == Temporality::Delta { 1 } else { i64::MIN };
    let timestamps = size("metric_timestamp_cache_size", least);
    let limit = section.integer("aggregation_cardinality_limit", 0).and_then(|limit| usize::try_from(limit).ok());
    Some(Box::new(SpanMetrics {
        settings: Settings {
            namespace,
            histogram,
            unit,
            events: events.is_some(),
            dimensions: [common, calls, durations, events.unwrap_or_default()],
            exemplars,
            scopes: section.texts("include_instrumentation_scope").unwrap_or_default(),
            sampling_method: section.boolean("enable_metrics_sampling_method").unwrap_or(false),
            excluded: excluded(section),
            temporality,
            flush_interval,
            resource_key: section.texts("resource_metrics_key_attributes").unwrap_or_default(),
            resources,
            cardinality_limit: limit.unwrap_or(0),
            metrics_expiration: section.duration("metrics_expiration").unwrap_or_default(),
            series_expiration: section.duration("series_expiration").unwrap_or_default(),
            timestamps,
        },
    }))
}

const DEFAULT_SIZE: NonZeroUsize = NonZeroUsize::new(1000).expect("1000 is not zero");

fn default_shape(unit: Unit) -> Shape {
    Shape::Explicit(DEFAULT_BOUNDS_MS.map(|bound| bound * 1e6 / unit.nanoseconds()).into())
}

fn histogram(section: &mut Section<'_>) -> (Unit, Option<Shape>, Dimensions) {
    let disabled = section.boolean("disable").unwrap_or(false);
    let unit = unit(section);
    let dimensions = dimensions(section, "dimensions");
    let explicit = given(section, "explicit").then(|| section.section("explicit", |explicit| buckets(explicit, unit)));
    let exponential = given(section, "exponential").then(|| section.section("exponential", most));
    if explicit.is_some() && exponential.is_some() {
        let problem = Problem::new("the histogram is `explicit` and `exponential` at once");
        section.problem("exponential", problem.hint("leave one of them out"));
    }
    let shape = match (explicit.flatten(), exponential.flatten()) {
        (Some(bounds), _) => Shape::Explicit(bounds),
        (None, Some(most)) => Shape::Exponential(most),
        (None, None) => default_shape(unit),
    };
    (unit, (!disabled).then_some(shape), dimensions)
}

/// Whether a section is there; null is not.
fn given(section: &mut Section<'_>, key: &'static str) -> bool {
    section.node(key).is_some_and(|node| node.value != Value::Null)
}

/// `ms` or `s`, in any case.
fn unit(section: &mut Section<'_>) -> Unit {
    let Some(text) = section.text("unit") else { return Unit::Milliseconds };
    match text.to_ascii_lowercase().as_str() {
        "ms" => Unit::Milliseconds,
        "s" => Unit::Seconds,
        _ => {
            section.problem(
                "unit",
                Problem::new(format!("`{text}` is not a value of `unit`")).suggest(&text, ["ms", "s"]),
            );
            Unit::Milliseconds
        }
    }
}

/// The largest number of buckets.
fn most(section: &mut Section<'_>) -> i32 {
    match section.integer("max_size", i64::MIN).and_then(|size| i32::try_from(size).ok()) {
        None | Some(i32::MIN..=0) => DEFAULT_MOST,
        Some(size) => size.clamp(2, 16384),
    }
}

fn buckets(section: &mut Section<'_>, unit: Unit) -> Vec<f64> {
    let mut bounds = Vec::new();
    let items = match section.node("buckets").map(|node| &node.value) {
        None | Some(Value::Null) => &[][..],
        Some(Value::List(items)) => items,
        Some(_) => {
            let problem = Problem::new("`buckets` is no list").hint("write a list of durations: `[10ms, 1s]`");
            section.problem("buckets", problem);
            &[]
        }
    };
    for item in items {
        // An integer counts nanoseconds.
        let bound = match (&item.value, item.as_text()) {
            (Value::Integer(nanoseconds), _) => u64::try_from(*nanoseconds).map_err(|_| "it is negative"),
            (_, Some(text)) => parse_duration(text).map(|bound| u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX)),
            _ => Err("it is neither text nor an integer"),
        };
        match bound {
            Ok(bound) => bounds.push(bound as f64 / unit.nanoseconds()),
            Err(why) => {
                let written = item.as_written().unwrap_or(item.kind());
                section.problem("buckets", Problem::new(format!("`{written}` is no duration: {why}")));
            }
        }
    }
    if bounds.windows(2).any(|pair| pair[0] >= pair[1]) {
        let problem = Problem::new("the buckets do not stand from small to large").hint("sort them, each bound once");
        section.problem("buckets", problem);
    }
    bounds
}

/// The dimensions of the events' metric; `None` if there is none.
fn events(section: &mut Section<'_>) -> Option<Dimensions> {
    let enabled = section.boolean("enabled").unwrap_or(false);
    let dimensions = read_dimensions(section, "dimensions", enabled);
    if enabled && dimensions.named.is_empty() && dimensions.globs.is_empty() {
        section.problem_here(Problem::new("`events` needs `dimensions`"));
    }
    enabled.then_some(dimensions)
}

/// How many exemplars a point keeps; `None` if they are off.
fn exemplars(section: &mut Section<'_>) -> Option<usize> {
    let enabled = section.boolean("enabled").unwrap_or(false);
    let most = section.integer("max_per_data_point", 0).and_then(|most| usize::try_from(most).ok());
    enabled.then_some(most.unwrap_or(5))
}

fn excluded(section: &mut Section<'_>) -> [bool; 5] {
    let names = section.texts("exclude_dimensions").unwrap_or_default();
    BUILT_IN.map(|name| names.iter().any(|excluded| excluded == name))
}

fn dimensions(section: &mut Section<'_>, key: &'static str) -> Dimensions {
    read_dimensions(section, key, true)
}

/// Reads a list of dimensions; `used` is whether it matters that one stands twice.
fn read_dimensions(section: &mut Section<'_>, key: &'static str, used: bool) -> Dimensions {
    let mut all = Dimensions::default();
    let mut patterns = Vec::new();
    let read = section.sections(key, |dimension| {
        let (name, default) = (dimension.text("name").unwrap_or_default(), dimension.text("default"));
        let pattern = dimension.text("glob").unwrap_or_default();
        match (name.is_empty(), pattern.is_empty()) {
            (false, true) => all.named.push(Named { name, default: default.as_deref().map(AnyValue::from) }),
            (true, false) if default.is_some() => {
                dimension.problem("default", Problem::new("a dimension by `glob` has no default"));
            }
            (true, false) => match Glob::of_names(&pattern) {
                Ok(glob) => {
                    all.globs.push(glob);
                    patterns.push(pattern);
                }
                Err(why) => dimension.problem("glob", Problem::new(why)),
            },
            _ => dimension.problem_here(Problem::new("a dimension has one of `name` and `glob`")),
        }
    });
    drop(read);
    if !used {
        return all;
    }
    let names = BUILT_IN.into_iter().chain(all.named.iter().map(|dimension| dimension.name.as_str()));
    let names: Vec<&str> = names.collect();
    for (place, name) in names.iter().enumerate() {
        if names[..place].contains(name) {
            section.problem(key, Problem::new(format!("the dimension `{name}` stands twice")));
        }
        for (_, pattern) in all.globs.iter().zip(&patterns).filter(|(glob, _)| glob.is_match(name)) {
            section.problem(key, Problem::new(format!("the pattern `{pattern}` matches the dimension `{name}`")));
        }
    }
    all
}
