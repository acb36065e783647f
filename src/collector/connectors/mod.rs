//! The connectors, one line each.

mod forward;

pub mod span_metrics;

use super::component::{Connector, Factory};

/// Every kind of connector.
pub const CONNECTORS: &[Factory<dyn Connector>] = &[forward::FACTORY, span_metrics::FACTORY];
