//! Samples become points: gathered by family and labels, sorted by resource and scope, written as OTLP.

mod batch;
mod families;
mod family;
mod group;
mod metadata;
mod resource;
mod series;

pub use batch::{Added, Batch, Slot};
pub use group::{Broken, STALE, TIMES_MS};
pub use metadata::Metadata;
pub use series::{Origin, Series};
