//! The prometheus receiver: scrapes metric pages of HTTP targets and turns them into OTLP.
//!
//! From configuration to target: [`discovery`] gives each address its labels, [`relabel`] changes them.
//!
//! From page to payload: [`exposition`] reads the lines, [`record`] adds the target's labels, lets [`relabel`] change or
//! drop the sample, and remembers what the former pages had; [`points`] gathers samples into points and writes them. All
//! of that is pure; the loops that fetch pages and hand payloads on stand in [`scrape`].

mod config;
mod discovery;
pub mod exposition;
#[doc(hidden)]
pub mod fuzzing;
mod points;
mod record;
mod relabel;
mod scrape;

pub use config::FACTORY;
