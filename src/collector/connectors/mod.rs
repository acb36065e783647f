//! The connectors, one line each.

use super::component::{Connector, Factory};

/// Every kind of connector.
pub const CONNECTORS: &[Factory<dyn Connector>] = &[];
