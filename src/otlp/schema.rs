//! What the numbers mean: every OTLP message as a table, from which validation, JSON out and JSON in
//! are driven. Fields stand in the order of the proto files, which is the order in which the
//! reference collector writes JSON (span flags come fourth although their number is 16).
//!
//! Source: opentelemetry-proto 1.9 and the reference's pdata package.

/// One message type.
#[derive(Debug)]
pub struct Message {
    /// The name in the proto files, for error texts.
    pub name: &'static str,
    /// The fields in JSON order.
    pub fields: &'static [Field],
    /// Field number to place in `fields` plus one; 0 for a number that is not known.
    slots: [u8; MAX_NUMBER + 1],
}

/// The greatest field number in use.
const MAX_NUMBER: usize = 16;

/// One field of a message.
#[derive(Debug)]
pub struct Field {
    /// The number on the wire.
    pub number: u32,
    /// `"name":` as JSON has it, in lowerCamelCase.
    json_key: &'static str,
    /// The name in the proto files, accepted in JSON too.
    pub snake_name: &'static str,
    /// The type of one value.
    pub kind: Kind,
    /// How often it may be there, and what is written when it is not.
    pub presence: Presence,
}

/// The type of a value.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Text; the reference accepts bytes that are not UTF-8 on the wire, so they are accepted here.
    String,
    /// Bytes; base64 in JSON.
    Bytes,
    /// An id of so many bytes, or none; hexadecimal in JSON.
    Id(usize),
    /// bool.
    Bool,
    /// int32.
    Int32,
    /// uint32.
    Uint32,
    /// sint32 (zigzag).
    Sint32,
    /// int64; text in JSON.
    Int64,
    /// uint64; text in JSON.
    Uint64,
    /// fixed32.
    Fixed32,
    /// fixed64; text in JSON.
    Fixed64,
    /// sfixed64; text in JSON.
    Sfixed64,
    /// double.
    Double,
    /// An enum; the names of its values from 0 on.
    Enum(&'static [&'static str]),
    /// A message.
    Message(&'static Message),
}

/// When a field is written to JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Unless it has its default value.
    Implicit,
    /// Whenever it is on the wire.
    Explicit,
    /// One of a group of which the last on the wire counts; a message of it replaces the former one.
    OneOf,
    /// Always: a message that the reference always holds.
    Always,
    /// As a list, unless empty.
    Repeated,
}

impl Field {
    /// The name with quotes and colon.
    #[inline]
    pub fn json_key(&self) -> &'static str {
        self.json_key
    }

    /// The name in lowerCamelCase.
    #[inline]
    pub fn name(&self) -> &'static str {
        &self.json_key[1..self.json_key.len() - 2]
    }
}

impl Message {
    const fn new(name: &'static str, fields: &'static [Field]) -> Self {
        let mut slots = [0; MAX_NUMBER + 1];
        let mut slot = 0;
        while slot < fields.len() {
            #[expect(clippy::cast_possible_truncation, reason = "a message has at most 16 fields")]
            {
                slots[fields[slot].number as usize] = slot as u8 + 1;
            }
            slot += 1;
        }
        Self { name, fields, slots }
    }

    /// The place of a field number in [`Message::fields`].
    #[inline]
    pub fn slot(&self, number: u32) -> Option<usize> {
        match self.slots.get(number as usize) {
            Some(&slot) if slot > 0 => Some(usize::from(slot) - 1),
            _ => None,
        }
    }
}

/// `[number, "camelName", "snake_name", kind, presence]...`
macro_rules! fields {
    ($([$number:literal, $name:literal, $snake:literal, $kind:expr, $presence:ident]),* $(,)?) => {
        &[$(Field {
            number: $number,
            json_key: concat!("\"", $name, "\":"),
            snake_name: $snake,
            kind: $kind,
            presence: Presence::$presence,
        }),*]
    };
}

/// Any value of an attribute or a log body.
pub static ANY_VALUE: Message = Message::new(
    "AnyValue",
    fields![
        [1, "stringValue", "string_value", Kind::String, OneOf],
        [2, "boolValue", "bool_value", Kind::Bool, OneOf],
        [3, "intValue", "int_value", Kind::Int64, OneOf],
        [4, "doubleValue", "double_value", Kind::Double, OneOf],
        [5, "arrayValue", "array_value", Kind::Message(&ARRAY_VALUE), OneOf],
        [6, "kvlistValue", "kvlist_value", Kind::Message(&KEY_VALUE_LIST), OneOf],
        [7, "bytesValue", "bytes_value", Kind::Bytes, OneOf],
        [8, "stringValueStrindex", "string_value_strindex", Kind::Int32, OneOf],
    ],
);

