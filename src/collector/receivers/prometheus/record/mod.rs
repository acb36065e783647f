//! What the pages of one target become, each with what the former ones had.

mod cache;
mod former;
mod labels;
mod rules;
mod target;
#[cfg(test)]
mod tests;

pub use labels::{Labels, METRIC_NAME};
pub use rules::{Limits, Rules};
pub use target::{Failure, Memory, Page, Times};
