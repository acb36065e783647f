//! Texts as the reference collector reads and writes them: numbers, patterns, letter cases, values as text.

pub mod glob;
pub mod go_format;
pub mod go_number;
pub mod letter_case;
pub mod pattern;
pub mod percent;
pub mod trace_state;
pub mod value_text;
