//! What the numbers mean: every OTLP message as a table, from which validation, JSON out and JSON in
//! are driven. Fields stand in the order of the proto files, which is the order in which the
//! reference collector writes JSON (span flags come fourth although their number is 16).
//!
//! Source: opentelemetry-proto 1.9 and the reference's pdata package.

mod common;
mod logs;
mod metrics;
mod table;
mod traces;

pub use common::{ANY_VALUE, ENTITY_REF, KEY_VALUE, RESOURCE, SCOPE};
pub use logs::{LOG_RECORD, SEVERITY_NUMBERS};
pub use metrics::{METRIC, TEMPORALITIES};
pub use table::{Field, FieldKind, Message, Presence};
pub use traces::{SPAN, SPAN_KINDS, STATUS_CODES};
