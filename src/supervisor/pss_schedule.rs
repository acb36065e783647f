//! When the proportional set of a tree is read.
//!
//! The kernel walks all pages of a process for it and holds the lock of its address space meanwhile: 16 ms for 2 GiB, in
//! which the process can map nothing. So it is read at an interval of its own, and earlier for a tree whose resident set,
//! which costs nothing, has moved by a share since the last time.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::sampler::following;

/// Moves below this are noise, however small the tree.
const LEAST_MOVE: u64 = 16 << 20;
/// A tree that keeps moving is read so many times within the interval, at most,
const WITHIN_INTERVAL: u32 = 5;
/// and for so small a part of the time.
const BUSY_PART: u32 = 100;

/// The schedule of all trees.
#[derive(Debug)]
pub(super) struct PssSchedule {
    interval: Duration,
    /// A tick that is nearer than this to the time of the grid is the one for it.
    tolerance: Duration,
    share: f64,
    next: Instant,
    last: HashMap<String, Last>,
}

#[derive(Debug)]
struct Last {
    rss: u64,
    at: Instant,
    took: Duration,
}

impl PssSchedule {
    /// All trees at once and then each `interval` (ticks come each `tick`); one that moved by more than `share` of its resident set earlier, 0 is
    /// never.
    pub(super) fn new(interval: Duration, tick: Duration, share: f64, now: Instant) -> Self {
        Self { interval, tolerance: tick.min(interval) / 2, share, next: now, last: HashMap::new() }
    }

    /// Whether it is time for all trees; asked once a tick.
    pub(super) fn all_due(&mut self, now: Instant) -> bool {
        let due = now + self.tolerance >= self.next;
        if due {
            self.next = following(self.next, self.interval, now + self.tolerance);
        }
        due
    }

    /// Whether a tree has moved enough, or was never read.
    pub(super) fn due(&self, process: &str, rss: u64, now: Instant) -> bool {
        let Some(last) = self.last.get(process) else { return true };
        let moved = rss.abs_diff(last.rss);
        let enough = self.share > 0.0 && moved >= LEAST_MOVE && moved as f64 > self.share * last.rss as f64;
        let spacing = (self.interval / WITHIN_INTERVAL).max(last.took.saturating_mul(BUSY_PART));
        enough && now.saturating_duration_since(last.at) >= spacing
    }

    /// A tree was read, which took some time.
    pub(super) fn read(&mut self, process: &str, rss: u64, at: Instant, took: Duration) {
        self.last.insert(process.to_owned(), Last { rss, at, took });
    }

    /// Another process has the name now.
    pub(super) fn forget(&mut self, process: &str) {
        self.last.remove(process);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::PssSchedule;

    const MIB: u64 = 1 << 20;
    const INTERVAL: Duration = Duration::from_secs(10);

    fn after(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn all_trees_keep_to_the_grid_and_missed_ones_are_left_out() {
        let start = Instant::now();
        let mut schedule = PssSchedule::new(INTERVAL, after(1), 0.2, start);
        let due: Vec<u64> = (0..35).filter(|second| schedule.all_due(start + after(*second))).collect();
        assert_eq!(due, [0, 10, 20, 30]);
        assert!(schedule.all_due(start + after(75)));
        assert!(!schedule.all_due(start + after(84)));
        assert!(schedule.all_due(start + after(85)));
    }

    #[test]
    fn a_tree_that_moved_is_read_early_but_not_each_time() {
        let start = Instant::now();
        let mut schedule = PssSchedule::new(INTERVAL, after(1), 0.2, start);
        // Never read.
        assert!(schedule.due("a", 2048 * MIB, start));
        schedule.read("a", 2048 * MIB, start, Duration::from_millis(16));
        // It grows without pause: five times in ten seconds.
        let mut reads = Vec::new();
        for second in 1..=10 {
            let (rss, now) = ((2048 + 2048 * second) * MIB, start + after(second));
            if schedule.due("a", rss, now) {
                schedule.read("a", rss, now, Duration::from_millis(16));
                reads.push(second);
            }
        }
        assert_eq!(reads, [2, 4, 6, 8, 10]);
        // Where a read takes a second, the next one is far off.
        schedule.read("a", 2048 * MIB, start, Duration::from_secs(1));
        assert!(!schedule.due("a", 4096 * MIB, start + after(99)));
        assert!(schedule.due("a", 4096 * MIB, start + after(100)));
        schedule.forget("a");
        assert!(schedule.due("a", 0, start));
    }

    #[test]
    fn little_moves_and_those_of_little_trees_are_not_worth_it() {
        let start = Instant::now();
        let late = start + after(60);
        let mut schedule = PssSchedule::new(INTERVAL, after(1), 0.2, start);
        for (before, now, due) in [
            (1000, 1200, false),
            (1000, 1201, true),
            (1000, 799, true),
            (10, 25, false),
            (10, 26, true),
            (0, 16, true),
            (u64::MAX / MIB, 0, true),
        ] {
            schedule.read("a", before * MIB, start, Duration::ZERO);
            assert_eq!(schedule.due("a", now * MIB, late), due, "{before} {now}");
        }
        let never = PssSchedule { share: 0.0, ..schedule };
        assert!(!never.due("a", 1 << 50, late));
    }
}
