//! The CPU time of a tree whose processes come and go.
//!
//! What lives tells its own time and that of the children it has waited for, so a child that is waited for moves into its
//! parent's, and the sum over the living stays whole. Whoever ends otherwise takes its time along: one that gymrun
//! itself reaps (the root, a daemon), or one whose parent ignores SIGCHLD. What was last seen of those is added here.

use std::collections::HashMap;

/// A process that was there at the former look and is not any more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gone {
    /// Its pid.
    pub(super) pid: i32,
    /// Its parent's.
    pub(super) parent: i32,
    /// What it had taken and waited for.
    pub(super) ticks: u64,
}

/// The CPU time of one tree, in clock ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account {
    lost: u64,
    total: u64,
}

impl Account {
    /// Takes in a look: `living` is the sum over all that are there, `waited` what one of them has waited for since the
    /// former look.
    pub(super) fn close(&mut self, living: u64, gone: &[Gone], waited: impl Fn(i32) -> Option<u64>) {
        self.lost = self.lost.saturating_add(lost(gone, waited));
        // A reading that falls would be a mistake of the kernel's: what was told stays told.
        self.total = self.total.max(self.lost.saturating_add(living));
    }

    /// The whole time; it never falls.
    pub(super) fn total(&self) -> u64 {
        self.total
    }
}

/// What of the time of `gone` is in nobody's sum. A parent that ended meanwhile hands on what it waited for, so each is
/// looked for at the nearest ancestor that lives.
fn lost(gone: &[Gone], waited: impl Fn(i32) -> Option<u64>) -> u64 {
    let parents: HashMap<i32, i32> = gone.iter().map(|gone| (gone.pid, gone.parent)).collect();
    let mut missing: HashMap<Option<i32>, u64> = HashMap::new();
    for one in gone {
        let mut at = Some(one.parent);
        // More steps than processes would be a circle, which a pid that was used again can pretend.
        for _ in 0..gone.len() {
            match at {
                Some(pid) if waited(pid).is_none() => at = parents.get(&pid).copied(),
                _ => break,
            }
        }
        let sum = missing.entry(at.filter(|pid| waited(*pid).is_some())).or_default();
        *sum = sum.saturating_add(one.ticks);
    }
    let not_waited =
        |(ancestor, ticks): (Option<i32>, u64)| ticks.saturating_sub(ancestor.and_then(&waited).unwrap_or(0));
    missing.into_iter().map(not_waited).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::{Account, Gone};

    const fn gone(pid: i32, parent: i32, ticks: u64) -> Gone {
        Gone { pid, parent, ticks }
    }

    /// The root is 1. A step: what the living sum up to, who went, and what the root has waited for meanwhile.
    fn total(steps: &[(u64, &[Gone], u64)]) -> u64 {
        let mut account = Account::default();
        let mut before = 0;
        for (living, gone, waited) in steps {
            account.close(*living, gone, |pid| (pid == 1).then_some(*waited));
            assert!(account.total() >= before, "it fell");
            before = account.total();
        }
        before
    }

    #[test]
    fn a_child_that_was_waited_for_is_in_its_parents_time() {
        // 10 and 5, and 2 more before it ended.
        assert_eq!(total(&[(15, &[], 0), (17, &[gone(2, 1, 5)], 7)]), 17);
    }

    #[test]
    fn a_child_that_nobody_waited_for_is_kept_as_it_was_last_seen() {
        assert_eq!(total(&[(15, &[], 0), (13, &[gone(2, 1, 5)], 0)]), 18);
        // One waited for, one not, both of 5: what was waited for covers one.
        assert_eq!(total(&[(20, &[], 0), (15, &[gone(2, 1, 5), gone(3, 1, 5)], 5)]), 20);
    }

    #[test]
    fn what_gymrun_reaps_is_kept() {
        // A daemon whose parent is no part of the tree, then the root.
        assert_eq!(total(&[(15, &[], 0), (10, &[gone(2, 900, 5)], 0), (0, &[gone(1, 900, 10)], 0)]), 15);
    }

    #[test]
    fn whole_branches_end_at_once() {
        // 3 below 2 below 1: each was waited for by its parent, and the root has it all.
        assert_eq!(total(&[(30, &[], 0), (32, &[gone(2, 1, 10), gone(3, 2, 10)], 22)]), 32);
        // The same, but 2 was killed, so that gymrun reaped 3.
        assert_eq!(total(&[(30, &[], 0), (20, &[gone(2, 1, 10), gone(3, 2, 10)], 10)]), 30);
        // Parents in a circle, which cannot be, end nowhere.
        assert_eq!(total(&[(20, &[], 0), (0, &[gone(2, 3, 10), gone(3, 2, 10)], 0)]), 20);
    }

    #[test]
    fn times_beyond_any_machine_do_not_wrap() {
        assert_eq!(total(&[(u64::MAX, &[], 0), (5, &[gone(2, 900, u64::MAX), gone(3, 900, 9)], 0)]), u64::MAX);
    }
}
