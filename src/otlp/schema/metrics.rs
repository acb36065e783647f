//! Metrics and their data points.

use super::common::KEY_VALUE;
use super::table::{Field, Kind, Message, Presence, fields};

/// A metric with its data points.
pub static METRIC: Message = Message::new(
    "Metric",
    fields![
        [1, "name", "name", Kind::String, Implicit],
        [2, "description", "description", Kind::String, Implicit],
        [3, "unit", "unit", Kind::String, Implicit],
        [5, "gauge", "gauge", Kind::Message(&GAUGE), OneOf],
        [7, "sum", "sum", Kind::Message(&SUM), OneOf],
        [9, "histogram", "histogram", Kind::Message(&HISTOGRAM), OneOf],
        [10, "exponentialHistogram", "exponential_histogram", Kind::Message(&EXPONENTIAL_HISTOGRAM), OneOf],
        [11, "summary", "summary", Kind::Message(&SUMMARY), OneOf],
        [12, "metadata", "metadata", Kind::Message(&KEY_VALUE), Repeated],
    ],
);

/// Current values.
pub static GAUGE: Message =
    Message::new("Gauge", fields![[1, "dataPoints", "data_points", Kind::Message(&NUMBER_DATA_POINT), Repeated]]);

/// Sums over time.
pub static SUM: Message = Message::new(
    "Sum",
    fields![
        [1, "dataPoints", "data_points", Kind::Message(&NUMBER_DATA_POINT), Repeated],
        [2, "aggregationTemporality", "aggregation_temporality", Kind::Enum(TEMPORALITIES), Implicit],
        [3, "isMonotonic", "is_monotonic", Kind::Bool, Implicit],
    ],
);

/// Distributions with explicit bounds.
pub static HISTOGRAM: Message = Message::new(
    "Histogram",
    fields![
        [1, "dataPoints", "data_points", Kind::Message(&HISTOGRAM_DATA_POINT), Repeated],
        [2, "aggregationTemporality", "aggregation_temporality", Kind::Enum(TEMPORALITIES), Implicit],
    ],
);

/// Distributions with exponential bounds.
pub static EXPONENTIAL_HISTOGRAM: Message = Message::new(
    "ExponentialHistogram",
    fields![
        [1, "dataPoints", "data_points", Kind::Message(&EXPONENTIAL_HISTOGRAM_DATA_POINT), Repeated],
        [2, "aggregationTemporality", "aggregation_temporality", Kind::Enum(TEMPORALITIES), Implicit],
    ],
);

/// Precomputed quantiles.
pub static SUMMARY: Message =
    Message::new("Summary", fields![[1, "dataPoints", "data_points", Kind::Message(&SUMMARY_DATA_POINT), Repeated]]);

/// A point of a gauge or sum.
pub static NUMBER_DATA_POINT: Message = Message::new(
    "NumberDataPoint",
    fields![
        [7, "attributes", "attributes", Kind::Message(&KEY_VALUE), Repeated],
        [2, "startTimeUnixNano", "start_time_unix_nano", Kind::Fixed64, Implicit],
        [3, "timeUnixNano", "time_unix_nano", Kind::Fixed64, Implicit],
        [4, "asDouble", "as_double", Kind::Double, OneOf],
        [6, "asInt", "as_int", Kind::Sfixed64, OneOf],
        [5, "exemplars", "exemplars", Kind::Message(&EXEMPLAR), Repeated],
        [8, "flags", "flags", Kind::Uint32, Implicit],
    ],
);

/// A point of a histogram.
pub static HISTOGRAM_DATA_POINT: Message = Message::new(
    "HistogramDataPoint",
    fields![
        [9, "attributes", "attributes", Kind::Message(&KEY_VALUE), Repeated],
        [2, "startTimeUnixNano", "start_time_unix_nano", Kind::Fixed64, Implicit],
        [3, "timeUnixNano", "time_unix_nano", Kind::Fixed64, Implicit],
        [4, "count", "count", Kind::Fixed64, Implicit],
        [5, "sum", "sum", Kind::Double, Explicit],
        [6, "bucketCounts", "bucket_counts", Kind::Fixed64, Repeated],
        [7, "explicitBounds", "explicit_bounds", Kind::Double, Repeated],
        [8, "exemplars", "exemplars", Kind::Message(&EXEMPLAR), Repeated],
        [10, "flags", "flags", Kind::Uint32, Implicit],
        [11, "min", "min", Kind::Double, Explicit],
        [12, "max", "max", Kind::Double, Explicit],
    ],
);

