//! Checks what people wrote against tables of keys, and types it.
//!
//! One entry of a [table](tables) says what a key is called, what it takes, what it is without being said and what it
//! means: checking, reading, "did you mean" and the reference in `docs/` all come from it. Checking never stops at the
//! first problem: a wrong value is reported and then read as its default, so that everything else is found as well.

mod check;
mod defaults;
mod fields;
mod hooks;
mod job;
mod kinds;
mod logs;
mod names;
mod otel;
mod path;
mod probes;
mod process;
mod processes;
mod reference;
mod references;
mod tables;
mod telemetry;
mod value;

#[cfg(test)]
mod tests;

pub use hooks::{arguments, attributes, document, targets, variables};
pub use job::{Checked, check};
pub(super) use path::Path;
pub use reference::reference;
