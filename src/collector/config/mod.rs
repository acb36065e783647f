//! From the text of a configuration to checked components.
//!
//! [Sources](source) are read, joined and [expanded](expand) to one tree of [nodes](node); each component reads its own
//! [`section`] of it; what is declared, the [`service`] and its [`pipelines`] are checked as a whole. All problems are
//! reported at once, each at its line.

mod addresses;
mod checked;
pub mod duration;
pub mod expand;
#[cfg(test)]
mod expand_tests;
mod files;
pub mod header_notes;
pub mod load;
pub mod node;
pub mod pipelines;
pub mod scalar;
pub mod secrets;
pub mod section;
pub mod service;
pub mod source;

pub(super) use checked::declared;
pub use checked::{Components, Config, Declared};
