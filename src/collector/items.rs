//! The items of a signal in words.

use std::fmt::Display;

use crate::diag::counted;
use crate::otlp::Signal;

/// What the items of a signal are called.
#[must_use]
pub fn items_word(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "spans",
        Signal::Metrics => "data points",
        Signal::Logs => "log records",
    }
}

/// So many items of a signal, in words.
#[must_use]
pub fn counted_items<N: Copy + Display + PartialEq + From<u8>>(signal: Signal, count: N) -> String {
    let many = items_word(signal);
    counted(count, many.trim_end_matches('s'), many)
}
