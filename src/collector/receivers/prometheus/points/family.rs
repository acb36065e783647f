//! Families of one scrape: the series of a metric gathered into points, and written as an OTLP metric.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::super::exposition::{Exemplar, MetricType};
use super::group::{Broken, Group, Misfit, Role, write_exemplar};
use super::metadata::{self, without_suffix};
use super::series::{Hashed, PointAttributes, PointKind, Series};
use crate::otlp::Metric;
use crate::otlp::wire::Writer;

/// What kind of OTLP metric a family becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Gauge,
    Sum {
        monotonic: bool,
    },
    Histogram,
    Summary,
    /// Gauge histograms have no OTLP form: each of their series is a gauge point.
    Loose,
}

/// Of the enum of temporalities: cumulative.
const CUMULATIVE: u64 = 2;

/// One family.
#[derive(Debug)]
pub struct Family {
    about: metadata::Family,
    shape: Shape,
    groups: Vec<Group>,
    places: HashMap<PointAttributes, usize, BuildHasherDefault<Hashed>>,
    last: usize,
}

impl Family {
    /// An empty family.
    #[must_use]
    pub fn new(about: metadata::Family) -> Self {
        let shape = match about.kind {
            MetricType::Counter => Shape::Sum { monotonic: true },
            MetricType::Gauge | MetricType::Unknown => Shape::Gauge,
            MetricType::Histogram => Shape::Histogram,
            MetricType::Summary => Shape::Summary,
            MetricType::Info | MetricType::StateSet => Shape::Sum { monotonic: false },
            MetricType::GaugeHistogram => Shape::Loose,
        };
        Self { about, shape, groups: Vec::new(), places: HashMap::default(), last: 0 }
    }

    /// The name of the metric.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.about.name
    }

    /// Whether a series of this name belongs to the family.
    #[must_use]
    pub fn includes(&self, series: &str) -> bool {
        match self.shape {
            Shape::Sum { .. } => without_suffix(series) == self.about.described_as,
            Shape::Gauge => series == self.about.name,
            Shape::Histogram | Shape::Summary | Shape::Loose => without_suffix(series) == self.about.name,
        }
    }

    fn point_kind(&self) -> PointKind {
        match self.shape {
            Shape::Histogram => PointKind::Histogram,
            Shape::Summary => PointKind::Summary,
            _ => PointKind::Number,
        }
    }

    /// The place of the group that a series belongs to.
    fn group(&mut self, series: &Series, timestamp_ms: i64) -> usize {
        let attributes = series.attributes(self.point_kind());
        let same = self.groups.get(self.last).is_some_and(|group| group.attributes == attributes.bytes);
        if !same {
            self.last = *self.places.entry(attributes.clone()).or_insert_with(|| {
                self.groups.push(Group::new(timestamp_ms, attributes.bytes.clone()));
                self.groups.len() - 1
            });
        }
        self.last
    }

    /// Takes up one sample, and gives its group and what it is there.
    ///
    /// # Errors
    /// The sample is left out.
    pub fn add(
        &mut self,
        series: &Series,
        timestamp_ms: i64,
        value: f64,
        exemplar: Option<&Exemplar>,
    ) -> Result<(usize, Role), Misfit> {
        let (shape, name) = (self.shape, series.name());
        let created = name.strip_suffix("_created").is_some_and(|base| base == self.about.described_as);
        let place = self.group(series, timestamp_ms);
        let group = &mut self.groups[place];
        // The exemplar of a sample that does not fit is kept, as in the reference.
        if let (Some(exemplar), false) = (exemplar, shape == Shape::Summary) {
            let field = if shape == Shape::Histogram { 8 } else { 5 };
            write_exemplar(&mut group.exemplars, field, exemplar, timestamp_ms);
        }
        if group.timestamp_ms != timestamp_ms {
            return Err(Misfit::Timestamp);
        }
        let role = match shape {
            Shape::Histogram | Shape::Summary if name.ends_with("_sum") => Role::Sum,
            Shape::Histogram | Shape::Summary if name.ends_with("_count") => Role::Count,
            Shape::Histogram | Shape::Summary | Shape::Sum { .. } if created => Role::Created,
            Shape::Histogram => group.new_part(series.boundary("le"))?,
            Shape::Summary => group.new_part(series.boundary("quantile"))?,
            Shape::Gauge | Shape::Loose | Shape::Sum { .. } => Role::Value,
        };
        group.put(role, value);
        Ok((place, role))
    }

    /// Gives a sample of a former scrape another value.
    pub(super) fn put(&mut self, group: usize, role: Role, value: f64) {
        if let Some(group) = self.groups.get_mut(group) {
            group.put(role, value);
        }
    }

    /// All points are of this time.
    pub(super) fn set_time(&mut self, timestamp_ms: i64) {
        self.groups.iter_mut().for_each(|group| group.timestamp_ms = timestamp_ms);
    }

    /// The family as a metric; `None` if it has no point. What cannot be a right point is counted in `broken`; `trim`
    /// cuts type and unit off its name.
    #[must_use]
    pub fn write(&self, trim: bool, broken: &mut Broken) -> Option<Metric> {
        let mut rest = Writer::with_capacity(128 + self.groups.len() * 96);
        if !self.about.help.is_empty() {
            rest.bytes_field(2, self.about.help.as_bytes());
        }
        let unit = metadata::ucum(&self.about.unit);
        if !unit.is_empty() {
            rest.bytes_field(3, unit.as_bytes());
        }
        let data = match self.shape {
            Shape::Gauge | Shape::Loose => 5,
            Shape::Sum { .. } => 7,
            Shape::Histogram => 9,
            Shape::Summary => 11,
        };
        let mut points = 0;
        let start = rest.start_message(data);
        for group in &self.groups {
            points += usize::from(match self.shape {
                Shape::Gauge | Shape::Loose => group.write_number(&mut rest, false),
                Shape::Sum { .. } => group.write_number(&mut rest, true),
                Shape::Histogram => group.write_histogram(&mut rest, &self.about.name, broken),
                Shape::Summary => group.write_summary(&mut rest, &self.about.name, broken),
            });
        }
        if points == 0 {
            return None;
        }
        match self.shape {
            Shape::Sum { monotonic } => {
                rest.varint_field(2, CUMULATIVE);
                if monotonic {
                    rest.bool_field(3, true);
                }
            }
            Shape::Histogram => rest.varint_field(2, CUMULATIVE),
            Shape::Gauge | Shape::Summary | Shape::Loose => {}
        }
        rest.end_message(start);
        rest.message_field(12, |entry| {
            entry.bytes_field(1, b"prometheus.type");
            entry.message_field(2, |value| value.bytes_field(1, self.about.kind.word().as_bytes()));
        });
        let name = self.about.name.as_str();
        let sum = matches!(self.shape, Shape::Sum { .. });
        let name = if trim { metadata::trimmed(name, sum, &self.about.unit) } else { name };
        Some(Metric::new(name, rest.into_bytes()))
    }
}
