//! The `transform` processor: statements of OTTL ([`crate::collector::ottl`]) that edit telemetry.

mod config;
mod processor;

pub use config::FACTORY;
pub(super) use config::{context, error_mode, inner_list, list, texts};
