//! Which items a processor is for: `include` and `exclude` with lists of names and attributes, as several processors
//! of the reference have them.

mod config;
mod properties;

pub(super) use config::{Forms, attributes, match_type, read, texts_of};
pub(super) use properties::{Matching, Properties};
