//! The processors, one line each.

mod actions;
mod attributes;
mod batch;
mod filter;
mod matching;
mod memory_limiter;
mod resource;
mod statements;
mod transform;

use super::component::{Factory, Processor};

/// Every kind of processor.
pub const PROCESSORS: &[Factory<dyn Processor>] = &[
    attributes::FACTORY,
    batch::FACTORY,
    filter::FACTORY,
    memory_limiter::FACTORY,
    resource::FACTORY,
    transform::FACTORY,
];
