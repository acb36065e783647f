//! Patterns as Go reads them, for the `regex` crate.
//!
//! Both are RE2-like and agree on what matches; they do not agree on what is a pattern. So each pattern is read by Go's
//! grammar (`translate`, and `class` for what stands in brackets) and written anew in the crate's syntax, each part in a
//! form that leaves it no choice: Go's `\d`, `\w`, `\s` and `\b` are ASCII, a brace that counts nothing is itself, `\Q...\E`
//! quotes, names of groups may begin with a digit and come twice. What Go refuses is refused, in Go's words.

mod class;
mod compiled;
#[cfg(test)]
mod tests;
mod translate;

pub use compiled::{Pattern, compile};
