//! When a stop must be over: one clock for all components, which can be put forward while they drain.

use std::future::Future;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// The end of a stop's time, as everybody who drains sees it.
#[derive(Clone, Debug)]
pub struct Deadline {
    at: watch::Receiver<Instant>,
    /// It is half as far from this moment.
    half_since: Option<Instant>,
}

impl Deadline {
    /// One that stands where the sender's value is.
    pub(super) fn following(sender: &watch::Sender<Instant>) -> Self {
        Self { at: sender.subscribe(), half_since: None }
    }

    /// One that never moves.
    #[must_use]
    pub fn fixed(at: Instant) -> Self {
        Self { at: watch::channel(at).1, half_since: None }
    }

    /// One that leaves half of the time from now on to those who come after.
    #[must_use]
    pub fn half(&self) -> Self {
        Self { at: self.at.clone(), half_since: Some(Instant::now()) }
    }

    /// When it is, as things stand.
    #[must_use]
    pub fn at(&self) -> Instant {
        self.before(*self.at.borrow())
    }

    fn before(&self, at: Instant) -> Instant {
        self.half_since.map_or(at, |since| at.min(since + at.saturating_duration_since(since) / 2))
    }

    /// Ends when it has passed.
    pub async fn passed(&self) {
        let mut at = self.at.clone();
        loop {
            let now = *at.borrow_and_update();
            tokio::select! {
                () = sleep_until(self.before(now)) => return,
                Ok(()) = at.changed() => {}
            }
        }
    }

    /// Runs `work` until then; `None` if it was not done.
    pub async fn until<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.passed() => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn it_passes_when_it_is_put_forward() {
        let sender = watch::Sender::new(Instant::now() + Duration::from_hours(1));
        let deadline = Deadline::following(&sender);
        assert_eq!(deadline.until(async { 1 }).await, Some(1));
        let waiting = tokio::spawn({
            let deadline = deadline.clone();
            async move { deadline.until(std::future::pending::<()>()).await }
        });
        tokio::task::yield_now().await;
        sender.send_replace(Instant::now());
        let ended = tokio::time::timeout(Duration::from_secs(30), waiting).await;
        assert_eq!(ended.expect("at once").expect("it ends"), None);
        Deadline::fixed(Instant::now()).passed().await;
    }

    #[tokio::test]
    async fn half_of_it_moves_with_it() {
        let now = Instant::now();
        let sender = watch::Sender::new(now + Duration::from_hours(2));
        let half = Deadline::following(&sender).half();
        assert!(half.at() > now + Duration::from_mins(59) && half.at() < now + Duration::from_mins(61));
        sender.send_replace(Instant::now() + Duration::from_millis(20));
        half.passed().await;
        sender.send_replace(now);
        assert!(half.at() <= now);
    }
}
