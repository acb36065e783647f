//! OTTL: statements that edit telemetry, and conditions on it, as the reference's processors `transform` and `filter`
//! take them.
//!
//! A statement is read ([`parser`]) and given its meaning ([`compile`]) when the configuration is checked: names of
//! paths become fields of the wire form ([`place`]), names of functions become functions, literals are looked at. What
//! this collector does not have is a [`Fault`] there, with its place in the statement and what there is instead.
//!
//! A statement runs on a [`Scene`]: one item and what is around it. Items stay in wire form: reading a field looks for
//! it there, and only what is written makes an item anew ([`crate::otlp::Edit`]). [`walk`] goes through a payload and
//! puts what has changed back.

mod arguments;
mod compile;
mod context;
mod depth;
mod expression;
mod fault;
mod functions;
mod group;
mod indexed;
mod keys;
#[cfg(test)]
mod large;
mod lexer;
mod parser;
mod place;
mod read;
mod scene;
mod syntax;
mod trace_state;
mod value;
mod walk;
mod write;

pub use context::Level;
use fault::{Fault, Faults};
pub use group::{Conditions, ErrorMode, Group, Style, Wrong, misread};
pub use scene::Scene;
pub use walk::walk;
