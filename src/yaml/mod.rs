//! Reads people's YAML with source text and lines; writes YAML deterministically.
//!
//! The reader is a loader over the events of `saphyr-parser` that types nothing: a scalar is its source text and whether
//! it was plain, so that `0510210600` or `no` is never changed on the way. What it does do is what a loader owes the
//! author: merge keys are applied, a key that stands twice is refused with both lines, aliases are expanded within a
//! budget, tags that mean nothing are refused, and every value has its line.

mod read;
mod value;
mod write;

pub use read::read;
pub use value::{Yaml, YamlValue};
pub use write::write;

#[cfg(test)]
mod tests;
