//! The processors, one line each.

mod batch;
mod resource;
mod transform;

use super::component::{Factory, Processor};

/// Every kind of processor.
pub const PROCESSORS: &[Factory<dyn Processor>] = &[batch::FACTORY, resource::FACTORY, transform::FACTORY];
