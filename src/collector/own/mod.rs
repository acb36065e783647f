//! What the collector says about itself: metrics by the reference's names, its resource, its log.
//!
//! Components count in [`Counters`](super::counters::Counters) and [`Meters`] whether or not anybody looks: an addition
//! each. A [`Reader`] gathers the numbers when it is asked (`pull`) or at its interval (`periodic`). The `report` is written
//! to files at the very end, when everything has been decided.

mod config;
mod family;
mod gather;
mod instruments;
mod logs;
mod meters;
mod page;
mod payload;
mod pull;
mod push;
mod readers;
mod resource;
mod watch;

pub use config::{Telemetry, read};
pub use family::{Families, Label, Labels, Number, labels};
pub use gather::Gatherer;
pub use instruments::{
    ACCEPTED, BATCH_BY_SIZE, BATCH_BY_TIME, BATCH_BYTES, BATCH_CARDINALITY, BATCH_SIZE, Detail, ENQUEUE_FAILED, FAILED,
    IN_FLIGHT, QUEUE_CAPACITY, QUEUE_SIZE, REFUSED, SEND_FAILED, SENT, of,
};
pub use logs::LogSettings;
pub use meters::{Buckets, Count, Meters};
pub use readers::{Reader, Readers};
pub use resource::{Attributes, OwnResource, random_id, with_defaults};
pub use watch::Watch;
