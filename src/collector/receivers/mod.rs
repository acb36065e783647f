//! The receivers, one line each.

use super::component::{Factory, Receiver};

/// Every kind of receiver.
pub const RECEIVERS: &[Factory<dyn Receiver>] = &[];
