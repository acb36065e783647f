//! Metrics and their data points.

use super::common::KEY_VALUE;
use super::table::{Field, FieldKind, Message, Presence, fields};

/// A metric with its data points.
pub static METRIC: Message = Message::new(
    "Metric",
    fields![
        [1, "name", "name", FieldKind::String, Implicit],
        [2, "description", "description", FieldKind::String, Implicit],
        [3, "unit", "unit", FieldKind::String, Implicit],
        [5, "gauge", "gauge", FieldKind::Message(&GAUGE), OneOf],
        [7, "sum", "sum", FieldKind::Message(&SUM), OneOf],
        [9, "histogram", "histogram", FieldKind::Message(&HISTOGRAM), OneOf],
        [10, "exponentialHistogram", "exponential_histogram", FieldKind::Message(&EXPONENTIAL_HISTOGRAM), OneOf],
        [11, "summary", "summary", FieldKind::Message(&SUMMARY), OneOf],
        [12, "metadata", "metadata", FieldKind::Message(&KEY_VALUE), Repeated],
    ],
);

/// Current values.
pub static GAUGE: Message =
    Message::new("Gauge", fields![[1, "dataPoints", "data_points", FieldKind::Message(&NUMBER_DATA_POINT), Repeated]]);

/// Sums over time.
pub static SUM: Message = Message::new(
    "Sum",
    fields![
        [1, "dataPoints", "data_points", FieldKind::Message(&NUMBER_DATA_POINT), Repeated],
        [2, "aggregationTemporality", "aggregation_temporality", FieldKind::Enum(TEMPORALITIES), Implicit],
        [3, "isMonotonic", "is_monotonic", FieldKind::Bool, Implicit],
    ],
);

/// Distributions with explicit bounds.
pub static HISTOGRAM: Message = Message::new(
    "Histogram",
    fields![
        [1, "dataPoints", "data_points", FieldKind::Message(&HISTOGRAM_DATA_POINT), Repeated],
        [2, "aggregationTemporality", "aggregation_temporality", FieldKind::Enum(TEMPORALITIES), Implicit],
    ],
);

/// Distributions with exponential bounds.
pub static EXPONENTIAL_HISTOGRAM: Message = Message::new(
    "ExponentialHistogram",
    fields![
        [1, "dataPoints", "data_points", FieldKind::Message(&EXPONENTIAL_HISTOGRAM_DATA_POINT), Repeated],
        [2, "aggregationTemporality", "aggregation_temporality", FieldKind::Enum(TEMPORALITIES), Implicit],
    ],
);

/// Precomputed quantiles.
pub static SUMMARY: Message = Message::new(
    "Summary",
    fields![[1, "dataPoints", "data_points", FieldKind::Message(&SUMMARY_DATA_POINT), Repeated]],
);

/// A point of a gauge or sum.
pub static NUMBER_DATA_POINT: Message = Message::new(
    "NumberDataPoint",
    fields![
        [7, "attributes", "attributes", FieldKind::Message(&KEY_VALUE), Repeated],
        [2, "startTimeUnixNano", "start_time_unix_nano", FieldKind::Fixed64, Implicit],
        [3, "timeUnixNano", "time_unix_nano", FieldKind::Fixed64, Implicit],
        [4, "asDouble", "as_double", FieldKind::Double, OneOf],
        [6, "asInt", "as_int", FieldKind::Sfixed64, OneOf],
        [5, "exemplars", "exemplars", FieldKind::Message(&EXEMPLAR), Repeated],
        [8, "flags", "flags", FieldKind::Uint32, Implicit],
    ],
);

/// A point of a histogram.
pub static HISTOGRAM_DATA_POINT: Message = Message::new(
    "HistogramDataPoint",
    fields![
        [9, "attributes", "attributes", FieldKind::Message(&KEY_VALUE), Repeated],
        [2, "startTimeUnixNano", "start_time_unix_nano", FieldKind::Fixed64, Implicit],
        [3, "timeUnixNano", "time_unix_nano", FieldKind::Fixed64, Implicit],
        [4, "count", "count", FieldKind::Fixed64, Implicit],
        [5, "sum", "sum", FieldKind::Double, Explicit],
        [6, "bucketCounts", "bucket_counts", FieldKind::Fixed64, Repeated],
        [7, "explicitBounds", "explicit_bounds", FieldKind::Double, Repeated],
        [8, "exemplars", "exemplars", FieldKind::Message(&EXEMPLAR), Repeated],
        [10, "flags", "flags", FieldKind::Uint32, Implicit],
        [11, "min", "min", FieldKind::Double, Explicit],
        [12, "max", "max", FieldKind::Double, Explicit],
    ],
);

