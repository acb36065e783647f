//! The end of what does not end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::observe::descendants;

/// Kills everything that the bench has started, once it has taken too long; until this is dropped.
pub struct Guard {
    _over: Sender<()>,
    fired: Arc<AtomicBool>,
}

impl Guard {
    pub fn set(limit: Duration) -> Self {
        let (over, wait) = channel::<()>();
        let fired = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&fired);
        thread::spawn(move || {
            if matches!(wait.recv_timeout(limit), Err(RecvTimeoutError::Timeout)) {
                flag.store(true, Ordering::SeqCst);
                kill_all();
            }
        });
        Self { _over: over, fired }
    }

    /// Whether the time was over.
    pub fn fired(&self) -> bool {
        self.fired.load(Ordering::SeqCst)
    }
}

/// Kills everything that the bench has started when this is dropped: what is left after a part that failed.
pub struct Sweep;

impl Drop for Sweep {
    fn drop(&mut self) {
        kill_all();
    }
}

fn kill_all() {
    for pid in descendants(std::process::id()) {
        // One that is gone by now needs no killing.
        let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
    }
}
