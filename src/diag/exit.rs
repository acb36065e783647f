//! Exit codes of gymrun, documented in `docs/exit-codes.md` and the design.
//!
//! The driver's own code is passed on; 128+N if signal N ended it.

/// The job ran and its driver ended with 0.
pub const OK: i32 = 0;
/// The job or the command line is invalid; nothing was started.
pub const INVALID: i32 = 2;
/// The time limit ended the job.
pub const TIME_LIMIT: i32 = 124;
/// gymrun could not run the job, or a process other than the collector died.
pub const FAILED: i32 = 125;
/// The driver's program is not executable.
pub const NOT_EXECUTABLE: i32 = 126;
/// The driver's program does not exist.
pub const NOT_FOUND: i32 = 127;

/// The code for an end by signal `number`, as a shell gives it: 129 for SIGHUP, 130 for SIGINT, 143 for SIGTERM.
#[must_use]
pub const fn by_signal(number: i32) -> i32 {
    128 + number
}
