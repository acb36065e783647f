//! The prometheus receiver: scrapes metric pages of HTTP targets and turns them into OTLP.

pub mod exposition;
mod exposition_lexer;
pub mod labels;
pub mod number;
