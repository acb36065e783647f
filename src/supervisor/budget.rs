//! How long stopping may take.
//!
//! At a normal end each process has its grace in full. When gymrun is told to stop, or a process died, everything has to
//! be over in 25 s, below the 30 s that Slurm gives; the last 5 of them are the collector's, so whoever is stopped before
//! it is killed in time, and not waited for any longer than that even if it does not die. Graces are then scaled so that
//! the longest chain fits, which leaves each process its share instead of nothing to the last.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::machine::Phase;
use crate::plan::{Kind, Plan};

/// All of a hurried stop.
pub const HURRIED_TOTAL: Duration = Duration::from_secs(25);
/// What of it is kept for the collector.
pub const COLLECTOR_SHARE: Duration = Duration::from_secs(5);
/// What is left for the others.
const BEFORE_COLLECTOR: Duration = HURRIED_TOTAL.saturating_sub(COLLECTOR_SHARE);
/// For the last scrape of a hurried stop, and for the kills themselves.
const RESERVE: Duration = Duration::from_millis(1500);
/// How much longer than a hurried stop gymrun waits for the death of what was killed.
const BEYOND: Duration = Duration::from_secs(2);
/// What is killed gets that in any case: even a healthy machine takes a moment.
const DYING: Duration = Duration::from_millis(500);
/// What everybody who waits during a stop looks at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Graces in full.
    Leisurely,
    /// Graces cut to fit.
    Hurried {
        /// When the 25 s began.
        since: Instant,
        /// By what graces are multiplied: 1 at most.
        scale: f64,
    },
    /// No grace at all.
    Kill,
}

impl Pace {
    /// A hurried stop that begins now, for what still has to be stopped.
    #[must_use]
    pub fn hurried(plan: &Plan, phases: &[Phase]) -> Self {
        let room = BEFORE_COLLECTOR.saturating_sub(RESERVE).as_secs_f64();
        let needed = longest_chain(plan, phases);
        Self::Hurried { since: Instant::now(), scale: if needed > room { room / needed } else { 1.0 } }
    }

    /// When SIGKILL is due for a process that got its stop signal at `started`.
    #[must_use]
    pub fn kill_at(self, started: Instant, grace: Duration) -> Instant {
        match self {
            Self::Leisurely => started + grace,
            Self::Hurried { since, scale } => {
                (started + grace.mul_f64(scale)).min(since + BEFORE_COLLECTOR.saturating_sub(DYING))
            }
            Self::Kill => started,
        }
    }

    /// When SIGKILL is due for what is stopped last, and was asked to at `started`: the collector, and what nobody owns.
    #[must_use]
    pub fn kill_last_at(self, started: Instant, wait: Duration) -> Instant {
        match self {
            Self::Leisurely => started + wait,
            Self::Hurried { since, .. } => (started + wait).min((since + HURRIED_TOTAL).max(started)),
            Self::Kill => started,
        }
    }

    /// When to go on without a process that has got SIGKILL since `started` and does not die, though there was a `limit`
    /// for that.
    #[must_use]
    pub fn give_up_at(self, started: Instant, limit: Duration) -> Instant {
        self.give_up_after(BEFORE_COLLECTOR, started, limit)
    }

    /// The same for what is stopped last.
    #[must_use]
    pub fn give_up_last_at(self, started: Instant, limit: Duration) -> Instant {
        self.give_up_after(HURRIED_TOTAL + BEYOND, started, limit)
    }

    fn give_up_after(self, total: Duration, started: Instant, limit: Duration) -> Instant {
        match self {
            Self::Leisurely => started + limit,
            Self::Hurried { since, .. } => (started + limit).min((since + total).max(started + DYING)),
            Self::Kill => started + limit.min(BEYOND),
        }
    }

    /// How long a step of the stop may take that has one limit at leisure and another in a hurry.
    fn limit(self, leisurely: Duration, hurried: Duration) -> Duration {
        match self {
            Self::Leisurely => leisurely,
            Self::Hurried { .. } => hurried,
            Self::Kill => Duration::ZERO,
        }
    }
}

/// Waits for `work` until the time that `deadline` gives for the pace, which may change meanwhile; `None` if it was not
/// done by then.
pub async fn until<T>(
    pace: &mut watch::Receiver<Pace>,
    deadline: impl Fn(Pace) -> Instant,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = std::pin::pin!(work);
    loop {
        let end = deadline(*pace.borrow_and_update());
        tokio::select! {
            biased;
            done = &mut work => return Some(done),
            () = sleep_until(end) => return None,
            Ok(()) = pace.changed() => {}
        }
    }
}

/// The same with a limit from now on: one at leisure, another in a hurry, and none at all when everything is killed.
pub async fn within<T>(
    pace: &mut watch::Receiver<Pace>,
    leisurely: Duration,
    hurried: Duration,
    work: impl Future<Output = T>,
) -> Option<T> {
    let start = Instant::now();
    until(pace, |pace| start + pace.limit(leisurely, hurried), work).await
}

