//! Finds, orders and reads job and site files.
//!
//! A Lua file and a YAML file give the same thing: a [`Node`], a tree of values each with its place. Layers are merged
//! on nodes, before anything is checked. Lua is read by whoever has a VM: it comes in as a function.

mod collect;
mod files;
mod fragments;
mod interpolate;
mod merge;
mod node;
mod read;
mod settings;
mod world;

#[cfg(test)]
mod tests;

pub use collect::{Layers, Request};
pub use files::{Language, SourceFile};
pub use fragments::{BuiltIn, Fragment, Library, ReadFile};
pub use interpolate::{Reading, interpolate};
pub use merge::{merge, prune};
pub use node::{Node, NodeValue};
pub use read::{read_value, read_yaml};
pub use settings::{COMMAND_LINE, settings};
pub use world::{TIME_LIMIT, World};
