//! gymrun's own telemetry: events and samples as OTLP.
//!
//! One trace of the job (its parts are spans) and the metrics of NeMo Gym's memory profiling go to the job's collector as
//! `<group>/orchestrator`. [`JobTrace`] makes the ids before anything runs, since the driver's `TRACEPARENT` needs them;
//! [`Exporter`] is fed events and must be finished before the collector is stopped. Nothing here can change the result.

mod exporter;
mod metrics;
mod trace;

pub use exporter::Exporter;
pub use trace::JobTrace;