/// The driver's grace and that of the longest chain of dependants, in seconds, of what still runs.
fn longest_chain(plan: &Plan, phases: &[Phase]) -> f64 {
    let runs = |id: usize| {
        !matches!(
            phases[id],
            Phase::Waiting
                | Phase::Missing
                | Phase::Skipped
                | Phase::Stuck
                | Phase::Resting
                | Phase::Gone
                | Phase::Done
                | Phase::Dead
        )
    };
    let mut driver = 0.0;
    let mut sums = vec![0.0_f64; plan.units.len()];
    // Start order: what a unit needs stands before it.
    for (id, unit) in plan.units.iter().enumerate() {
        let below = unit
            .depends_on
            .iter()
            .filter_map(|name| plan.units.iter().position(|u| u.name == *name))
            .map(|other| sums[other])
            .fold(0.0, f64::max);
        let own = if runs(id) { unit.stop.grace_seconds } else { 0.0 };
        match unit.kind {
            Kind::Driver => driver = own,
            Kind::Collector => {}
            Kind::Service | Kind::Server => sums[id] = below + own,
        }
    }
    driver + sums.into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use tokio::sync::watch;

    use super::{BEFORE_COLLECTOR, HURRIED_TOTAL, Pace, within};

    #[test]
    fn a_hurried_stop_is_over_in_25_seconds_whatever_the_graces() {
        let since = Instant::now();
        let pace = Pace::Hurried { since, scale: 0.25 };
        let grace = Duration::from_secs(10);
        assert_eq!(pace.kill_at(since, grace), since + Duration::from_millis(2500));
        // The last of a chain that took its time is killed before the collector's share begins.
        let late = since + Duration::from_secs(19);
        let killed = pace.kill_at(late, grace);
        assert!(late < killed && killed < since + BEFORE_COLLECTOR);
        assert_eq!(pace.kill_last_at(late, Duration::from_secs(30)), since + HURRIED_TOTAL);
        assert_eq!(Pace::Leisurely.kill_at(late, grace), late + grace);
        assert_eq!(Pace::Kill.kill_last_at(late, grace), late);
    }

    #[test]
    fn what_does_not_die_is_given_up_before_slurm_gives_gymrun_up() {
        let since = Instant::now();
        let pace = Pace::Hurried { since, scale: 1.0 };
        let limit = Duration::from_secs(5);
        let end = since + Duration::from_secs(29);
        for after in 0..28 {
            let started = since + Duration::from_secs(after);
            let given_up = pace.give_up_last_at(started, limit);
            assert!(given_up > started && given_up <= end.min(started + limit), "{after}");
            // An orphan that ignores SIGTERM at the very end gets SIGKILL in time, too.
            assert!(pace.kill_last_at(started, Duration::from_secs(1)) < given_up, "{after}");
        }
        assert_eq!(Pace::Leisurely.give_up_last_at(end, limit), end + limit);
        assert!(Pace::Kill.give_up_last_at(since, limit) < since + limit);
    }

    #[test]
    fn what_does_not_die_takes_nothing_of_the_collectors_time() {
        let since = Instant::now();
        let pace = Pace::Hurried { since, scale: 1.0 };
        let limit = Duration::from_secs(5);
        for after in 0..20 {
            let killed = pace.kill_at(since + Duration::from_secs(after), Duration::from_secs(100));
            let given_up = pace.give_up_at(killed, limit);
            assert!(given_up > killed && given_up <= since + BEFORE_COLLECTOR, "{after}");
        }
        // Nobody is given up at once, however late it is.
        let late = since + HURRIED_TOTAL;
        assert!(pace.give_up_at(late, limit) > late);
        assert_eq!(Pace::Leisurely.give_up_at(late, limit), late + limit);
    }

    #[tokio::test]
    async fn a_change_of_pace_is_heeded_while_somebody_waits() {
        let (pace, mut seen) = watch::channel(Pace::Leisurely);
        let long = Duration::from_hours(1);
        assert_eq!(within(&mut seen, long, long, async { 1 }).await, Some(1));
        let waiting = tokio::spawn(async move {
            let first = within(&mut seen, long, Duration::from_millis(1), std::future::pending::<()>()).await;
            let second = within(&mut seen, long, long, std::future::pending::<()>()).await;
            (first, second)
        });
        pace.send_replace(Pace::Hurried { since: Instant::now(), scale: 1.0 });
        tokio::task::yield_now().await;
        pace.send_replace(Pace::Kill);
        let ended = tokio::time::timeout(Duration::from_secs(30), waiting).await;
        assert_eq!(ended.expect("at once").expect("it ends"), (None, None));
    }
}
