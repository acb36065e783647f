//! Files written as a whole (a reader sees the old content or the new, never a part), and logs read from their end.
//!
//! The one home of this; it knows nothing of what the files are.

mod tail;
mod whole;

pub use tail::LogFiles;
pub use whole::{Reserved, write_whole};
