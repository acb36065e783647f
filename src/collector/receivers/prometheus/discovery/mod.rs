//! From addresses to targets.

mod job;
#[cfg(test)]
mod tests;

pub use job::{Found, Job};
