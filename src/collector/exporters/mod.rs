//! The exporters, one line each.

mod file;
mod otlp_http;

use super::component::{Exporter, Factory};

/// Every kind of exporter.
pub const EXPORTERS: &[Factory<dyn Exporter>] = &[file::FACTORY, otlp_http::FACTORY];
