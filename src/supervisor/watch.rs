//! Waiting until a process is ready.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::host::Report;
use super::machine::UnitId;
use super::resolve::ResolvedProbe;
use super::slot::Slot;
use crate::health::wait_until_good;
use crate::process;
use crate::procfs::Proc;

/// A wait is worth a line once it has lasted this long.
const WORTH_SAYING: Duration = Duration::from_secs(1);

/// Asks a unit that was started at `since` until it is ready or its limit is over: `Ready` or `NotReady`.
pub(super) async fn until_ready(
    unit: UnitId,
    probe: ResolvedProbe,
    slot: Arc<Slot>,
    since: Instant,
    reports: mpsc::UnboundedSender<Report>,
) {
    let mut said = false;
    let still_waiting = |waited: Duration, answer: &str| {
        if waited >= WORTH_SAYING && !said {
            said = true;
            let _ = reports.send(Report::StillWaiting { unit, answer: answer.to_owned() });
        }
    };
    let accept = || {
        let slot = Arc::clone(&slot);
        let port = probe.own_port;
        async move {
            let Some(port) = port else { return Ok(()) };
            // It reads much of /proc: not on the thread of the engine.
            let looked = tokio::task::spawn_blocking(move || listens_itself(&slot, port)).await;
            looked.unwrap_or(Ok(()))
        }
    };
    let left = probe.limit.saturating_sub(since.elapsed());
    let end = wait_until_good(&probe.target, probe.schedule, left, accept, still_waiting).await;
    let _ = reports.send(match end {
        Ok(()) => Report::Ready { unit },
        Err(answer) => Report::NotReady { unit, limit: probe.limit, answer },
    });
}

/// A good answer counts only if the unit's own tree listens, where the kernel can say so: a stranger on the same port
/// would answer for it.
fn listens_itself(slot: &Slot, port: u16) -> Result<(), String> {
    let proc = Proc::default();
    let Some(members) = slot.members() else { return Ok(()) };
    let own = proc.members(&[members], &process::adopted()).into_iter().flatten().map(|s| s.identity.pid);
    if proc.listens(port, own) != Some(false) {
        return Ok(());
    }
    match proc.holder(port) {
        Some(holder) if holder.pid.is_some() => {
            Err(format!("port {port} is answered by {holder}, not by this process"))
        }
        _ => Ok(()),
    }
}
