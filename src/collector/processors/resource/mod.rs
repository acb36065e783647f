//! The `resource` processor: a list of actions on the attributes of each resource.

mod action;
mod config;
mod convert;

pub use config::FACTORY;
