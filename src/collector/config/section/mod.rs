//! A map of the configuration as a component reads it.

mod findings;
mod reader;
mod values;

pub use findings::Findings;
pub use reader::Section;
