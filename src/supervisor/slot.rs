//! What is known of a unit's process, and what becomes of its output.

use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::logs::LifeLog;
use super::resolve::Resolved;
use crate::diag::counted;
use crate::events::Sink;
use crate::process::{Cgroup, Copier, Finishing};
use crate::procfs::{Identity, Members, Remains};

/// How long a copier may take to write what is already there, and how long the end of a log may take to be read.
const DRAIN: Duration = Duration::from_secs(2);
/// How long a copier may take at the very end.
const FILED: Duration = Duration::from_secs(5);
/// At the end output is shown for as long as somebody reads it: for that long without any progress,
const QUIET: Duration = Duration::from_secs(2);
/// and for that long in all.
const SHOWN: Duration = Duration::from_secs(5);

/// A unit's process, as the host and the tasks that watch or stop it see it.
#[derive(Debug)]
pub(super) struct Slot {
    /// Known once it runs.
    pub(super) root: OnceLock<Identity>,
    /// When it began to run.
    pub(super) since: OnceLock<Instant>,
    /// Whether the process itself has been reaped.
    pub(super) ended: watch::Sender<bool>,
    /// gymrun has asked it to end: nobody will ask why it did.
    pub(super) asked: OnceLock<()>,
    /// What it showed between its end and that, unless it exited with 0 or was asked to end.
    pub(super) remains: OnceLock<Remains>,
    /// The entry of its environment that marks it.
    pub(super) mark: String,
    /// The cgroup of its own.
    pub(super) cgroup: Option<Arc<Cgroup>>,
    /// It does not run in that.
    pub(super) outside: OnceLock<()>,
    /// Copies its output, if that goes through a pipe.
    pub(super) copier: OnceLock<Copier>,
    /// Its log.
    pub(super) log: OnceLock<LifeLog>,
    /// It has been ready.
    pub(super) was_ready: OnceLock<()>,
    /// It was said that somebody else may have answered in its place.
    pub(super) doubted: OnceLock<()>,
}

impl Slot {
    /// Nothing runs yet.
    pub(super) fn new(unit: &Resolved) -> Self {
        Self::with(unit.mark.clone(), unit.cgroup.clone())
    }

    /// The same for a unit of which no more is known.
    pub(super) fn with(mark: String, cgroup: Option<Arc<Cgroup>>) -> Self {
        Self {
            root: OnceLock::new(),
            since: OnceLock::new(),
            ended: watch::Sender::new(false),
            asked: OnceLock::new(),
            remains: OnceLock::new(),
            mark,
            cgroup,
            outside: OnceLock::new(),
            copier: OnceLock::new(),
            log: OnceLock::new(),
            was_ready: OnceLock::new(),
            doubted: OnceLock::new(),
        }
    }

    /// How its tree is found; `None` before it was spawned.
    pub(super) fn members(&self) -> Option<Members> {
        self.root.get().map(|root| Members {
            root: *root,
            mark: self.mark.clone(),
            cgroup: self.cgroup.as_ref().map(|cgroup| cgroup.name().to_owned()),
        })
    }

    /// Whether whatever it starts is born in its cgroup.
    pub(super) fn contained(&self) -> bool {
        self.cgroup.is_some() && self.outside.get().is_none()
    }

    /// Whether the process itself runs.
    pub(super) fn running(&self) -> bool {
        self.root.get().is_some() && !*self.ended.borrow()
    }

    /// The end of its log, with all that it has written by now.
    pub(super) async fn last_lines(&self) -> Vec<String> {
        if let Some(copier) = self.copier.get() {
            let _ = timeout(DRAIN, copier.drain()).await;
        }
        let Some(log) = self.log.get().cloned() else { return Vec::new() };
        // A file system that does not answer costs the lines, not the job.
        let read = timeout(DRAIN, tokio::task::spawn_blocking(move || log.last_lines())).await;
        read.ok().and_then(Result::ok).unwrap_or_default()
    }

    /// Ends its copier: what was written is in the log, whoever still holds the pipe, and shown as far as somebody
    /// reads it. What is lost is said. `to_file` is dropped once nothing comes into the log any more.
    pub(super) async fn finish(&self, name: &str, sink: &Sink, to_file: Option<mpsc::Sender<()>>) {
        let Some(copier) = self.copier.get() else { return };
        let Finishing { filed, mut shown } = copier.finish();
        if timeout(FILED, filed).await.is_err() {
            let seconds = FILED.as_secs();
            let message = format!("the end of its output is not in its log: it was not written within {seconds} s");
            sink.warn(Some(name), message, None);
        }
        drop(to_file);
        // Somebody who does not read gymrun's own output must not keep it here for ever.
        let start = Instant::now();
        let mut left = copier.unshown();
        while timeout(QUIET, &mut shown).await.is_err() {
            let now = copier.unshown();
            if now >= left || start.elapsed() >= SHOWN {
                let message = format!(
                    "the end of its output is not shown, since nobody reads it: {}",
                    counted(now, "byte", "bytes")
                );
                sink.warn(Some(name), message, Some("its log has them".to_owned()));
                break;
            }
            left = now;
        }
    }
}
