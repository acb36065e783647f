//! How a process ended.

use crate::events::ExitStatus;

/// Exactly what the kernel said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code, 0 to 255.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl From<Exit> for ExitStatus {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Code(code) => Self { code: Some(code), signal: None },
            Exit::Signal(signal) => Self { code: None, signal: Some(signal) },
        }
    }
}
