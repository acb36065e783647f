//! What the counts are written as.

use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;

use super::aggregate::{Aggregator, is_delta};
use super::config::{Settings, Shape};
use super::resources::OfResource;
use super::series::{Durations, Exemplar, Series, Table};
use crate::otlp::wire::{Writer, fields};
use crate::otlp::{Items, Metric, Payload, ResourceItems, ScopeItems, Signal, Text, encode_scope};

/// When series were last handed on, for delta temporality: the next point of a series begins where the last one ended.
pub(super) struct Starts {
    last: LruCache<Vec<u8>, u64>,
}

impl Starts {
    /// For so many series.
    pub fn new(size: NonZeroUsize) -> Self {
        Self { last: LruCache::new(size) }
    }

    fn get(&mut self, resource: &[u8], series: &[u8]) -> Option<u64> {
        self.last.get(&Self::key(resource, series)).copied()
    }

    fn set(&mut self, resource: &[u8], series: &[u8], now: u64) {
        self.last.put(Self::key(resource, series), now);
    }

    fn key(resource: &[u8], series: &[u8]) -> Vec<u8> {
        [resource, b"\xff", series].concat()
    }
}

/// Where the point of a series (given its key) begins.
type Start<'s> = &'s mut dyn FnMut(&[u8], &Series) -> u64;

impl Aggregator {
    /// The metrics at the time `now`, and the state made ready for the next flush.
    pub fn flush(&mut self, now: u64) -> Payload {
        self.changed = false;
        let mut payload = Payload::new(Signal::Metrics);
        let Self { settings, resources, starts, .. } = self;
        for (key, of) in resources.iter() {
            let mut start = |name: &[u8], series: &Series| {
                let known = if is_delta(settings) { starts.get(key, name) } else { None };
                known.unwrap_or(series.start)
            };
            let scope = ScopeItems {
                scope: encode_scope("spanmetricsconnector", "", &[]),
                schema_url: Text::default(),
                items: Items::Metrics(metrics(of, settings, now, &mut start)),
            };
            let (resource, schema_url) = (Arc::clone(&of.resource), Text::default());
            payload.resources.push(ResourceItems { resource, schema_url, scopes: vec![scope] });
        }
        if is_delta(settings) {
            for (key, of) in resources.iter() {
                let tables = [Some(&of.calls), of.durations.as_ref(), Some(&of.events)];
                for (series, _) in tables.into_iter().flatten().flat_map(Table::iter) {
                    starts.set(key, series, now);
                }
            }
            resources.clear();
        } else {
            self.age(now);
        }
        payload
    }

    /// Gives up what is too old or too much.
    fn age(&mut self, now: u64) {
        let Self { settings, resources, .. } = self;
        resources.forget_going();
        let before = |age: std::time::Duration| {
            let age = u64::try_from(age.as_nanos()).ok().filter(|age| *age > 0)?;
            now.checked_sub(age)
        };
        let series = before(settings.series_expiration);
        for of in resources.kept_mut() {
            for table in [Some(&mut of.calls), of.durations.as_mut(), Some(&mut of.events)].into_iter().flatten() {
                table.clear_exemplars();
                if let Some(then) = series {
                    table.expire(then);
                }
            }
        }
        if let Some(then) = before(settings.metrics_expiration) {
            resources.expire(then);
        }
    }
}

fn metrics(of: &OfResource, settings: &Settings, now: u64, start: Start<'_>) -> Vec<Metric> {
    let name = |metric: &str| match settings.namespace.as_str() {
        "" => metric.to_owned(),
        namespace => format!("{namespace}.{metric}"),
    };
    let mut metrics = vec![Metric::new(name("calls"), sum(&of.calls, settings, now, start))];
    if let Some(shape) = &settings.histogram {
        let table = of.durations.as_ref().unwrap_or(&of.calls);
        metrics.push(Metric::new(name("duration"), histogram(table, shape, settings, now, start)));
    }
    if settings.events {
        metrics.push(Metric::new(name("events"), sum(&of.events, settings, now, start)));
    }
    metrics
}

/// Of the enum of temporalities.
fn temporality(settings: &Settings) -> u64 {
    if is_delta(settings) { 1 } else { 2 }
}

fn sum(table: &Table, settings: &Settings, now: u64, start: Start<'_>) -> bytes::Bytes {
    let mut writer = Writer::new();
    writer.message_field(7, |sum| {
        for (key, series) in table.iter() {
            sum.message_field(1, |point| {
                point.fixed64_field(2, start(key, series));
                point.fixed64_field(3, now);
                write_exemplars(point, 5, &series.exemplars, now);
                // Signed, as numbers of points are.
                point.fixed64_field(6, series.count.min(i64::MAX.cast_unsigned()));
                point.raw(&series.attributes);
            });
        }
        sum.varint_field(2, temporality(settings));
        sum.bool_field(3, true);
    });
    writer.into_bytes()
}

fn histogram(table: &Table, shape: &Shape, settings: &Settings, now: u64, start: Start<'_>) -> bytes::Bytes {
    let mut writer = Writer::new();
    writer.bytes_field(3, settings.unit.word().as_bytes());
    let data = if matches!(shape, Shape::Explicit(_)) { 9 } else { 10 };
    writer.message_field(data, |data| {
        for (key, series) in table.iter() {
            let Some(durations) = &series.durations else { continue };
            let from = start(key, series);
            data.message_field(1, |point| {
                point.fixed64_field(2, from);
                point.fixed64_field(3, now);
                write_durations(point, durations, shape);
                let (attributes, exemplars) = if matches!(shape, Shape::Explicit(_)) { (9, 8) } else { (1, 11) };
                write_exemplars(point, exemplars, &series.exemplars, now);
                for (_, attribute) in fields(&series.attributes) {
                    point.bytes_field(attributes, attribute.bytes());
                }
            });
        }
        data.varint_field(2, temporality(settings));
    });
    writer.into_bytes()
}

fn write_durations(point: &mut Writer, durations: &Durations, shape: &Shape) {
    match (durations, shape) {
        (Durations::Explicit { buckets, sum, count }, Shape::Explicit(bounds)) => {
            point.fixed64_field(4, *count);
            point.double_field(5, *sum);
            point.packed_fixed64(6, buckets.iter().copied());
            if !bounds.is_empty() {
                point.packed_double(7, bounds.iter().copied());
            }
        }
        (Durations::Exponential(histogram), _) => {
            point.fixed64_field(4, histogram.count());
            point.double_field(5, histogram.sum());
            if histogram.scale() != 0 {
                point.sint32_field(6, histogram.scale());
            }
            if histogram.zeros() > 0 {
                point.fixed64_field(7, histogram.zeros());
            }
            point.message_field(8, |positive| {
                if histogram.offset() != 0 {
                    positive.sint32_field(1, histogram.offset());
                }
                if histogram.count() > histogram.zeros() {
                    positive.packed_varint(2, histogram.buckets());
                }
            });
            point.message_field(9, |_| {});
            let (least, greatest) = histogram.range();
            point.double_field(12, least);
            point.double_field(13, greatest);
        }
        (Durations::Explicit { .. }, Shape::Exponential(_)) => {}
    }
}

fn write_exemplars(point: &mut Writer, number: u32, exemplars: &[Exemplar], now: u64) {
    for exemplar in exemplars {
        point.message_field(number, |message| {
            message.fixed64_field(2, now);
            message.double_field(3, exemplar.duration);
            if exemplar.span_id != [0; 8] {
                message.bytes_field(4, &exemplar.span_id);
            }
            message.bytes_field(5, &exemplar.trace_id);
        });
    }
}
