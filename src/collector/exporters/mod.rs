//! The exporters, one line each.

use super::component::{Exporter, Factory};

/// Every kind of exporter.
pub const EXPORTERS: &[Factory<dyn Exporter>] = &[];
