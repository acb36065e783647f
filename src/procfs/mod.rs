//! Reads of /proc: process trees, memory, identities, owners of listeners.
//!
//! A process is known by its pid and its start time ([`Identity`]), since pids are used again. A process that vanishes
//! between two reads is no error anywhere here: it counts as not there.

mod identity;
mod listener;
mod memory;
mod tree;

pub use identity::{Identity, Proc, Stat};
pub use listener::Holder;
pub use memory::{Host, Reading, TreeMemory};
pub use tree::Members;
