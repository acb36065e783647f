//! Finds, orders and reads job and site files.
//!
//! A Lua file and a YAML file give the same thing: a [`Node`], a tree of values each with its place. Layers are merged
//! on nodes, before anything is checked.

mod node;
mod world;

pub use node::{Node, NodeValue};
pub use world::{TIME_LIMIT, World};
