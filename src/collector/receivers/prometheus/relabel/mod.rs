//! Relabelling: rules that change, keep or drop the labels of targets and of samples.
//!
//! A [`Rule`] is a step of Prometheus's relabelling, [`apply`] takes the steps in order on a [`Builder`]: label sets
//! that are being changed remember the order of their changes, since `labelmap` may write one label twice.

mod builder;
mod pattern;
mod rule;

pub use builder::Builder;
pub use pattern::Pattern;
pub use rule::{Action, Names, Rule, apply};

#[cfg(test)]
mod tests;
