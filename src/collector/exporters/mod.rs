//! The exporters, one line each.

mod file;
mod nop;
mod otlp_http;

use super::component::{Exporter, Factory};

/// Every kind of exporter.
pub const EXPORTERS: &[Factory<dyn Exporter>] = &[file::FACTORY, nop::FACTORY, otlp_http::FACTORY];
