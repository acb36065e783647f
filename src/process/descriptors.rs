//! How many files gymrun may have open.
//!
//! It needs one for each port that it keeps, each pipe and each process that it watches, so it takes all that it may. What
//! it starts gets the limit that gymrun was given: a program that uses `select()` breaks down with numbers above 1023.

use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

static GIVEN: OnceLock<(u64, u64)> = OnceLock::new();

/// Raises gymrun's own limit to the highest that it may have. To be called before anything is started.
pub fn take_all_descriptors() {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    // Where it cannot be raised the limit is what it was, and running out of it is said then.
    if soft < hard && GIVEN.set((soft, hard)).is_ok() {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// The limit that a child gets, if it is another than gymrun's own.
pub(super) fn given() -> Option<libc::rlimit> {
    GIVEN.get().map(|(soft, hard)| libc::rlimit { rlim_cur: *soft, rlim_max: *hard })
}
