//! The receivers, one line each.

pub mod otlp;
pub mod prometheus;

use super::component::{Factory, Receiver};

/// Every kind of receiver.
pub const RECEIVERS: &[Factory<dyn Receiver>] = &[otlp::FACTORY, prometheus::FACTORY];
