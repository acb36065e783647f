//! The counts: series by resource, and what they are written as.

use std::sync::Arc;

use bytes::Bytes;
use indexmap::IndexMap;

use super::config::Settings;
use crate::otlp::wire::Writer;
use crate::otlp::{
    AnyValue, Items, KeyValue, Metric, Payload, Records, Resource, ResourceItems, ScopeItems, Signal, SpanView, Text,
    ValueView, encode_scope,
};

/// Whether a point counts from the series' first span or from the flush before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Temporality {
    /// From the first span.
    Cumulative,
    /// From the flush before.
    Delta,
}

/// An attribute that tells series apart.
#[derive(Clone, Debug)]
pub(super) struct Dimension {
    /// Its name: of a span's attribute, else of a resource's.
    pub name: String,
    /// Its value where neither has it; without one the attribute is left out.
    pub default: Option<String>,
}

/// All counts of one connector.
pub(super) struct Aggregator {
    settings: Settings,
    instance: String,
    resources: IndexMap<Vec<u8>, OfResource>,
    key: Vec<u8>,
    /// Whether there were spans since the last flush.
    changed: bool,
}

/// The series of one resource.
struct OfResource {
    resource: Arc<Resource>,
    series: IndexMap<Box<[u8]>, Series>,
    overflow: Option<Series>,
    /// Series that had a span since they were reset.
    active: usize,
    last_seen: u64,
}

struct Series {
    /// Attributes as fields of a number point (7) and of a histogram point (9).
    attributes: [Bytes; 2],
    start: u64,
    calls: u64,
    sum: f64,
    buckets: Box<[u64]>,
}

impl Aggregator {
    /// No counts yet. `instance` tells this connector from others that count for the same resources.
    pub fn new(settings: Settings, instance: String) -> Self {
        Self { settings, instance, resources: IndexMap::new(), key: Vec::new(), changed: false }
    }

    /// Whether spans came since the last flush.
    pub fn changed(&self) -> bool {
        self.changed
    }

    /// Counts the spans of a payload at the time `now` (nanoseconds since the epoch). Spans of a resource without a
    /// `service.name` do not count.
    pub fn take(&mut self, payload: &Payload, now: u64) {
        for of in &payload.resources {
            let Some(service) = of.resource.get("service.name") else { continue };
            let service = if let AnyValue::String(service) = service { service.as_bytes() } else { &[] };
            let place = self.resource_place(&of.resource, now);
            let fallbacks = self.fallbacks(&of.resource);
            for scope in &of.scopes {
                let Items::Records(spans) = &scope.items else { continue };
                self.take_spans(place, service, &fallbacks, spans, now);
            }
        }
    }

    fn resource_place(&mut self, resource: &Arc<Resource>, now: u64) -> usize {
        let key = resource_key(resource, &self.settings.resource_key);
        let entry = self.resources.entry(key);
        let place = entry.index();
        let of = entry.or_insert_with(|| OfResource {
            resource: Arc::clone(resource),
            series: IndexMap::new(),
            overflow: None,
            active: 0,
            last_seen: now,
        });
        of.last_seen = now;
        place
    }

    /// The value of each dimension for spans that do not have it themselves.
    fn fallbacks(&self, resource: &Resource) -> Vec<Option<AnyValue>> {
        let of_resource = |dimension: &Dimension| {
            let default = || dimension.default.as_deref().map(AnyValue::from);
            resource.get(&dimension.name).cloned().or_else(default)
        };
        self.settings.dimensions.iter().map(of_resource).collect()
    }

    fn take_spans(&mut self, place: usize, service: &[u8], fallbacks: &[Option<AnyValue>], spans: &Records, now: u64) {
        let Self { settings, instance, resources, key, changed } = self;
        let of = &mut resources[place];
        // One of the two forms of each dimension's value: of the span, or of the resource.
        let mut own: Vec<Option<ValueView<'_>>> = vec![None; settings.dimensions.len()];
        let divider = settings.histogram.as_ref().map_or(1e6, super::config::HistogramSettings::divider);
        let bounds = settings.histogram.as_ref().map_or(&[][..], |histogram| &histogram.bounds);
        for message in spans.iter() {
            *changed = true;
            let span = SpanView::new(message);
            find_dimensions(&span, &settings.dimensions, &mut own);
            write_key(key, settings.excluded, service, &span, &own, fallbacks);
            let known = of.series.get_index_of(key.as_slice());
            let idle = known.is_none_or(|place| of.series[place].calls == 0);
            let full = settings.cardinality_limit > 0 && of.active >= settings.cardinality_limit;
            let series = if idle && full {
                of.overflow.get_or_insert_with(|| Series::new(overflow_attributes(), now, bounds.len() + 1))
            } else {
                of.active += usize::from(idle);
                let place = known.unwrap_or_else(|| {
                    let attributes = attributes(settings, instance, service, &span, &own, fallbacks);
                    of.series.insert_full(key.as_slice().into(), Series::new(attributes, now, bounds.len() + 1)).0
                });
                &mut of.series[place]
            };
            let nanoseconds = span.end_time_unix_nano.saturating_sub(span.start_time_unix_nano);
            series.observe(nanoseconds as f64 / divider, bounds);
        }
    }

