//! Steps of the test program that multiply.

use std::time::{Duration, Instant};

use nix::unistd::{ForkResult, fork, setsid};

use super::child::end;

/// Forks again and again, as each child does, each in a session of its own, for that long: as many as the limit of processes
/// lets there be at once.
#[expect(unsafe_code, reason = "the program is to fork, and has one thread when it does")]
pub fn multiply(seconds: f64) {
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    while Instant::now() < until {
        // SAFETY: the child has all that it needs, since there is no other thread that could hold a lock.
        if let Ok(ForkResult::Child) = unsafe { fork() } {
            let _ = setsid();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    end(0);
}
