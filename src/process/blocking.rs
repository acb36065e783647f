//! A runtime that can always do something that may block.

use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// As good as.
const FOR_EVER: Duration = Duration::from_hours(24 * 365);
/// So many things may block at a time; what comes then waits for one of them.
const THREADS: usize = 64;

/// Builds a runtime in which a thread that may block is there from the start, and all that there ever are stay: where no
/// further one can be made (`ulimit -u`, `pids.max`), files are still written and names looked up, one after the other.
///
/// # Errors
/// What the system says.
pub fn keep_a_blocking_thread(builder: &mut Builder) -> io::Result<Runtime> {
    // The runtime would panic.
    std::thread::Builder::new().spawn(|| ()).map(|thread| drop(thread.join()))?;
    let runtime = builder.max_blocking_threads(THREADS).thread_keep_alive(FOR_EVER).build()?;
    drop(runtime.spawn_blocking(|| ()));
    Ok(runtime)
}