/// A list of values.
pub static ARRAY_VALUE: Message =
    Message::new("ArrayValue", fields![[1, "values", "values", Kind::Message(&ANY_VALUE), Repeated]]);

/// A map of values.
pub static KEY_VALUE_LIST: Message =
    Message::new("KeyValueList", fields![[1, "values", "values", Kind::Message(&KEY_VALUE), Repeated]]);

/// An attribute.
pub static KEY_VALUE: Message = Message::new(
    "KeyValue",
    fields![
        [1, "key", "key", Kind::String, Implicit],
        [2, "value", "value", Kind::Message(&ANY_VALUE), Always],
        [3, "keyStrindex", "key_strindex", Kind::Int32, Implicit],
    ],
);

/// Who recorded the items.
pub static SCOPE: Message = Message::new(
    "InstrumentationScope",
    fields![
        [1, "name", "name", Kind::String, Implicit],
        [2, "version", "version", Kind::String, Implicit],
        [3, "attributes", "attributes", Kind::Message(&KEY_VALUE), Repeated],
        [4, "droppedAttributesCount", "dropped_attributes_count", Kind::Uint32, Implicit],
    ],
);

/// What the telemetry is about.
pub static RESOURCE: Message = Message::new(
    "Resource",
    fields![
        [1, "attributes", "attributes", Kind::Message(&KEY_VALUE), Repeated],
        [2, "droppedAttributesCount", "dropped_attributes_count", Kind::Uint32, Implicit],
        [3, "entityRefs", "entity_refs", Kind::Message(&ENTITY_REF), Repeated],
    ],
);

/// Which attributes of a resource name an entity.
pub static ENTITY_REF: Message = Message::new(
    "EntityRef",
    fields![
        [1, "schemaUrl", "schema_url", Kind::String, Implicit],
        [2, "type", "type", Kind::String, Implicit],
        [3, "idKeys", "id_keys", Kind::String, Repeated],
        [4, "descriptionKeys", "description_keys", Kind::String, Repeated],
    ],
);

/// A span.
pub static SPAN: Message = Message::new(
    "Span",
    fields![
        [1, "traceId", "trace_id", Kind::Id(16), Implicit],
        [2, "spanId", "span_id", Kind::Id(8), Implicit],
        [3, "traceState", "trace_state", Kind::String, Implicit],
        [4, "parentSpanId", "parent_span_id", Kind::Id(8), Implicit],
        [16, "flags", "flags", Kind::Fixed32, Implicit],
        [5, "name", "name", Kind::String, Implicit],
        [6, "kind", "kind", Kind::Enum(SPAN_KIND), Implicit],
        [7, "startTimeUnixNano", "start_time_unix_nano", Kind::Fixed64, Implicit],
        [8, "endTimeUnixNano", "end_time_unix_nano", Kind::Fixed64, Implicit],
        [9, "attributes", "attributes", Kind::Message(&KEY_VALUE), Repeated],
        [10, "droppedAttributesCount", "dropped_attributes_count", Kind::Uint32, Implicit],
        [11, "events", "events", Kind::Message(&SPAN_EVENT), Repeated],
        [12, "droppedEventsCount", "dropped_events_count", Kind::Uint32, Implicit],
        [13, "links", "links", Kind::Message(&SPAN_LINK), Repeated],
        [14, "droppedLinksCount", "dropped_links_count", Kind::Uint32, Implicit],
        [15, "status", "status", Kind::Message(&STATUS), Always],
    ],
);

/// Something that happened within a span.
pub static SPAN_EVENT: Message = Message::new(
    "Event",
    fields![
        [1, "timeUnixNano", "time_unix_nano", Kind::Fixed64, Implicit],
        [2, "name", "name", Kind::String, Implicit],
        [3, "attributes", "attributes", Kind::Message(&KEY_VALUE), Repeated],
        [4, "droppedAttributesCount", "dropped_attributes_count", Kind::Uint32, Implicit],
    ],
);

/// Another span that a span belongs to.
pub static SPAN_LINK: Message = Message::new(
    "Link",
    fields![
        [1, "traceId", "trace_id", Kind::Id(16), Implicit],
        [2, "spanId", "span_id", Kind::Id(8), Implicit],
        [3, "traceState", "trace_state", Kind::String, Implicit],
        [4, "attributes", "attributes", Kind::Message(&KEY_VALUE), Repeated],
        [5, "droppedAttributesCount", "dropped_attributes_count", Kind::Uint32, Implicit],
        [6, "flags", "flags", Kind::Fixed32, Implicit],
    ],
);

