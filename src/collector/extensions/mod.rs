//! The extensions, one line each.

use super::component::{Extension, Factory};

/// Every kind of extension.
pub const EXTENSIONS: &[Factory<dyn Extension>] = &[];
