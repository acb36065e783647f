//! Where a statement runs: the item that it is about, with everything around it.

use std::sync::Arc;

use bytes::Bytes;

use super::context::Level;
use crate::otlp::{Edit, KeyValue, Resource, Text};

/// One item and what is around it. The parts that a context cannot see are empty.
#[derive(Debug, Default)]
pub struct Scene {
    /// The resource.
    pub resource: Arc<Resource>,
    /// Its schema URL.
    pub resource_schema_url: Text,
    /// The instrumentation scope.
    pub scope: Edit,
    /// The schema URL of its items.
    pub scope_schema_url: Text,
    /// The span.
    pub span: Edit,
    /// The event of the span.
    pub event: Edit,
    /// The log record.
    pub log: Edit,
    /// The name of the metric.
    pub metric_name: Text,
    /// All of the metric but its name.
    pub metric: Edit,
    /// The data point.
    pub point: Edit,
    /// What kind of data point it is.
    pub point_kind: PointKind,
    /// The events of the span, or the points of the metric, while a walk goes through them one by one. The span or metric
    /// is without them meanwhile: what reads one of its fields for each of them would go past all of them otherwise.
    pub walked: Option<Arc<[Bytes]>>,
    /// The statements' own map, empty at the beginning of each item.
    pub cache: Vec<KeyValue>,
}

/// The kinds of data points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PointKind {
    /// Of a gauge or sum.
    #[default]
    Number,
    /// Of a histogram.
    Histogram,
    /// Of an exponential histogram.
    Exponential,
    /// Of a summary.
    Summary,
}

/// The fields of a metric of which one is set: gauge, sum, histogram, exponential histogram, summary. The place in this
/// list plus one is the number of the metric's type.
pub(super) const DATA: [u32; 5] = [5, 7, 9, 10, 11];

impl PointKind {
    /// The kind of point in this field of a metric.
    #[must_use]
    pub fn of(data: u32) -> Self {
        match data {
            9 => Self::Histogram,
            10 => Self::Exponential,
            11 => Self::Summary,
            _ => Self::Number,
        }
    }

    /// The number of the attributes.
    #[must_use]
    pub fn attributes(self) -> u32 {
        match self {
            Self::Number | Self::Summary => 7,
            Self::Histogram => 9,
            Self::Exponential => 1,
        }
    }
}

impl Scene {
    /// The part in wire form; a resource has none.
    pub(super) fn part(&self, level: Level) -> Option<&Edit> {
        match level {
            Level::Resource => None,
            Level::Scope => Some(&self.scope),
            Level::Span => Some(&self.span),
            Level::SpanEvent => Some(&self.event),
            Level::Metric => Some(&self.metric),
            Level::DataPoint => Some(&self.point),
            Level::Log => Some(&self.log),
        }
    }

    /// The same, to be changed.
    pub(super) fn part_mut(&mut self, level: Level) -> Option<&mut Edit> {
        match level {
            Level::Resource => None,
            Level::Scope => Some(&mut self.scope),
            Level::Span => Some(&mut self.span),
            Level::SpanEvent => Some(&mut self.event),
            Level::Metric => Some(&mut self.metric),
            Level::DataPoint => Some(&mut self.point),
            Level::Log => Some(&mut self.log),
        }
    }

    /// The field of the metric in which its points are; None if it has none.
    #[must_use]
    pub fn data(&self) -> Option<u32> {
        self.metric.last_of(&DATA)
    }
}
