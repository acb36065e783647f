//! Go's `Sprintf`, for the values that statements have.
//!
//! `format` walks through the format, `print` prints a value as its verb says, `number` makes the digits of doubles, `quote`
//! puts texts into quotes.

mod format;
mod number;
mod print;
mod quote;
#[cfg(test)]
mod tests;

pub use format::{Printable, format};
pub use number::shortest;
