//! The extensions, one line each.

mod file_storage;
mod health_check;

use super::component::{Extension, Factory};

/// Every kind of extension.
pub const EXTENSIONS: &[Factory<dyn Extension>] = &[health_check::FACTORY, file_storage::FACTORY];
