//! The `filter` processor: drops what conditions ([`crate::collector::ottl`]) or lists of names say.

mod config;
mod processor;

pub use config::FACTORY;
