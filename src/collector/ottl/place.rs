//! Paths: which names lead to which field of which part of the telemetry.

use super::Fault;
use super::context::{Level, Naming};
use super::expression::Key;
use super::syntax;
use super::value::MessageKind;

/// A place in the telemetry that can be read and, for the most part, written.
#[derive(Debug)]
pub(super) struct Place {
    pub level: Level,
    pub field: Field,
    /// Into the map, list or trace state that stands there.
    pub keys: Vec<Key>,
}

impl Place {
    /// Whether the other place is inside of this one.
    pub fn contains(&self, inner: &Self) -> bool {
        let same = |(outer, inner): (&Key, &Key)| match (outer, inner) {
            (Key::Name(outer), Key::Name(inner)) => outer == inner,
            (Key::Place(outer), Key::Place(inner)) => outer == inner,
            _ => false,
        };
        self.level == inner.level
            && self.field == inner.field
            && self.keys.len() < inner.keys.len()
            && self.keys.iter().zip(&inner.keys).all(same)
    }
}

/// A field of a part. Numbers are those of the wire form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// A scratch map of the statements, not of the telemetry.
    Cache,
    /// A list of attributes.
    Map(u32),
    Text(u32),
    /// A schema URL, which stands beside the part.
    SchemaUrl,
    /// A count as uint32.
    Count(u32),
    /// An enumeration.
    Enumeration(u32),
    /// Flags as fixed32, which must fit into 32 bits or are cut.
    Flags {
        number: u32,
        checked: bool,
    },
    /// Nanoseconds since 1970 as an integer.
    Nanoseconds(u32),
    /// The same as a time.
    Time(u32),
    TraceId(u32),
    TraceIdText(u32),
    SpanId(u32),
    SpanIdText(u32),
    TraceState,
    /// `Server`.
    KindText,
    /// `SPAN_KIND_SERVER`.
    KindOldText,
    Messages(u32, MessageKind),
    Status,
    StatusCode,
    StatusMessage,
    /// It has no value in any context.
    EventIndex,
    Body,
    BodyText,
    MetricName,
    MetricType,
    Temporality,
    IsMonotonic,
    DataPoints,
    Point(PointField),
}

/// A field of a data point; its number depends on the kind of point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PointField {
    Attributes,
    StartNanoseconds,
    Nanoseconds,
    StartTime,
    Time,
    Double,
    Integer,
    Exemplars,
    Flags,
    Count,
    Sum,
    BucketCounts,
    Bounds,
    Scale,
    ZeroCount,
    Positive,
    PositiveOffset,
    PositiveCounts,
    Negative,
    NegativeOffset,
    NegativeCounts,
    Quantiles,
}

const RESOURCE: &[(&str, Field)] =
    &[("attributes", Field::Map(1)), ("dropped_attributes_count", Field::Count(2)), ("schema_url", Field::SchemaUrl)];

const SCOPE: &[(&str, Field)] = &[
    ("name", Field::Text(1)),
    ("version", Field::Text(2)),
    ("attributes", Field::Map(3)),
    ("dropped_attributes_count", Field::Count(4)),
    ("schema_url", Field::SchemaUrl),
];

const SPAN: &[(&str, Field)] = &[
    ("trace_id", Field::TraceId(1)),
    ("trace_id.string", Field::TraceIdText(1)),
    ("span_id", Field::SpanId(2)),
    ("span_id.string", Field::SpanIdText(2)),
    ("trace_state", Field::TraceState),
    ("parent_span_id", Field::SpanId(4)),
    ("parent_span_id.string", Field::SpanIdText(4)),
    ("name", Field::Text(5)),
    ("kind", Field::Enumeration(6)),
    ("kind.string", Field::KindText),
    ("kind.deprecated_string", Field::KindOldText),
    ("start_time_unix_nano", Field::Nanoseconds(7)),
    ("end_time_unix_nano", Field::Nanoseconds(8)),
    ("start_time", Field::Time(7)),
    ("end_time", Field::Time(8)),
    ("attributes", Field::Map(9)),
    ("dropped_attributes_count", Field::Count(10)),
    ("events", Field::Messages(11, MessageKind::Events)),
    ("dropped_events_count", Field::Count(12)),
    ("links", Field::Messages(13, MessageKind::Links)),
    ("dropped_links_count", Field::Count(14)),
    ("status", Field::Status),
    ("status.code", Field::StatusCode),
    ("status.message", Field::StatusMessage),
    ("flags", Field::Flags { number: 16, checked: true }),
];

