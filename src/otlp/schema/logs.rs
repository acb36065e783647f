//! Log records.

use super::common::{ANY_VALUE, KEY_VALUE};
use super::table::{Field, FieldKind, Message, Presence, fields};

/// A log record.
pub static LOG_RECORD: Message = Message::new(
    "LogRecord",
    fields![
        [1, "timeUnixNano", "time_unix_nano", FieldKind::Fixed64, Implicit],
        [11, "observedTimeUnixNano", "observed_time_unix_nano", FieldKind::Fixed64, Implicit],
        [2, "severityNumber", "severity_number", FieldKind::Enum(SEVERITY_NUMBERS), Implicit],
        [3, "severityText", "severity_text", FieldKind::String, Implicit],
        [5, "body", "body", FieldKind::Message(&ANY_VALUE), Always],
        [6, "attributes", "attributes", FieldKind::Message(&KEY_VALUE), Repeated],
        [7, "droppedAttributesCount", "dropped_attributes_count", FieldKind::Uint32, Implicit],
        [8, "flags", "flags", FieldKind::Fixed32, Implicit],
        [9, "traceId", "trace_id", FieldKind::Id(16), Implicit],
        [10, "spanId", "span_id", FieldKind::Id(8), Implicit],
        [12, "eventName", "event_name", FieldKind::String, Implicit],
    ],
);

/// The names of severities, by number.
pub const SEVERITY_NUMBERS: &[&str] = &[
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
