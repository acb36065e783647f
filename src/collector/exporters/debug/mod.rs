//! The `debug` exporter: what goes through, as lines of the collector's own log.
//!
//! `basic` says how much, `normal` a line for each resource, scope and item, `detailed` the whole message as OTLP/JSON. The
//! reference calls its texts unstable; these are gymrun's own.

mod config;
mod text;

pub use config::FACTORY;
