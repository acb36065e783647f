//! The prometheus receiver: scrapes metric pages of HTTP targets and turns them into OTLP.
//!
//! From page to payload: [`exposition`] reads the lines, [`labels`] adds the target's labels, [`family`] gathers series
//! into points, [`batch`] sorts them by resource and scope; [`target`] remembers what the former pages had. All of that is
//! pure; the loops that fetch pages and hand payloads on stand in `receiver`.

pub mod batch;
mod config;
pub mod duration;
pub mod exposition;
mod exposition_lexer;
mod exposition_parser;
pub mod family;
mod fetch;
pub mod group;
pub mod labels;
pub mod metadata;
pub mod number;
mod receiver;
pub mod resource;
pub mod series;
pub mod target;

pub use config::FACTORY;
