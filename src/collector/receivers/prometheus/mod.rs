//! The prometheus receiver: scrapes metric pages of HTTP targets and turns them into OTLP.
//!
//! From page to payload: [`exposition`] reads the lines, [`labels`] adds the target's labels, [`family`] gathers series
//! into points, [`batch`] sorts them by resource and scope; [`target`] remembers what the former pages had.

pub mod batch;
pub mod exposition;
mod exposition_lexer;
pub mod family;
pub mod labels;
pub mod metadata;
pub mod number;
pub mod resource;
pub mod series;
pub mod target;
