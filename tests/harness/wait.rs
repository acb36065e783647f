//! Waiting for what must happen.

use std::time::{Duration, Instant};

/// How long a condition may take to come true on a loaded machine.
pub const DEADLINE: Duration = Duration::from_mins(3);

const PAUSE: Duration = Duration::from_millis(5);

/// Waits until `condition` gives something.
#[track_caller]
pub fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < end, "it never came: {what}");
        std::thread::sleep(PAUSE);
    }
}

/// The same in a task, beside others.
pub async fn eventually_async<T>(what: &str, mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(value) = condition().await {
            return value;
        }
        assert!(Instant::now() < end, "it never came: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
