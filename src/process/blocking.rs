//! A runtime that can always do something that may block.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use tokio::runtime::{self, Runtime};

/// As good as.
const FOR_EVER: Duration = Duration::from_hours(24 * 365);
/// So many things may block at a time; what comes then waits for one of them.
const THREADS: usize = 64;

/// Builds a runtime with that many threads of its own, in which a thread that may block is there from the start, and all
/// that there ever are stay: where no further one can be made (`ulimit -u`, `pids.max`), files are still written and names
/// looked up, one after the other.
///
/// # Errors
/// What the system says.
pub fn keep_a_blocking_thread(builder: &mut runtime::Builder, workers: usize) -> io::Result<Runtime> {
    // The runtime would panic.
    try_threads(workers + 1)?;
    let runtime = builder.max_blocking_threads(THREADS).thread_keep_alive(FOR_EVER).build()?;
    drop(runtime.spawn_blocking(|| ()));
    Ok(runtime)
}

/// Whether there can be so many more threads at a time.
fn try_threads(count: usize) -> io::Result<()> {
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock();
    let one = || {
        let gate = Arc::clone(&gate);
        Builder::new().spawn(move || drop(gate.lock()))
    };
    let all: Vec<io::Result<JoinHandle<()>>> = (0..count).map(|_| one()).collect();
    drop(closed);
    all.into_iter().try_for_each(|thread| thread.map(|thread| drop(thread.join())))
}
