//! The Lua VM, its sandbox, typed hooks: from inputs to a draft.

pub mod schema;
pub mod spec;
