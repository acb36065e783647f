//! Waiting until a process is ready, and asking from then on whether it hangs.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::answer::Witness;
use super::host::Report;
use super::resolve::ResolvedProbe;
use crate::health::{Prober, Target, wait_until_good, wait_until_hung};

/// A wait is worth a line once it has lasted this long.
const WORTH_SAYING: Duration = Duration::from_secs(1);

/// Asks a unit that was started at `since` until it is ready or its limit is over: `Ready` or `NotReady`.
pub(super) async fn until_ready(probe: ResolvedProbe, witness: Arc<Witness>, since: Instant) {
    let mut said = false;
    let (unit, reports) = (witness.unit, witness.reports.clone());
    let still_waiting = |waited: Duration, answer: &str| {
        if waited >= WORTH_SAYING && !said {
            said = true;
            let _ = reports.send(Report::StillWaiting { unit, answer: answer.to_owned() });
        }
    };
    let left = probe.limit.saturating_sub(since.elapsed());
    let mut prober = Prober::new(probe.target);
    let accept = |answered| Arc::clone(&witness).accept(answered);
    let end = wait_until_good(&mut prober, probe.schedule, left, accept, still_waiting).await;
    let _ = reports.send(match end {
        Ok(()) => {
            let _ = witness.slot.was_ready.set(());
            Report::Ready { unit }
        }
        Err(bad) => {
            let mut answer = bad.text;
            if bad.refused {
                answer.extend(witness.listens_by_now(prober.asked().to_vec()).await);
            }
            Report::NotReady { unit, limit: probe.limit, answer }
        }
    });
}

/// Asks a unit that is ready each `interval` until it hangs: `Hung`.
pub(super) async fn until_hung(target: Target, interval: Duration, failures: u32, witness: Arc<Witness>) {
    let mut prober = Prober::new(target);
    let accept = |answered| Arc::clone(&witness).accept(answered);
    let answer = wait_until_hung(&mut prober, interval, failures, accept).await;
    let _ = witness.reports.send(Report::Hung { unit: witness.unit, failures, answer });
}
