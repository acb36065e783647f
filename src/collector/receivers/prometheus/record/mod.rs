//! What the pages of one target become, each with what the earlier ones had.

mod cache;
mod labels;
mod repeat;
mod rules;
mod target;
#[cfg(test)]
mod tests;
mod warnings;

pub use labels::{Labels, METRIC_NAME};
pub use rules::{Limits, Rules};
pub use target::{Failure, Memory, Page, Times};