/// A point of an exponential histogram.
pub static EXPONENTIAL_HISTOGRAM_DATA_POINT: Message = Message::new(
    "ExponentialHistogramDataPoint",
    fields![
        [1, "attributes", "attributes", Kind::Message(&KEY_VALUE), Repeated],
        [2, "startTimeUnixNano", "start_time_unix_nano", Kind::Fixed64, Implicit],
        [3, "timeUnixNano", "time_unix_nano", Kind::Fixed64, Implicit],
        [4, "count", "count", Kind::Fixed64, Implicit],
        [5, "sum", "sum", Kind::Double, Explicit],
        [6, "scale", "scale", Kind::Sint32, Implicit],
        [7, "zeroCount", "zero_count", Kind::Fixed64, Implicit],
        [8, "positive", "positive", Kind::Message(&BUCKETS), Always],
        [9, "negative", "negative", Kind::Message(&BUCKETS), Always],
        [10, "flags", "flags", Kind::Uint32, Implicit],
        [11, "exemplars", "exemplars", Kind::Message(&EXEMPLAR), Repeated],
        [12, "min", "min", Kind::Double, Explicit],
        [13, "max", "max", Kind::Double, Explicit],
        [14, "zeroThreshold", "zero_threshold", Kind::Double, Implicit],
    ],
);

/// The buckets of one sign.
pub static BUCKETS: Message = Message::new(
    "Buckets",
    fields![
        [1, "offset", "offset", Kind::Sint32, Implicit],
        [2, "bucketCounts", "bucket_counts", Kind::Uint64, Repeated],
    ],
);

/// A point of a summary.
pub static SUMMARY_DATA_POINT: Message = Message::new(
    "SummaryDataPoint",
    fields![
        [7, "attributes", "attributes", Kind::Message(&KEY_VALUE), Repeated],
        [2, "startTimeUnixNano", "start_time_unix_nano", Kind::Fixed64, Implicit],
        [3, "timeUnixNano", "time_unix_nano", Kind::Fixed64, Implicit],
        [4, "count", "count", Kind::Fixed64, Implicit],
        [5, "sum", "sum", Kind::Double, Implicit],
        [6, "quantileValues", "quantile_values", Kind::Message(&VALUE_AT_QUANTILE), Repeated],
        [8, "flags", "flags", Kind::Uint32, Implicit],
    ],
);

/// One quantile of a summary.
pub static VALUE_AT_QUANTILE: Message = Message::new(
    "ValueAtQuantile",
    fields![[1, "quantile", "quantile", Kind::Double, Implicit], [2, "value", "value", Kind::Double, Implicit],],
);

/// A measurement that went into a point.
pub static EXEMPLAR: Message = Message::new(
    "Exemplar",
    fields![
        [7, "filteredAttributes", "filtered_attributes", Kind::Message(&KEY_VALUE), Repeated],
        [2, "timeUnixNano", "time_unix_nano", Kind::Fixed64, Implicit],
        [3, "asDouble", "as_double", Kind::Double, OneOf],
        [6, "asInt", "as_int", Kind::Sfixed64, OneOf],
        [5, "traceId", "trace_id", Kind::Id(16), Implicit],
        [4, "spanId", "span_id", Kind::Id(8), Implicit],
    ],
);

/// The names of temporalities, by number.
pub const TEMPORALITIES: &[&str] =
    &["AGGREGATION_TEMPORALITY_UNSPECIFIED", "AGGREGATION_TEMPORALITY_DELTA", "AGGREGATION_TEMPORALITY_CUMULATIVE"];
