//! What happened, as data with a time: the only way out of the supervisor.
//!
//! `events.jsonl` has one line for each [`Event`]; the terminal, `result.json` and gymrun's own telemetry are readers of
//! the same stream. Nothing in an event is secret: argv cannot hold one, and environments are not part of it.

mod ends;
mod event;
mod explanation;
mod samples;
mod sink;

pub use ends::{ExitStatus, OutcomeClass, StopReason};
pub use event::{Event, EventKind, Means};
pub use explanation::{Explanation, Finding, Held, MemoryAtDeath, Place, Resource};
pub(crate) use samples::is_zero;
pub use samples::{CgroupMemory, Delivery, HostMemory, Sample, SignalDelivery, TreeSample};
pub use sink::{Closing, Sink};
