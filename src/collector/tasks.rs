//! Work that is bounded: by a time, by force, in what its defects cost.

use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::refusal::Refusal;

/// Ends a task at once, and what it holds (a port) with it.
pub async fn ended<T>(task: JoinHandle<T>) {
    // One that has ended may have been waited for already, which cannot be done twice.
    if !task.is_finished() {
        task.abort();
        // Whatever comes out of it, it is gone.
        let _ = task.await;
    }
}

/// Runs `work` until `deadline`; `None` if it was not done by then.
pub async fn until<T>(deadline: Instant, work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout_at(deadline, work).await.ok()
}

/// What `work` gives; a refusal if it panics, so that a defect costs the data at hand and not what comes after it.
pub(super) async fn guarded(work: impl Future<Output = Result<(), Refusal>>) -> Result<(), Refusal> {
    let broken = |_| Err(Refusal::permanent("panic", "a part of the collector broke down (please report this)"));
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(broken)
}
