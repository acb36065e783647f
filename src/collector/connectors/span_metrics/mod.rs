//! The `span_metrics` connector: counts spans and their durations, by resource and by what the spans say.
//!
//! Spans are read where they lie, in wire form. A span finds its series by a key that is written into a buffer which is
//! used again and again, so that nothing is allocated for a series that is known ([`aggregate`]). Every
//! `metrics_flush_interval`, and once more at the stop, the state is written as OTLP ([`connector`]).
//!
//! Differences from the reference, on purpose: a new cumulative series has its true count at the first flush (there it
//! is 0 at first), spans that came after the last flush are counted at the stop (there they are lost), and spans that
//! lack different dimensions are different series (there `a=x` without `b` and `b=x` without `a` are one).

mod aggregate;
mod config;
mod connector;
#[cfg(test)]
mod tests;

pub use config::FACTORY;
