//! The collector's state and the requests that come from outside: is it ready, scrape now, how long may the stop take.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use tokio::sync::watch;
use tokio::time::Instant;

use super::deadline::Deadline;
use super::tasks::until;

/// How long a stop may take unless someone says otherwise.
pub const DEFAULT_STOP_LIMIT: Duration = Duration::from_secs(30);

/// How long a forced scrape may take.
pub const SCRAPE_LIMIT: Duration = Duration::from_secs(5);

/// When data must have drained: one second before the limit, at half of one below two seconds. The rest is for the report.
fn drained_by(limit: Duration) -> Instant {
    let reserve = if limit < Duration::from_secs(2) { limit / 2 } else { Duration::from_secs(1) };
    Instant::now() + limit.saturating_sub(reserve)
}

/// Something that can fetch its data now.
pub trait ScrapeNow: Send + Sync {
    /// Fetches once and ends when the points have been handed on. `last`: nothing is fetched after it by itself.
    fn scrape_now(&self, last: bool) -> BoxFuture<'_, ()>;
}

/// Where the collector stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Components are being started.
    Starting,
    /// Everything runs, since this moment.
    Ready(jiff::Timestamp, std::time::Instant),
    /// A stop was asked for.
    Stopping,
}

/// What was asked for of this process, and not of one configuration: it holds after a reload too.
pub struct Requests {
    limit: Mutex<Duration>,
    scraped_last: AtomicBool,
}

impl Default for Requests {
    fn default() -> Self {
        Self { limit: Mutex::new(DEFAULT_STOP_LIMIT), scraped_last: AtomicBool::new(false) }
    }
}

/// Shared by the run, the extensions that take requests, and the receivers that can act on them.
pub struct Controls {
    requests: Arc<Requests>,
    state: watch::Sender<State>,
    /// Of the stop that is under way.
    deadline: watch::Sender<Instant>,
    failure: watch::Sender<Option<String>>,
    scrapers: Mutex<Vec<Arc<dyn ScrapeNow>>>,
}

impl Default for Controls {
    fn default() -> Self {
        Self::with(Arc::default())
    }
}

impl Controls {
    /// Those of a collector that goes on with what was asked for before.
    #[must_use]
    pub fn with(requests: Arc<Requests>) -> Self {
        Self {
            requests,
            state: watch::Sender::new(State::Starting),
            deadline: watch::Sender::new(Instant::now()),
            failure: watch::Sender::new(None),
            scrapers: Mutex::default(),
        }
    }

    /// Where the collector stands now.
    #[must_use]
    pub fn state(&self) -> State {
        *self.state.borrow()
    }

    /// Changes it; the run alone does so.
    pub(super) fn set_state(&self, state: State) {
        self.state.send_replace(state);
    }

    /// Sets how long the coming stop may take; it does not begin it. A stop that is under way is over in that time from
    /// now, if that is sooner.
    pub fn set_stop_limit(&self, limit: Duration) {
        let mut known = self.requests.limit.lock().unwrap_or_else(PoisonError::into_inner);
        *known = limit;
        // Held until here: a stop that begins meanwhile has one limit or the other, and is shortened then.
        if self.state() == State::Stopping {
            self.deadline.send_if_modified(|at| {
                let sooner = drained_by(limit);
                let is_sooner = sooner < *at;
                if is_sooner {
                    *at = sooner;
                }
                is_sooner
            });
        }
    }

    /// A stop begins: when data must have drained.
    pub(super) fn begin_stop(&self) -> Deadline {
        let limit = self.requests.limit.lock().unwrap_or_else(PoisonError::into_inner);
        self.deadline.send_replace(drained_by(*limit));
        self.set_state(State::Stopping);
        drop(limit);
        Deadline::following(&self.deadline)
    }

    /// A component cannot go on: the collector stops in order and ends with 1.
    pub fn fail(&self, text: &str) {
        self.failure.send_if_modified(|failure| {
            let first = failure.is_none();
            if first {
                *failure = Some(text.to_owned());
            }
            first
        });
    }

    /// Ends when a component has failed, with its words.
    pub(super) async fn failed(&self) -> String {
        let mut failure = self.failure.subscribe();
        match failure.wait_for(Option::is_some).await {
            Ok(text) => text.clone().unwrap_or_default(),
            Err(_) => std::future::pending().await,
        }
    }

    /// Whether the last scrape has been asked for, of this collector or of one before it.
    #[must_use]
    pub fn scraped_last(&self) -> bool {
        self.requests.scraped_last.load(Ordering::SeqCst)
    }

    /// Takes part in forced scrapes from now on.
    pub fn add_scraper(&self, scraper: Arc<dyn ScrapeNow>) {
        self.scrapers.lock().unwrap_or_else(PoisonError::into_inner).push(scraper);
    }

    /// All receivers that scrape do it once now, side by side; true if all were done within [`SCRAPE_LIMIT`]. `last`: they
    /// do not do it by themselves any more, since the targets are about to go.
    pub async fn scrape_now(&self, last: bool) -> bool {
        self.requests.scraped_last.fetch_or(last, Ordering::SeqCst);
        let scrapers = self.scrapers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let deadline = Instant::now() + SCRAPE_LIMIT;
        until(deadline, join_all(scrapers.iter().map(|scraper| scraper.scrape_now(last)))).await.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whichever comes first: the limit that was asked for holds.
    #[test]
    fn a_limit_that_comes_as_the_stop_begins_is_kept() {
        for _ in 0..2000 {
            let controls = Controls::default();
            let deadline = std::thread::scope(|scope| {
                let limit = scope.spawn(|| controls.set_stop_limit(Duration::from_secs(2)));
                let deadline = controls.begin_stop();
                limit.join().expect("no panic");
                deadline
            });
            let left = deadline.at().saturating_duration_since(Instant::now());
            assert!(left <= Duration::from_secs(2), "{left:?}");
        }
    }
}
