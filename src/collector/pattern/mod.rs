//! Patterns as Go reads them, for the `regex` crate.
//!
//! Both are RE2-like and agree on what matches; they do not agree on what is a pattern. So each pattern is read as Go
//! does it and written anew in the crate's syntax ([`translation`]): Go's `\d`, `\w`, `\s` and `\b` are ASCII, a brace that
//! counts nothing is itself, `\Q...\E` quotes, names of groups may begin with a digit and come twice.

mod compiled;
mod translation;

pub use compiled::{Pattern, compile};
