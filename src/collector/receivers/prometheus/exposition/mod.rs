//! Reads what a target answers: text 0.0.4 and OpenMetrics 1.0.
//!
//! Accepts and refuses exactly what Prometheus 3.14 does, since a page that one of two collectors rejects makes two
//! different records of one run. A broken line ends the page: the caller then rejects the whole scrape.
//!
//! [`Parser::next_entry`] walks the page once and hands out slices of it. The labels of a sample are decoded only when
//! [`Parser::labels`] is asked for them: a series that was seen before is known by its text.

mod entry;
mod lexer;
mod number;
mod parser;
#[cfg(test)]
mod tests;

pub use entry::{Entry, Exemplar, MetricType, ParseError, Sample, dialect_of};
pub use lexer::Dialect;
pub use number::{canonical, parse_boundary, parse_float};
pub use parser::Parser;
