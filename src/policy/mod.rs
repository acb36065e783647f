//! The Lua VM, its sandbox, typed hooks: from inputs to a draft.
//!
//! [`load`] is the way from a job file to a plan. Everything of it runs on the VM's own thread, within one limit of time.

mod assemble;
mod collector;
mod commands;
mod convert;
mod document;
mod environment;
mod failure;
mod hook_values;
mod hooks;
mod host;
mod late;
mod library;
mod load;
mod modules;
mod sandbox;
pub mod schema;
pub mod spec;
mod tables;
mod units;
mod vm;
mod watch;

pub use host::LogSink;
pub use load::{Request, load};
pub use modules::{definitions, reference};
