//! The connector's section of the configuration.

use std::time::Duration;

use super::aggregate::{Dimension, Temporality};
use super::connector::SpanMetrics;
use crate::collector::component::{Connector, Factory, Signals};
use crate::collector::duration::parse_duration;
use crate::collector::section::Section;
use crate::diag::Problem;
use crate::otlp::Signal;

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

/// What the section says.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Put before the names of the metrics, with a dot.
    pub namespace: String,
    /// The histogram of durations; `None` if it is disabled.
    pub histogram: Option<HistogramSettings>,
    /// Attributes of spans or resources that tell series apart.
    pub dimensions: Vec<Dimension>,
    /// Which of [`BUILT_IN`] are left out.
    pub excluded: [bool; 5],
    /// Cumulative or delta.
    pub temporality: Temporality,
    /// How often the metrics are handed on.
    pub flush_interval: Duration,
    /// Which attributes tell resources apart; all of them if the list is empty.
    pub resource_key: Vec<String>,
    /// How many resources are kept.
    pub resources: usize,
    /// How many series each resource may have; 0 for any number.
    pub cardinality_limit: usize,
    /// Resources without new spans for this long are forgotten; zero for never.
    pub expiration: Duration,
}

/// `histogram`.
#[derive(Clone, Debug)]
pub(super) struct HistogramSettings {
    /// `ms` or `s`.
    pub unit: &'static str,
    /// Upper bounds in that unit.
    pub bounds: Vec<f64>,
}

impl HistogramSettings {
    /// Nanoseconds in one unit.
    pub fn divider(&self) -> f64 {
        divider(self.unit)
    }
}

fn divider(unit: &str) -> f64 {
    if unit == "s" { 1e9 } else { 1e6 }
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of all kinds")]
fn configure(section: &mut Section<'_>) -> Option<Box<dyn Connector>> {
    section.unsupported(&[
        "calls_dimensions",
        "enable_metrics_sampling_method",
        "events",
        "exemplars",
        "include_instrumentation_scope",
        "metric_timestamp_cache_size",
        "series_expiration",
    ]);
    // Without effect in the reference as well: it keeps no such cache any more, and resources always have their
    // attributes there unless a feature gate takes them away.
    section.integer("dimensions_cache_size", 0);
    section.boolean("add_resource_attributes");
    let namespace = section.text("namespace").unwrap_or_else(|| "traces.span.metrics".into());
    let histogram = section.section("histogram", histogram).unwrap_or_else(|| Some(default_histogram("ms")));
    let excluded = excluded(section);
    let dimensions = dimensions(section);
    let temporality = match section
        .word("aggregation_temporality", &["AGGREGATION_TEMPORALITY_CUMULATIVE", "AGGREGATION_TEMPORALITY_DELTA"])
    {
        Some("AGGREGATION_TEMPORALITY_DELTA") => Temporality::Delta,
        _ => Temporality::Cumulative,
    };
    let flush_interval = section.duration("metrics_flush_interval").unwrap_or(Duration::from_mins(1));
    if flush_interval.is_zero() {
        section.problem("metrics_flush_interval", Problem::new("the flush interval is zero"));
    }
    let size =
        |number: Option<i64>, default: usize| number.map_or(default, |n| usize::try_from(n).unwrap_or(usize::MAX));
    Some(Box::new(SpanMetrics {
        settings: Settings {
            namespace,
            histogram,
            dimensions,
            excluded,
            temporality,
            flush_interval,
            resource_key: section.texts("resource_metrics_key_attributes").unwrap_or_default(),
            resources: size(section.integer("resource_metrics_cache_size", 1), 1000),
            cardinality_limit: size(section.integer("aggregation_cardinality_limit", 0), 0),
            expiration: section.duration("metrics_expiration").unwrap_or_default(),
        },
    }))
}

fn default_histogram(unit: &'static str) -> HistogramSettings {
    HistogramSettings { unit, bounds: DEFAULT_BOUNDS_MS.map(|bound| bound * 1e6 / divider(unit)).into() }
}

fn histogram(section: &mut Section<'_>) -> Option<HistogramSettings> {
    section.unsupported(&["dimensions", "exponential"]);
    let disabled = section.boolean("disable").unwrap_or(false);
    let unit = section.word("unit", &["ms", "s"]).unwrap_or("ms");
    let buckets = section.section("explicit", |explicit| buckets(explicit, unit)).flatten();
    let settings = match buckets {
        Some(bounds) => HistogramSettings { unit, bounds },
        None => default_histogram(unit),
    };
    (!disabled).then_some(settings)
}

fn buckets(section: &mut Section<'_>, unit: &str) -> Option<Vec<f64>> {
    let texts = section.texts("buckets")?;
    let mut bounds = Vec::new();
    for text in texts {
        match parse_duration(&text) {
            Ok(bound) => bounds.push(bound.as_nanos() as f64 / divider(unit)),
            Err(why) => section.problem("buckets", Problem::new(format!("`{text}` is no duration: {why}"))),
        }
    }
    if bounds.windows(2).any(|pair| pair[0] >= pair[1]) {
        let problem = Problem::new("the buckets do not stand from small to large").hint("sort them, each bound once");
        section.problem("buckets", problem);
    }
    Some(bounds)
}

fn excluded(section: &mut Section<'_>) -> [bool; 5] {
    let names = section.texts("exclude_dimensions").unwrap_or_default();
    BUILT_IN.map(|name| names.iter().any(|excluded| excluded == name))
}

fn dimensions(section: &mut Section<'_>) -> Vec<Dimension> {
    let list = section.sections("dimensions", |dimension| {
        let name = dimension.required_text("name").unwrap_or_default();
        if name.starts_with("glob:") {
            dimension.problem("name", Problem::new("patterns of names are not supported by this collector"));
        }
        Dimension { name, default: dimension.text("default") }
    });
    let list = list.unwrap_or_default();
    for (place, dimension) in list.iter().enumerate() {
        let built_in = BUILT_IN[..4].contains(&dimension.name.as_str());
        if built_in || list[..place].iter().any(|former| former.name == dimension.name) {
            section.problem("dimensions", Problem::new(format!("the dimension `{}` stands twice", dimension.name)));
        }
    }
    list
}