const SPAN_EVENT: &[(&str, Field)] = &[
    ("time_unix_nano", Field::Nanoseconds(1)),
    ("time", Field::Time(1)),
    ("name", Field::Text(2)),
    ("attributes", Field::Map(3)),
    ("dropped_attributes_count", Field::Count(4)),
    ("event_index", Field::EventIndex),
];

const METRIC: &[(&str, Field)] = &[
    ("name", Field::MetricName),
    ("description", Field::Text(2)),
    ("unit", Field::Text(3)),
    ("type", Field::MetricType),
    ("aggregation_temporality", Field::Temporality),
    ("is_monotonic", Field::IsMonotonic),
    ("data_points", Field::DataPoints),
    ("metadata", Field::Map(12)),
];

const DATA_POINT: &[(&str, Field)] = &[
    ("attributes", Field::Point(PointField::Attributes)),
    ("start_time_unix_nano", Field::Point(PointField::StartNanoseconds)),
    ("time_unix_nano", Field::Point(PointField::Nanoseconds)),
    ("start_time", Field::Point(PointField::StartTime)),
    ("time", Field::Point(PointField::Time)),
    ("value_double", Field::Point(PointField::Double)),
    ("value_int", Field::Point(PointField::Integer)),
    ("exemplars", Field::Point(PointField::Exemplars)),
    ("flags", Field::Point(PointField::Flags)),
    ("count", Field::Point(PointField::Count)),
    ("sum", Field::Point(PointField::Sum)),
    ("bucket_counts", Field::Point(PointField::BucketCounts)),
    ("explicit_bounds", Field::Point(PointField::Bounds)),
    ("scale", Field::Point(PointField::Scale)),
    ("zero_count", Field::Point(PointField::ZeroCount)),
    ("positive", Field::Point(PointField::Positive)),
    ("positive.offset", Field::Point(PointField::PositiveOffset)),
    ("positive.bucket_counts", Field::Point(PointField::PositiveCounts)),
    ("negative", Field::Point(PointField::Negative)),
    ("negative.offset", Field::Point(PointField::NegativeOffset)),
    ("negative.bucket_counts", Field::Point(PointField::NegativeCounts)),
    ("quantile_values", Field::Point(PointField::Quantiles)),
];

const LOG: &[(&str, Field)] = &[
    ("time_unix_nano", Field::Nanoseconds(1)),
    ("observed_time_unix_nano", Field::Nanoseconds(11)),
    ("time", Field::Time(1)),
    ("observed_time", Field::Time(11)),
    ("severity_number", Field::Enumeration(2)),
    ("severity_text", Field::Text(3)),
    ("body", Field::Body),
    ("body.string", Field::BodyText),
    ("attributes", Field::Map(6)),
    ("dropped_attributes_count", Field::Count(7)),
    ("flags", Field::Flags { number: 8, checked: false }),
    ("trace_id", Field::TraceId(9)),
    ("trace_id.string", Field::TraceIdText(9)),
    ("span_id", Field::SpanId(10)),
    ("span_id.string", Field::SpanIdText(10)),
    ("event_name", Field::Text(12)),
];

fn fields(level: Level) -> &'static [(&'static str, Field)] {
    match level {
        Level::Resource => RESOURCE,
        Level::Scope => SCOPE,
        Level::Span => SPAN,
        Level::SpanEvent => SPAN_EVENT,
        Level::Metric => METRIC,
        Level::DataPoint => DATA_POINT,
        Level::Log => LOG,
    }
}

impl Field {
    /// Whether something may follow in brackets.
    fn takes_keys(self) -> bool {
        matches!(self, Self::Cache | Self::Map(_) | Self::Body | Self::TraceState | Self::Point(PointField::Attributes))
    }
}

