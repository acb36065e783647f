//! The extensions, one line each.

mod health_check;

use super::component::{Extension, Factory};

/// Every kind of extension.
pub const EXTENSIONS: &[Factory<dyn Extension>] = &[health_check::FACTORY];
