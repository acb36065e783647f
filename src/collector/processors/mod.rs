//! The processors, one line each.

use super::component::{Factory, Processor};

/// Every kind of processor.
pub const PROCESSORS: &[Factory<dyn Processor>] = &[];
