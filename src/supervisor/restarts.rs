//! Which restarts a unit has had, and whether it may have another one.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::resolve::seconds;
use crate::diag::counted;
use crate::plan::{OnExit, RestartPolicy};

/// So often a back-off doubles at most: more is no finite number.
const MOST_DOUBLINGS: i32 = f64::MAX_EXP - 1;

/// The restarts of one unit.
#[derive(Clone, Debug)]
pub(super) struct Restarts {
    policy: RestartPolicy,
    /// When it ended, each time that it was started again, within the window.
    ends: VecDeque<Instant>,
    /// When the back-off of the last one is over.
    due: Option<Instant>,
}

impl Restarts {
    /// None so far; `None` if there will be none.
    pub(super) fn of(on_exit: OnExit) -> Option<Self> {
        let OnExit::Restart(policy) = on_exit else { return None };
        Some(Self { policy, ends: VecDeque::new(), due: None })
    }

    /// How many there may be in the window.
    pub(super) fn limit(&self) -> u32 {
        self.policy.limit
    }

    /// Whether there may be one more.
    pub(super) fn left(&mut self, now: Instant) -> bool {
        let window = seconds(self.policy.window_seconds);
        while self.ends.front().is_some_and(|end| now.saturating_duration_since(*end) >= window) {
            self.ends.pop_front();
        }
        self.ends.len() < self.policy.limit as usize
    }

    /// That none is left, in words.
    pub(super) fn used_up(&self) -> String {
        let RestartPolicy { limit, window_seconds, .. } = self.policy;
        format!("its limit of {} in {window_seconds} s is used up", counted(limit, "restart", "restarts"))
    }

    /// Counts one; gives its number in the window and its back-off, which begins now.
    pub(super) fn count(&mut self, now: Instant) -> (u32, Duration) {
        self.ends.push_back(now);
        let number = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        let doublings = i32::try_from(number - 1).unwrap_or(i32::MAX).min(MOST_DOUBLINGS);
        let doubled = self.policy.backoff_seconds * 2_f64.powi(doublings);
        let backoff = seconds(doubled.min(self.policy.backoff_max_seconds.max(self.policy.backoff_seconds)));
        self.due = Some(now + backoff);
        (number, backoff)
    }

    /// What is left of the last back-off.
    pub(super) fn backoff_left(&self, now: Instant) -> Duration {
        self.due.map_or(Duration::ZERO, |due| due.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::Restarts;
    use crate::plan::{Exhausted, OnExit, RestartPolicy};

    fn restarts(limit: u32) -> Restarts {
        let policy = RestartPolicy {
            limit,
            window_seconds: 60.0,
            backoff_seconds: 1.0,
            backoff_max_seconds: 5.0,
            also_dependants: false,
            exhausted: Exhausted::Stop,
        };
        Restarts::of(OnExit::Restart(policy)).expect("a policy that restarts")
    }

    #[test]
    fn the_back_off_doubles_up_to_its_greatest_value() {
        let mut restarts = restarts(10);
        let now = Instant::now();
        let backoffs: Vec<u64> = (0..5).map(|_| restarts.count(now).1.as_secs()).collect();
        assert_eq!(backoffs, [1, 2, 4, 5, 5]);
        assert_eq!(restarts.backoff_left(now + Duration::from_secs(3)), Duration::from_secs(2));
        assert_eq!(restarts.backoff_left(now + Duration::from_secs(9)), Duration::ZERO);
    }

    #[test]
    fn a_back_off_of_nothing_stays_nothing() {
        let mut restarts = restarts(2000);
        restarts.policy.backoff_seconds = 0.0;
        let now = Instant::now();
        assert!((0..2000).all(|_| restarts.count(now).1.is_zero()));
    }

    #[test]
    fn a_restart_is_forgotten_once_it_is_older_than_the_window() {
        let mut restarts = restarts(2);
        let start = Instant::now();
        let at = |second| start + Duration::from_secs(second);
        for second in [0, 30] {
            assert!(restarts.left(at(second)));
            let _ = restarts.count(at(second));
        }
        assert!(!restarts.left(at(59)));
        assert!(restarts.left(at(60)));
        assert_eq!(restarts.count(at(60)), (2, Duration::from_secs(2)));
        assert!(!restarts.left(at(89)));
    }

    #[test]
    fn a_limit_of_nothing_allows_none() {
        assert!(!restarts(0).left(Instant::now()));
    }
}