/// A point of an exponential histogram.
pub static EXPONENTIAL_HISTOGRAM_DATA_POINT: Message = Message::new(
    "ExponentialHistogramDataPoint",
    fields![
        [1, "attributes", "attributes", FieldKind::Message(&KEY_VALUE), Repeated],
        [2, "startTimeUnixNano", "start_time_unix_nano", FieldKind::Fixed64, Implicit],
        [3, "timeUnixNano", "time_unix_nano", FieldKind::Fixed64, Implicit],
        [4, "count", "count", FieldKind::Fixed64, Implicit],
        [5, "sum", "sum", FieldKind::Double, Explicit],
        [6, "scale", "scale", FieldKind::Sint32, Implicit],
        [7, "zeroCount", "zero_count", FieldKind::Fixed64, Implicit],
        [8, "positive", "positive", FieldKind::Message(&BUCKETS), Always],
        [9, "negative", "negative", FieldKind::Message(&BUCKETS), Always],
        [10, "flags", "flags", FieldKind::Uint32, Implicit],
        [11, "exemplars", "exemplars", FieldKind::Message(&EXEMPLAR), Repeated],
        [12, "min", "min", FieldKind::Double, Explicit],
        [13, "max", "max", FieldKind::Double, Explicit],
        [14, "zeroThreshold", "zero_threshold", FieldKind::Double, Implicit],
    ],
);

/// The buckets of one sign.
pub static BUCKETS: Message = Message::new(
    "Buckets",
    fields![
        [1, "offset", "offset", FieldKind::Sint32, Implicit],
        [2, "bucketCounts", "bucket_counts", FieldKind::Uint64, Repeated],
    ],
);

/// A point of a summary.
pub static SUMMARY_DATA_POINT: Message = Message::new(
    "SummaryDataPoint",
    fields![
        [7, "attributes", "attributes", FieldKind::Message(&KEY_VALUE), Repeated],
        [2, "startTimeUnixNano", "start_time_unix_nano", FieldKind::Fixed64, Implicit],
        [3, "timeUnixNano", "time_unix_nano", FieldKind::Fixed64, Implicit],
        [4, "count", "count", FieldKind::Fixed64, Implicit],
        [5, "sum", "sum", FieldKind::Double, Implicit],
        [6, "quantileValues", "quantile_values", FieldKind::Message(&VALUE_AT_QUANTILE), Repeated],
        [8, "flags", "flags", FieldKind::Uint32, Implicit],
    ],
);

/// One quantile of a summary.
pub static VALUE_AT_QUANTILE: Message = Message::new(
    "ValueAtQuantile",
    fields![
        [1, "quantile", "quantile", FieldKind::Double, Implicit],
        [2, "value", "value", FieldKind::Double, Implicit],
    ],
);

/// A measurement that went into a point.
pub static EXEMPLAR: Message = Message::new(
    "Exemplar",
    fields![
        [7, "filteredAttributes", "filtered_attributes", FieldKind::Message(&KEY_VALUE), Repeated],
        [2, "timeUnixNano", "time_unix_nano", FieldKind::Fixed64, Implicit],
        [3, "asDouble", "as_double", FieldKind::Double, OneOf],
        [6, "asInt", "as_int", FieldKind::Sfixed64, OneOf],
        [5, "traceId", "trace_id", FieldKind::Id(16), Implicit],
        [4, "spanId", "span_id", FieldKind::Id(8), Implicit],
    ],
);

/// The names of temporalities, by number.
pub const TEMPORALITIES: &[&str] =
    &["AGGREGATION_TEMPORALITY_UNSPECIFIED", "AGGREGATION_TEMPORALITY_DELTA", "AGGREGATION_TEMPORALITY_CUMULATIVE"];
