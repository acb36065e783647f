//! Reads of /proc: process trees, memory, identities, owners of listeners; of the cgroups that it names; of free space.
//!
//! A process is known by its pid and its start time ([`Identity`]), since pids are used again. A process that vanishes
//! between two reads is no error anywhere here: it counts as not there.

mod account;
mod census;
#[cfg(test)]
mod census_tests;
mod cgroup;
mod connection;
mod ends;
mod identity;
mod images;
mod kept;
mod listener;
mod listening;
mod memory;
mod remains;
mod space;
#[cfg(test)]
mod testing;
mod tree;
mod watched;

pub use census::{Census, now};
pub use cgroup::{CgroupVersion, Cgroups, MemoryCgroup};
pub use ends::Ends;
pub use identity::{Identity, Proc, Stat};
pub use listener::{Holder, Listener};
pub use listening::ListenerQuery;
pub use memory::{Host, TreeMemory, own_anonymous_memory, own_resident_memory, page_size};
pub use remains::{Limits, Remains};
pub use space::Space;
#[cfg(test)]
pub(crate) use testing::Family;
pub use tree::Members;
