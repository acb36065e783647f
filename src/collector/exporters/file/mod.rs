//! The `file` exporter: each payload as one line of OTLP/JSON.

mod config;
mod writer;

pub use config::FACTORY;