/// The part and field that a path leads to, and the keys after it as they are written.
pub(super) fn resolve(
    path: &syntax::Path,
    context: Level,
    naming: Naming,
) -> Result<(Level, Field, &[syntax::Key]), Fault> {
    let fault = |what: String| Fault::new(path.at, what);
    let (first, rest) = path.names.split_first().ok_or_else(|| fault("an empty path".to_owned()))?;
    let level_named = (!rest.is_empty() && first.1.is_empty()).then(|| context.seen_as(&first.0)).flatten();
    let (level, parts) = match (level_named, naming) {
        (Some(level), _) => (level, rest),
        (None, Naming::Optional) => (context, path.names.as_slice()),
        (None, Naming::Required) => {
            let known = context.sees().iter().map(|level| level.name()).collect::<Vec<_>>().join(", ");
            let what = match Level::named(&first.0).filter(|_| !rest.is_empty()) {
                Some(level) => format!("`{}` cannot be seen from `{}`", level.name(), context.name()),
                None => format!("the path `{}` begins with no context", path.shown()),
            };
            return Err(fault(what).hint(format!("begin it with one of: {known}")));
        }
    };
    let dotted = parts.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(".");
    let keys = parts.last().map_or(&[][..], |(_, keys)| keys.as_slice());
    if dotted == "cache" {
        if level != context {
            return Err(fault(format!("the cache of `{}` cannot be seen from `{}`", level.name(), context.name())));
        }
        return Ok((level, Field::Cache, keys));
    }
    let known = fields(level);
    let Some((_, field)) = known.iter().find(|(name, _)| *name == dotted) else {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).chain(["cache"]).collect();
        let hint = match crate::diag::nearest(&dotted, names.iter().copied()) {
            Some(name) => format!("did you mean `{}.{name}`?", level.name()),
            None => format!("paths of `{}`: {}", level.name(), names.join(", ")),
        };
        return Err(fault(format!("`{}` has no path `{dotted}`", level.name())).hint(hint));
    };
    let inner = parts.iter().rev().skip(1).any(|(_, keys)| !keys.is_empty());
    if inner || (!keys.is_empty() && !field.takes_keys()) {
        return Err(fault(format!("the path `{}` takes no keys there", path.shown())));
    }
    if *field == Field::TraceState && keys.len() > 1 {
        return Err(fault("`trace_state` takes one key".to_owned()));
    }
    Ok((level, *field, keys))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::ottl::parser;

    fn found(path: &str, context: Level, naming: Naming) -> Result<(Level, Field), String> {
        let syntax::Condition::Compare(_, syntax::Value::Path(path), _) =
            parser::condition(&format!("{path} == 1")).expect(path)
        else {
            panic!("{path}");
        };
        resolve(&path, context, naming).map(|(level, field, _)| (level, field)).map_err(|fault| fault.what)
    }

    #[test]
    fn names_lead_to_fields() {
        let optional = |path: &str, context| found(path, context, Naming::Optional);
        assert_eq!(optional("status.code", Level::Span), Ok((Level::Span, Field::StatusCode)));
        assert_eq!(optional("span.status.code", Level::SpanEvent), Ok((Level::Span, Field::StatusCode)));
        assert_eq!(optional("instrumentation_scope.name", Level::Log), Ok((Level::Scope, Field::Text(1))));
        assert_eq!(optional("resource.attributes[\"a\"]", Level::Metric), Ok((Level::Resource, Field::Map(1))));
        assert_eq!(optional("cache[\"a\"]", Level::Metric), Ok((Level::Metric, Field::Cache)));
        for (path, context, word) in [
            ("nmae", Level::Span, "no path `nmae`"),
            ("metric.name", Level::Log, "no path `metric.name`"),
            ("name[0]", Level::Span, "takes no keys"),
            ("attributes[\"a\"].b", Level::Span, "no path"),
            ("resource.cache", Level::Span, "cannot be seen"),
            ("trace_state[\"a\"][\"b\"]", Level::Span, "one key"),
            ("resource", Level::Span, "no path `resource`"),
        ] {
            let message = optional(path, context).expect_err(path);
            assert!(message.contains(word), "{path}: {message}");
        }
        assert!(found("name", Level::Span, Naming::Required).expect_err("bare").contains("begins with no context"));
        assert!(found("status.code", Level::Span, Naming::Required).is_err());
    }
}