/// How a span ended.
pub static STATUS: Message = Message::new(
    "Status",
    fields![[2, "message", "message", Kind::String, Implicit], [3, "code", "code", Kind::Enum(STATUS_CODE), Implicit],],
);

/// A log record.
pub static LOG_RECORD: Message = Message::new(
    "LogRecord",
    fields![
        [1, "timeUnixNano", "time_unix_nano", Kind::Fixed64, Implicit],
        [11, "observedTimeUnixNano", "observed_time_unix_nano", Kind::Fixed64, Implicit],
        [2, "severityNumber", "severity_number", Kind::Enum(SEVERITY_NUMBER), Implicit],
        [3, "severityText", "severity_text", Kind::String, Implicit],
        [5, "body", "body", Kind::Message(&ANY_VALUE), Always],
        [6, "attributes", "attributes", Kind::Message(&KEY_VALUE), Repeated],
        [7, "droppedAttributesCount", "dropped_attributes_count", Kind::Uint32, Implicit],
        [8, "flags", "flags", Kind::Fixed32, Implicit],
        [9, "traceId", "trace_id", Kind::Id(16), Implicit],
        [10, "spanId", "span_id", Kind::Id(8), Implicit],
        [12, "eventName", "event_name", Kind::String, Implicit],
    ],
);

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
        [2, "aggregationTemporality", "aggregation_temporality", Kind::Enum(TEMPORALITY), Implicit],
        [3, "isMonotonic", "is_monotonic", Kind::Bool, Implicit],
    ],
);

/// Distributions with explicit bounds.
pub static HISTOGRAM: Message = Message::new(
    "Histogram",
    fields![
        [1, "dataPoints", "data_points", Kind::Message(&HISTOGRAM_DATA_POINT), Repeated],
        [2, "aggregationTemporality", "aggregation_temporality", Kind::Enum(TEMPORALITY), Implicit],
    ],
);

/// Distributions with exponential bounds.
pub static EXPONENTIAL_HISTOGRAM: Message = Message::new(
    "ExponentialHistogram",
    fields![
        [1, "dataPoints", "data_points", Kind::Message(&EXPONENTIAL_HISTOGRAM_DATA_POINT), Repeated],
        [2, "aggregationTemporality", "aggregation_temporality", Kind::Enum(TEMPORALITY), Implicit],
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

const SPAN_KIND: &[&str] = &[
    "SPAN_KIND_UNSPECIFIED",
    "SPAN_KIND_INTERNAL",
    "SPAN_KIND_SERVER",
    "SPAN_KIND_CLIENT",
    "SPAN_KIND_PRODUCER",
    "SPAN_KIND_CONSUMER",
];

const STATUS_CODE: &[&str] = &["STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"];

const TEMPORALITY: &[&str] =
    &["AGGREGATION_TEMPORALITY_UNSPECIFIED", "AGGREGATION_TEMPORALITY_DELTA", "AGGREGATION_TEMPORALITY_CUMULATIVE"];

const SEVERITY_NUMBER: &[&str] = &[
    "SEVERITY_NUMBER_UNSPECIFIED",
    "SEVERITY_NUMBER_TRACE",
    "SEVERITY_NUMBER_TRACE2",
    "SEVERITY_NUMBER_TRACE3",
    "SEVERITY_NUMBER_TRACE4",
    "SEVERITY_NUMBER_DEBUG",
    "SEVERITY_NUMBER_DEBUG2",
    "SEVERITY_NUMBER_DEBUG3",
    "SEVERITY_NUMBER_DEBUG4",
    "SEVERITY_NUMBER_INFO",
    "SEVERITY_NUMBER_INFO2",
    "SEVERITY_NUMBER_INFO3",
    "SEVERITY_NUMBER_INFO4",
    "SEVERITY_NUMBER_WARN",
    "SEVERITY_NUMBER_WARN2",
    "SEVERITY_NUMBER_WARN3",
    "SEVERITY_NUMBER_WARN4",
    "SEVERITY_NUMBER_ERROR",
    "SEVERITY_NUMBER_ERROR2",
    "SEVERITY_NUMBER_ERROR3",
    "SEVERITY_NUMBER_ERROR4",
    "SEVERITY_NUMBER_FATAL",
    "SEVERITY_NUMBER_FATAL2",
    "SEVERITY_NUMBER_FATAL3",
    "SEVERITY_NUMBER_FATAL4",
];