    /// The metrics at the time `now`, and the state made ready for the next flush.
    pub fn flush(&mut self, now: u64) -> Payload {
        self.changed = false;
        let mut payload = Payload::new(Signal::Metrics);
        for of in self.resources.values_mut() {
            if of.active == 0 {
                continue;
            }
            let scope = ScopeItems {
                scope: encode_scope("spanmetricsconnector", "", &[]),
                schema_url: Text::default(),
                items: Items::Metrics(of.metrics(&self.settings, now)),
            };
            let (resource, schema_url) = (Arc::clone(&of.resource), Text::default());
            payload.resources.push(ResourceItems { resource, schema_url, scopes: vec![scope] });
            if self.settings.temporality == Temporality::Delta {
                of.reset(now);
            }
        }
        self.forget(now);
        payload
    }

    /// Gives up resources that are too old or, oldest first, too many.
    fn forget(&mut self, now: u64) {
        let expiration = u64::try_from(self.settings.expiration.as_nanos()).unwrap_or(u64::MAX);
        if expiration > 0 {
            self.resources.retain(|_, of| now.saturating_sub(of.last_seen) < expiration);
        }
        let surplus = self.resources.len().saturating_sub(self.settings.resources);
        if surplus > 0 {
            let mut times: Vec<u64> = self.resources.values().map(|of| of.last_seen).collect();
            times.sort_unstable();
            let (oldest_kept, mut left) = (times[surplus], surplus);
            self.resources.retain(|_, of| {
                let goes = left > 0 && of.last_seen <= oldest_kept;
                left -= usize::from(goes);
                !goes
            });
        }
    }
}

impl OfResource {
    fn metrics(&self, settings: &Settings, now: u64) -> Vec<Metric> {
        let temporality = if settings.temporality == Temporality::Delta { 1 } else { 2 };
        let series = || self.series.values().chain(&self.overflow).filter(|series| series.calls > 0);
        let name = |metric: &str| match settings.namespace.as_str() {
            "" => metric.to_owned(),
            namespace => format!("{namespace}.{metric}"),
        };
        let mut calls = Writer::with_capacity(64 + self.series.len() * 160);
        calls.message_field(7, |sum| {
            for series in series() {
                sum.message_field(1, |point| {
                    point.fixed64_field(2, series.start);
                    point.fixed64_field(3, now);
                    point.fixed64_field(6, series.calls);
                    point.raw(&series.attributes[0]);
                });
            }
            sum.varint_field(2, temporality);
            sum.bool_field(3, true);
        });
        let mut metrics = vec![Metric::new(name("calls"), calls.into_bytes())];
        if let Some(histogram) = &settings.histogram {
            let mut durations = Writer::with_capacity(64 + self.series.len() * 400);
            durations.bytes_field(3, histogram.unit.as_bytes());
            durations.message_field(9, |data| {
                for series in series() {
                    data.message_field(1, |point| {
                        point.fixed64_field(2, series.start);
                        point.fixed64_field(3, now);
                        point.fixed64_field(4, series.calls);
                        point.double_field(5, series.sum);
                        point.packed_fixed64(6, series.buckets.iter().copied());
                        if !histogram.bounds.is_empty() {
                            point.packed_double(7, histogram.bounds.iter().copied());
                        }
                        point.raw(&series.attributes[1]);
                    });
                }
                data.varint_field(2, temporality);
            });
            metrics.push(Metric::new(name("duration"), durations.into_bytes()));
        }
        metrics
    }

    /// Begins a new interval at `now` for the series that had spans. A series that had none for a whole interval is
    /// forgotten: it begins anew with its next span.
    fn reset(&mut self, now: u64) {
        self.series.retain(|_, series| series.calls > 0);
        for series in self.series.values_mut().chain(&mut self.overflow) {
            (series.start, series.calls, series.sum) = (now, 0, 0.0);
            series.buckets.fill(0);
        }
        self.active = 0;
    }
}

impl Series {
    fn new(attributes: [Bytes; 2], start: u64, buckets: usize) -> Self {
        Self { attributes, start, calls: 0, sum: 0.0, buckets: vec![0; buckets].into() }
    }

    fn observe(&mut self, duration: f64, bounds: &[f64]) {
        self.calls += 1;
        self.sum += duration;
        self.buckets[bounds.partition_point(|bound| *bound < duration)] += 1;
    }
}

/// What tells resources apart: their attributes (or only some of them), in any order.
fn resource_key(resource: &Resource, only: &[String]) -> Vec<u8> {
    let counts = |attribute: &&KeyValue| only.is_empty() || only.iter().any(|name| attribute.key == **name);
    let mut attributes: Vec<Vec<u8>> = resource
        .attributes
        .iter()
        .filter(counts)
        .map(|attribute| {
            let mut writer = Writer::new();
            writer.message_field(1, |inner| attribute.encode(inner));
            writer.into_vec()
        })
        .collect();
    attributes.sort_unstable();
    attributes.concat()
}

