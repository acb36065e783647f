//! Files written as a whole (a reader sees the old content or the new, never a part), room that is reserved for one that is
//! written at the end, files opened of which somebody may have made something else, and logs read from their end.
//!
//! The one home of this; it knows nothing of what the files are.

mod open;
mod reserved;
mod tail;
mod whole;

pub use open::{open_file, open_log, read_file};
pub use reserved::Reserved;
pub use tail::{LogFiles, LogPlace, Unreadable};
pub use whole::{write_synced, write_whole};
