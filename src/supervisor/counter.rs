//! A counter of the kernel's that only grows, and how much of that is recent and belongs to nobody yet.

use std::time::{Duration, Instant};

/// What was counted longer ago explains nothing that happens now.
const RECENT: Duration = Duration::from_secs(10);

/// A counter, as it was at the last look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter {
    value: u64,
    looked: Instant,
    /// What was counted and not claimed,
    unclaimed: u64,
    /// after this look,
    after: Instant,
    /// and was seen at this one.
    seen: Instant,
}

impl Counter {
    /// What was counted up to now concerns nobody.
    pub(super) fn new(value: u64, now: Instant) -> Self {
        Self { value, looked: now, unclaimed: 0, after: now, seen: now }
    }

    /// Takes in the value that it has now.
    pub(super) fn look(&mut self, value: u64, now: Instant) {
        let new = value.saturating_sub(self.value);
        if new > 0 {
            if self.recent(now) == 0 {
                self.unclaimed = 0;
                self.after = self.looked;
            }
            self.unclaimed += new;
            self.seen = now;
        }
        self.value = value;
        self.looked = now;
    }

    /// What was counted of late, and not claimed.
    pub(super) fn recent(&self, now: Instant) -> u64 {
        if now.saturating_duration_since(self.seen) <= RECENT { self.unclaimed } else { 0 }
    }

    /// What was counted of late was so after this.
    pub(super) fn after(&self) -> Instant {
        self.after
    }

    /// What was counted of late was so within that time.
    pub(super) fn within(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.after)
    }

    /// One of what was counted is explained.
    pub(super) fn claim(&mut self) {
        self.unclaimed = self.unclaimed.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Counter;

    #[test]
    fn each_count_explains_one_death_and_an_old_one_none() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut counter = Counter::new(5, at(0));
        assert_eq!(counter.recent(at(0)), 0);
        // Two die at the same time: both are explained.
        counter.look(7, at(60));
        assert_eq!((counter.recent(at(60)), counter.within(at(60))), (2, Duration::from_mins(1)));
        counter.claim();
        counter.look(7, at(61));
        assert_eq!(counter.recent(at(61)), 1);
        counter.claim();
        assert_eq!(counter.recent(at(61)), 0);
        // One that nobody claimed is forgotten.
        counter.look(8, at(62));
        assert_eq!((counter.recent(at(72)), counter.recent(at(73))), (1, 0));
        counter.look(9, at(80));
        assert_eq!((counter.recent(at(80)), counter.within(at(80))), (1, Duration::from_secs(18)));
        // A counter that is made anew does not count backwards.
        counter.look(0, at(81));
        counter.look(1, at(82));
        assert_eq!(counter.recent(at(82)), 2);
    }
}
