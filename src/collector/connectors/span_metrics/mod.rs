//! The `span_metrics` connector: counts spans and their durations, by resource and by what the spans say.
//!
//! Spans are read where they lie, in wire form. A span finds its series by a key that is written into a buffer which is
//! used again and again, so that nothing is allocated for a series that is known ([`aggregate`]). Every
//! `metrics_flush_interval`, and once more at the stop, the state is written as OTLP ([`flush`], [`connector`]).
//!
//! Differences from the reference, on purpose: a new cumulative series has its true count at the first flush (there it
//! is 0 at first), spans that came after the last flush are counted at the stop (there they are lost), and with delta
//! temporality each resource has its own starts (there those of equal series of two resources are mixed up).

mod aggregate;
mod config;
mod connector;
mod dimensions;
mod exponential;
mod flush;
mod resources;
mod series;
#[cfg(test)]
mod tests;
mod trace_state;

pub use config::FACTORY;
