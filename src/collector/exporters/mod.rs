//! The exporters, one line each.

mod debug;
mod file;
#[doc(hidden)]
pub mod fuzzing;
mod nop;
mod otlp_grpc;
mod otlp_http;
mod sending;

pub use file::OpenedFiles;

use super::component::{Exporter, Factory};

/// Every kind of exporter.
pub const EXPORTERS: &[Factory<dyn Exporter>] =
    &[file::FACTORY, otlp_http::FACTORY, otlp_grpc::FACTORY, debug::FACTORY, nop::FACTORY];
