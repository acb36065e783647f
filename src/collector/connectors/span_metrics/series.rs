//! Series: what has been counted for one set of attributes.

use bytes::Bytes;
use indexmap::IndexMap;

use super::config::Shape;
use super::exponential::Exponential;

/// The series of one metric of one resource, by what their spans say.
#[derive(Default)]
pub(super) struct Table {
    series: IndexMap<Box<[u8]>, Series>,
    overflow: Option<Series>,
}

/// One series.
pub(super) struct Series {
    /// Its attributes, each as a field of number 7.
    pub attributes: Bytes,
    /// When its first span came, in nanoseconds since the epoch.
    pub start: u64,
    /// When its last span came.
    pub last_seen: u64,
    /// How many spans (or events) were counted.
    pub count: u64,
    /// Spans of the current interval.
    pub exemplars: Vec<Exemplar>,
    /// Their durations, where they are asked for.
    pub durations: Option<Durations>,
}

/// A span that was counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exemplar {
    pub trace_id: [u8; 16],
    pub span_id: [u8; 8],
    /// Its duration in the unit of the histogram.
    pub duration: f64,
}

/// How long spans took.
pub(super) enum Durations {
    Explicit { buckets: Box<[u64]>, sum: f64, count: u64 },
    Exponential(Box<Exponential>),
}

impl Durations {
    /// None yet.
    pub fn new(shape: &Shape) -> Self {
        match shape {
            Shape::Explicit(bounds) => Self::Explicit { buckets: vec![0; bounds.len() + 1].into(), sum: 0.0, count: 0 },
            Shape::Exponential(most) => Self::Exponential(Box::new(Exponential::new(*most))),
        }
    }

    /// Takes up a duration `times` times.
    pub fn observe(&mut self, duration: f64, times: u64, shape: &Shape) {
        match (self, shape) {
            (Self::Explicit { buckets, sum, count }, Shape::Explicit(bounds)) => {
                *sum += duration * times as f64;
                *count = count.saturating_add(times);
                let bucket = &mut buckets[bounds.partition_point(|bound| *bound < duration)];
                *bucket = bucket.saturating_add(times);
            }
            (Self::Exponential(histogram), _) => histogram.observe(duration, times),
            (Self::Explicit { .. }, Shape::Exponential(_)) => {}
        }
    }
}

impl Series {
    /// Nothing counted yet.
    pub fn new(attributes: Bytes, now: u64, durations: Option<Durations>) -> Self {
        Self { attributes, start: now, last_seen: now, count: 0, exemplars: Vec::new(), durations }
    }
}

/// The attributes of the series that takes what is beyond the limit.
pub(super) const OVERFLOW: &str = "otel.metric.overflow";

impl Table {
    /// The series of this key, or the one for what is beyond `limit` (0 is none); `make` makes a new one, given whether
    /// it is that for the rest. True if it is the one for the rest.
    pub fn find(
        &mut self,
        key: &[u8],
        limit: usize,
        now: u64,
        make: impl FnOnce(bool) -> Series,
    ) -> (&mut Series, bool) {
        let known = self.series.get_index_of(key);
        if known.is_none() && limit > 0 && self.series.len() + usize::from(self.overflow.is_some()) >= limit {
            return (self.overflow.get_or_insert_with(|| make(true)), true);
        }
        let place = known.unwrap_or_else(|| self.series.insert_full(key.into(), make(false)).0);
        let series = &mut self.series[place];
        series.last_seen = now;
        (series, false)
    }

    /// Keys and series; that of the rest is the last.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Series)> {
        let rest = self.overflow.iter().map(|series| (OVERFLOW.as_bytes(), series));
        self.series.iter().map(|(key, series)| (&**key, series)).chain(rest)
    }

    /// The exemplars have been handed on.
    pub fn clear_exemplars(&mut self) {
        self.series.values_mut().chain(&mut self.overflow).for_each(|series| series.exemplars.clear());
    }

    /// Gives up series that had no span since `then`. That of the rest counts from its first span.
    pub fn expire(&mut self, then: u64) {
        self.series.retain(|_, series| series.last_seen > then);
        self.overflow.take_if(|series| series.last_seen <= then);
    }
}
