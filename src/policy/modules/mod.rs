//! `require "gymrun"`: the host's side of what jobs and fragments call.
//!
//! One file a group of functions, one list of them each. The list feeds registration, the editor's stubs
//! (`lua/types/gymrun.d.lua`) and the reference (`docs/reference/lua.md`); adding a function is adding an entry.

mod constructors;
mod documents;
mod entry;
mod lists;
mod machine;
mod references;
mod stubs;

pub use entry::register;
pub use stubs::{definitions, reference};
