//! OTLP/JSON, out of the wire form and into it, driven by the tables of `schema`. There is no decoded
//! form in between: what comes in as JSON is written as wire form at once.

mod any;
mod decode;
mod encode;
mod object;
mod read;
mod text;

pub use any::parse_json;
pub(super) use encode::{is_default, packed};
