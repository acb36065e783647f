//! Actions on attributes, as the processors `resource` and `attributes` have them.

mod action;
mod config;

pub(super) use action::Action;
pub(super) use config::{any_value, read};
