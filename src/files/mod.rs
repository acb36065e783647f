//! Files written as a whole: a reader sees the old content or the new, never a part.
//!
//! The one home of this; it knows nothing of what the files are.

mod whole;

pub use whole::write_whole;
