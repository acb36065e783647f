//! The `transform` processor: statements of OTTL ([`crate::collector::ottl`]) that edit telemetry.

mod config;
mod processor;

pub use config::FACTORY;
