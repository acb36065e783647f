//! OTLP: the wire form, views on it, JSON in and out.
//!
//! The wire form is the one form of spans, points and log records: it is validated when it comes in
//! ([`Payload::decode`]), passed on as shared slices, and read by views where someone looks inside.
//! Only resources, metric names and schema URLs are decoded, since those are what pipelines change.

mod chunks;
mod edit;
mod json;
mod metric;
mod payload;
mod records;
mod reference;
mod resource;
mod same;
mod schema;
mod validate;
mod value;
mod view;
pub mod wire;

pub use chunks::Chunks;
pub use edit::Edit;
pub use json::parse_json;
pub use metric::Metric;
pub use payload::{Payload, ResourceItems, ScopeItems, Signal, encode_scope};
pub use records::{Items, Records, Revision};
pub use resource::Resource;
pub use same::{same, same_list, same_map};
pub use schema::{SEVERITY_NUMBERS, SPAN_KINDS, STATUS_CODES, TEMPORALITIES};
pub use validate::DecodeError;
pub use value::{AnyValue, DEEPEST_VALUE, KeyValue, Text};
pub use view::{Attributes, EventView, LogView, SpanView, ValueView};
