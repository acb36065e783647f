//! The exporters, one line each.

mod debug;
mod file;
#[doc(hidden)]
pub mod fuzzing;
mod nop;
mod otlp_grpc;
mod otlp_http;
mod own_metrics;
mod sending;

pub use file::OpenedFiles;
pub(super) use own_metrics::read as read_own_exporter;

use super::component::{Exporter, Factory};

/// Every kind of exporter.
pub const EXPORTERS: &[Factory<dyn Exporter>] =
    &[file::FACTORY, otlp_http::FACTORY, otlp_grpc::FACTORY, debug::FACTORY, nop::FACTORY];
