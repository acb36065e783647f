//! The clock that policy runs against, and the last line of an author's file that was seen running.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use mlua::debug::Debug;

use crate::diag::{Location, Problem};

/// Shared between the thread of the VM, whose hook writes it, and the thread that waits, which reads it when the hook
/// is not reached (a pattern match that backtracks runs in C).
#[derive(Debug)]
pub struct Watch {
    deadline: Instant,
    limit: Duration,
    expired: AtomicBool,
    /// Whether it is the shipped policy that runs, and no author's code.
    ours: AtomicBool,
    last: Mutex<Location>,
}

impl Watch {
    /// A clock that starts now.
    #[must_use]
    pub fn start(limit: Duration) -> Self {
        Self {
            deadline: Instant::now() + limit,
            limit,
            expired: AtomicBool::new(false),
            ours: AtomicBool::new(false),
            last: Mutex::new(Location::default()),
        }
    }

    /// Notes whether it is the shipped policy that runs from here on.
    pub fn note_ours(&self, ours: bool) {
        self.ours.store(ours, Ordering::Relaxed);
    }

    /// Notes the line that is about to run. Lines of the shipped policy do not count: the author is told of their file.
    pub fn note(&self, debug: &Debug) {
        let Some(line) = debug.current_line().and_then(|line| u32::try_from(line).ok()) else { return };
        let source = debug.source();
        let Some(file) = source.source.as_deref().and_then(|name| name.strip_prefix('@')) else { return };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if *last.file != *file {
            last.file = file.into();
        }
        last.line = Some(line);
    }

    /// Whether the time is over. Once true it stays true, so a script that catches the error meets it again.
    pub fn check(&self) -> bool {
        if !self.expired.load(Ordering::Relaxed) && Instant::now() < self.deadline {
            return false;
        }
        self.expired.store(true, Ordering::Relaxed);
        true
    }

    /// Whether the limit has been met.
    #[must_use]
    pub fn expired(&self) -> bool {
        self.expired.load(Ordering::Relaxed)
    }

    /// The last line of an author's file that ran.
    pub fn last_line(&self) -> Location {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the author is told.
    pub fn problem(&self) -> Problem {
        // What the hook has met was an author's.
        if self.ours.load(Ordering::Relaxed) && !self.expired() {
            let text = format!(
                "the job was not read within {} s: gymrun's own policy was still at work",
                self.limit.as_secs_f64()
            );
            return Problem::new(text)
                .hint("no line of yours is to blame but for how much they describe: make the job smaller");
        }
        Problem::new(format!("the script did not end within {} s", self.limit.as_secs_f64()))
            .in_file(self.last_line())
            .hint("this line was the last that was seen running; look for a loop that does not end")
    }
}
