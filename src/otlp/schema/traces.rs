//! Spans.

use super::common::KEY_VALUE;
use super::table::{Field, FieldKind, Message, Presence, fields};

/// A span.
pub static SPAN: Message = Message::new(
    "Span",
    fields![
        [1, "traceId", "trace_id", FieldKind::Id(16), Implicit],
        [2, "spanId", "span_id", FieldKind::Id(8), Implicit],
        [3, "traceState", "trace_state", FieldKind::String, Implicit],
        [4, "parentSpanId", "parent_span_id", FieldKind::Id(8), Implicit],
        [16, "flags", "flags", FieldKind::Fixed32, Implicit],
        [5, "name", "name", FieldKind::String, Implicit],
        [6, "kind", "kind", FieldKind::Enum(SPAN_KINDS), Implicit],
        [7, "startTimeUnixNano", "start_time_unix_nano", FieldKind::Fixed64, Implicit],
        [8, "endTimeUnixNano", "end_time_unix_nano", FieldKind::Fixed64, Implicit],
        [9, "attributes", "attributes", FieldKind::Message(&KEY_VALUE), Repeated],
        [10, "droppedAttributesCount", "dropped_attributes_count", FieldKind::Uint32, Implicit],
        [11, "events", "events", FieldKind::Message(&SPAN_EVENT), Repeated],
        [12, "droppedEventsCount", "dropped_events_count", FieldKind::Uint32, Implicit],
        [13, "links", "links", FieldKind::Message(&SPAN_LINK), Repeated],
        [14, "droppedLinksCount", "dropped_links_count", FieldKind::Uint32, Implicit],
        [15, "status", "status", FieldKind::Message(&STATUS), Always],
    ],
);

/// Something that happened within a span.
pub static SPAN_EVENT: Message = Message::new(
    "Event",
    fields![
        [1, "timeUnixNano", "time_unix_nano", FieldKind::Fixed64, Implicit],
        [2, "name", "name", FieldKind::String, Implicit],
        [3, "attributes", "attributes", FieldKind::Message(&KEY_VALUE), Repeated],
        [4, "droppedAttributesCount", "dropped_attributes_count", FieldKind::Uint32, Implicit],
    ],
);

/// Another span that a span belongs to.
pub static SPAN_LINK: Message = Message::new(
    "Link",
    fields![
        [1, "traceId", "trace_id", FieldKind::Id(16), Implicit],
        [2, "spanId", "span_id", FieldKind::Id(8), Implicit],
        [3, "traceState", "trace_state", FieldKind::String, Implicit],
        [4, "attributes", "attributes", FieldKind::Message(&KEY_VALUE), Repeated],
        [5, "droppedAttributesCount", "dropped_attributes_count", FieldKind::Uint32, Implicit],
        [6, "flags", "flags", FieldKind::Fixed32, Implicit],
    ],
);

/// How a span ended.
pub static STATUS: Message = Message::new(
    "Status",
    fields![
        [2, "message", "message", FieldKind::String, Implicit],
        [3, "code", "code", FieldKind::Enum(STATUS_CODES), Implicit],
    ],
);

/// The names of span kinds, by number.
pub const SPAN_KINDS: &[&str] = &[
    "SPAN_KIND_UNSPECIFIED",
    "SPAN_KIND_INTERNAL",
    "SPAN_KIND_SERVER",
    "SPAN_KIND_CLIENT",
    "SPAN_KIND_PRODUCER",
    "SPAN_KIND_CONSUMER",
];

/// The names of status codes, by number.
pub const STATUS_CODES: &[&str] = &["STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"];