/// The span's own values of the dimensions; the first attribute of a name counts.
fn find_dimensions<'a>(span: &SpanView<'a>, dimensions: &[Dimension], own: &mut [Option<ValueView<'a>>]) {
    if dimensions.is_empty() {
        return;
    }
    own.fill(None);
    for (name, value) in span.attributes().iter() {
        for (dimension, place) in dimensions.iter().zip(own.iter_mut()) {
            if place.is_none() && dimension.name.as_bytes() == name {
                *place = Some(value);
            }
        }
    }
}

const KINDS: [&str; 6] = [
    "SPAN_KIND_UNSPECIFIED",
    "SPAN_KIND_INTERNAL",
    "SPAN_KIND_SERVER",
    "SPAN_KIND_CLIENT",
    "SPAN_KIND_PRODUCER",
    "SPAN_KIND_CONSUMER",
];
const STATUS_CODES: [&str; 3] = ["STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"];

/// The word for an enum value; nothing for one that the specification does not have.
fn word<'a>(words: &[&'a str], value: i32) -> &'a str {
    usize::try_from(value).ok().and_then(|value| words.get(value)).copied().unwrap_or_default()
}

/// The built-in attributes of a span that are not excluded.
fn built_in<'a>(
    excluded: [bool; 5],
    service: &'a [u8],
    span: &SpanView<'a>,
) -> impl Iterator<Item = (&'static str, &'a [u8])> {
    let values =
        [service, span.name, word(&KINDS, span.kind).as_bytes(), word(&STATUS_CODES, span.status_code).as_bytes()];
    super::config::BUILT_IN
        .into_iter()
        .zip(values)
        .zip(excluded)
        .filter(|(_, excluded)| !*excluded)
        .map(|(pair, _)| pair)
}

/// Writes what tells the span's series from others: values as text, so that 1 and "1" are one series.
fn write_key(
    key: &mut Vec<u8>,
    excluded: [bool; 5],
    service: &[u8],
    span: &SpanView<'_>,
    own: &[Option<ValueView<'_>>],
    fallbacks: &[Option<AnyValue>],
) {
    key.clear();
    for (_, value) in built_in(excluded, service, span) {
        key.extend_from_slice(value);
        key.push(0);
    }
    for (own, fallback) in own.iter().zip(fallbacks) {
        match (own, fallback) {
            (Some(value), _) => write_text(key, *value),
            (None, Some(AnyValue::String(text))) => {
                key.push(1);
                key.extend_from_slice(text.as_bytes());
            }
            (None, Some(value)) => {
                let mut writer = Writer::new();
                value.encode(&mut writer);
                write_text(key, ValueView::new(writer.as_slice()));
            }
            (None, None) => {}
        }
        key.push(0);
    }
}

fn write_text(key: &mut Vec<u8>, value: ValueView<'_>) {
    use std::io::Write as _;
    key.push(1);
    // Writing into memory does not fail.
    let _ = match value {
        ValueView::Empty => Ok(()),
        ValueView::String(text) => key.write_all(text),
        ValueView::Bool(value) => write!(key, "{value}"),
        ValueView::Int(value) => write!(key, "{value}"),
        ValueView::Double(value) => write!(key, "{value}"),
        ValueView::Array(message) | ValueView::Map(message) => key.write_all(message),
        ValueView::Bytes(bytes) => key.write_all(bytes),
    };
}

fn attributes(
    settings: &Settings,
    instance: &str,
    service: &[u8],
    span: &SpanView<'_>,
    own: &[Option<ValueView<'_>>],
    fallbacks: &[Option<AnyValue>],
) -> [Bytes; 2] {
    [7, 9].map(|field| {
        let mut writer = Writer::new();
        for (name, value) in built_in(settings.excluded, service, span) {
            write_attribute(&mut writer, field, name, |any| any.bytes_field(1, value));
        }
        if !settings.excluded[4] {
            let name = super::config::BUILT_IN[4];
            write_attribute(&mut writer, field, name, |any| any.bytes_field(1, instance.as_bytes()));
        }
        for (dimension, (own, fallback)) in settings.dimensions.iter().zip(own.iter().zip(fallbacks)) {
            match (own, fallback) {
                (Some(value), _) => write_attribute(&mut writer, field, &dimension.name, |any| value.encode(any)),
                (None, Some(value)) => write_attribute(&mut writer, field, &dimension.name, |any| value.encode(any)),
                (None, None) => {}
            }
        }
        writer.into_bytes()
    })
}

fn overflow_attributes() -> [Bytes; 2] {
    [7, 9].map(|field| {
        let mut writer = Writer::new();
        write_attribute(&mut writer, field, "otel.metric.overflow", |any| any.bool_field(2, true));
        writer.into_bytes()
    })
}

fn write_attribute(writer: &mut Writer, field: u32, name: &str, value: impl FnOnce(&mut Writer)) {
    writer.message_field(field, |attribute| {
        attribute.bytes_field(1, name.as_bytes());
        attribute.message_field(2, value);
    });
}
