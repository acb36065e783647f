//! The `batch` processor.

mod meter;
mod processor;

pub use processor::FACTORY;
