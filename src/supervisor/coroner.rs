//! Remembers what is needed to explain a death: out-of-memory counters as they were, and what each tree held.
//!
//! The counters of gymrun's own cgroup and of the host are read at the start, and its own again with each memory sample, so
//! that a kill is known to be recent. Those of a unit that is in another cgroup are read when it starts. Everything else is
//! read once a process has died: most of it before it is reaped, when the kernel still shows its limits and its cgroup.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::cause::{Facts, Kills, explain};
use super::counter::Counter;
use super::resolve::Resolved;
use super::slot::Slot;
use crate::events::{EventKind, ExitStatus, Explanation, Held, MemoryAtDeath, Place, Sample, Sink};
use crate::procfs::{CgroupVersion, Cgroups, Ends, MemoryCgroup, Proc, Remains, Space};

/// A file system that does not answer costs its part of an explanation; a machine that is busy does not.
const LIMIT: Duration = Duration::from_secs(5);

/// One for all units of a job.
#[derive(Debug)]
pub(super) struct Coroner {
    proc: Proc,
    cgroups: Cgroups,
    ends: Ends,
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    /// gymrun's own cgroup.
    own: Option<Ledger>,
    /// The cgroup that accounts for each process that runs, by pid.
    homes: HashMap<u32, MemoryCgroup>,
    /// Those of them that are not gymrun's own.
    others: HashMap<PathBuf, Ledger>,
    host: Option<Counter>,
    /// By name: the pid of its root, and what its tree held at the last two samples.
    held: HashMap<String, (u32, [HeldAt; 2])>,
}

#[derive(Debug)]
struct Ledger {
    cgroup: MemoryCgroup,
    kills: Counter,
}

#[derive(Clone, Copy, Debug)]
struct HeldAt {
    bytes: u64,
    proportional: bool,
    at: Instant,
}

/// A process that has died.
#[derive(Clone, Debug)]
pub(super) struct Death {
    pub(super) process: String,
    pub(super) pid: u32,
    pub(super) status: ExitStatus,
    pub(super) remains: Remains,
    /// Its temporary directory, and the job's directory.
    pub(super) temporary: PathBuf,
    pub(super) job_dir: PathBuf,
    /// It runs in a job of Slurm.
    pub(super) slurm: bool,
}

impl Death {
    /// What is known at once of a unit that has died.
    pub(super) fn of(process: &str, slot: &Slot, unit: &Resolved, job_dir: &Path, status: ExitStatus) -> Self {
        let temporary = unit.environment.get("TMPDIR").unwrap_or("/tmp".as_ref());
        Self {
            process: process.to_owned(),
            pid: slot.root.get().map_or(0, |root| root.pid.cast_unsigned()),
            status,
            remains: slot.remains.get().cloned().unwrap_or_default(),
            temporary: unit.cwd.join(temporary),
            job_dir: job_dir.to_owned(),
            slurm: unit.environment.get("SLURM_JOB_ID").is_some(),
        }
    }
}

impl Ledger {
    fn of(cgroup: MemoryCgroup, now: Instant) -> Option<Self> {
        let kills = Counter::new(cgroup.oom_kills()?, now);
        Some(Self { cgroup, kills })
    }

    fn look(&mut self, now: Instant) {
        if let Some(value) = self.cgroup.oom_kills() {
            self.kills.look(value, now);
        }
    }

    /// What is killed in `other` is counted here, too.
    fn covers(&self, other: &MemoryCgroup) -> bool {
        self.cgroup.version() == CgroupVersion::V2 && other.directory().starts_with(self.cgroup.directory())
    }
}

impl Coroner {
    /// Reads the counters as they are now.
    pub(super) fn new(proc: Proc, own: u32) -> Self {
        let now = Instant::now();
        let cgroups = proc.cgroups();
        let seen = Seen {
            own: cgroups.memory(own.cast_signed()).and_then(|cgroup| Ledger::of(cgroup, now)),
            homes: HashMap::new(),
            others: HashMap::new(),
            host: proc.oom_kills().map(|value| Counter::new(value, now)),
            held: HashMap::new(),
        };
        Self { proc, cgroups, ends: Ends::default(), seen: Mutex::new(seen) }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A unit's process begins to run, in gymrun's own cgroup or in what is accounted for like that one.
    pub(super) fn begins(&self, pid: u32) {
        // A former process of that pid may have had another.
        self.lock().homes.remove(&pid);
    }

    /// Units' processes have run for a while: notes the cgroups that they are in. What was started through a program that
    /// moves itself to one of its own is there by now.
    fn run(&self, mut pids: Vec<u32>) {
        let own = self.lock().own.as_ref().map(|own| own.cgroup.clone());
        if let Some(own) = own.filter(|_| !pids.is_empty()) {
            // Nearly all are where gymrun is, and one list says so of all of them.
            let here: HashSet<i32> = own.members().into_iter().collect();
            let mut seen = self.lock();
            for pid in pids.extract_if(.., |pid| here.contains(&pid.cast_signed())) {
                seen.homes.insert(pid, own.clone());
            }
        }
        for pid in pids {
            self.runs(pid);
        }
    }

    /// One of them has another cgroup than gymrun, or cannot be told.
    fn runs(&self, pid: u32) {
        let Some(cgroup) = self.cgroups.memory(pid.cast_signed()) else { return };
        let mut seen = self.lock();
        let known =
            seen.own.as_ref().is_some_and(|own| own.cgroup == cgroup) || seen.others.contains_key(cgroup.directory());
        if !known && let Some(ledger) = Ledger::of(cgroup.clone(), Instant::now()) {
            seen.others.insert(cgroup.directory().to_owned(), ledger);
        }
        seen.homes.insert(pid, cgroup);
    }

    /// A sink for the sampler, whose samples are noted here on their way.
    pub(super) fn sees(self: &Arc<Self>, sink: &Sink) -> Sink {
        let coroner = Arc::clone(self);
        sink.seen_by(move |event| {
            if let EventKind::MemorySampled(sample) = event {
                coroner.sampled(sample);
            }
        })
    }

    /// Memory was sampled.
    fn sampled(&self, sample: &Sample) {
        let at = Instant::now();
        let mut new = Vec::new();
        let mut seen = self.lock();
        if let Some(own) = &mut seen.own {
            own.look(at);
        }
        // One without processes is told once more for its CPU time alone.
        for tree in sample.trees.iter().filter(|tree| tree.processes > 0) {
            let held = HeldAt { bytes: tree.pss.unwrap_or(tree.rss), proportional: tree.pss.is_some(), at };
            match seen.held.get_mut(&tree.process) {
                Some((pid, samples)) if *pid == tree.pid => *samples = [samples[1], held],
                _ => {
                    seen.held.insert(tree.process.clone(), (tree.pid, [held; 2]));
                    new.push(tree.pid);
                }
            }
        }
        drop(seen);
        self.run(new);
    }

    /// Reads what a process still shows that has ended and is not reaped yet, unless it was asked to end.
    pub(super) fn inspect(&self, slot: &Slot, status: ExitStatus) {
        let (None, Some(root)) = (slot.asked.get(), slot.root.get()) else { return };
        self.ends.note(&self.proc, root.pid);
        if !status.success() {
            let _ = slot.remains.set(Remains::of(&self.proc, &self.cgroups, root.pid));
        }
    }

    /// The last looks at processes that nobody asked to end.
    pub(super) fn ends(&self) -> Ends {
        self.ends.clone()
    }

    /// The end of a process's log, if it is wanted, and why it died, if it has.
    pub(super) async fn look_back(
        self: &Arc<Self>,
        slot: &Slot,
        lines: bool,
        death: Option<Death>,
    ) -> (Vec<String>, Option<Explanation>) {
        let lines = async { if lines { slot.last_lines().await } else { Vec::new() } };
        tokio::join!(lines, async { self.explain(death?).await })
    }

    /// Why a process died, as far as can be known.
    async fn explain(self: &Arc<Self>, death: Death) -> Option<Explanation> {
        let (status, slurm) = (death.status, death.slurm);
        if status.success() {
            return None;
        }
        let (temporary, job_dir) = (death.temporary.clone(), death.job_dir.clone());
        let places = tokio::task::spawn_blocking(move || places(temporary, job_dir));
        let coroner = Arc::clone(self);
        let counted = tokio::task::spawn_blocking(move || {
            let core_pattern = coroner.proc.core_pattern();
            let (kills, memory) = coroner.counted(&death);
            (death.remains, core_pattern, kills, memory)
        });
        let (places, counted) = tokio::join!(tokio::time::timeout(LIMIT, places), tokio::time::timeout(LIMIT, counted));
        let (remains, core_pattern, kills, memory) = counted.ok()?.ok()?;
        let places = places.ok().and_then(Result::ok).unwrap_or_default();
        explain(&Facts { status, remains, core_pattern, kills, memory, places, slurm })
    }

    /// The out-of-memory kills that may explain a death, and what was known of its memory. SIGKILL claims one of them.
    fn counted(&self, death: &Death) -> (Kills, MemoryAtDeath) {
        let now = Instant::now();
        let by_sigkill = death.status.signal == Some(libc::SIGKILL);
        let mut seen = self.lock();
        let Seen { own, homes, others, host, held } = &mut *seen;
        let noted = homes.remove(&death.pid);
        if let (Some(host), Some(value)) = (host.as_mut(), self.proc.oom_kills()) {
            host.look(value, now);
        }
        let on_host = host.as_ref().map(|host| host.recent(now));
        let mut ledgers: Vec<&mut Ledger> = Vec::new();
        match death.remains.memory.as_ref().or(noted.as_ref()) {
            Some(cgroup) if own.as_ref().is_none_or(|own| own.cgroup != *cgroup) => {
                let key = cgroup.directory().to_owned();
                if !others.contains_key(&key)
                    && let Some(ledger) = unknown(cgroup, host.as_ref(), now)
                {
                    others.insert(key.clone(), ledger);
                }
                ledgers.extend(others.get_mut(&key));
                ledgers.extend(own.as_mut().filter(|own| own.covers(cgroup)));
            }
            _ => ledgers.extend(own.as_mut()),
        }
        for ledger in &mut ledgers {
            ledger.look(now);
        }
        let first = ledgers.first().map(|ledger| ledger.kills);
        let kills = Kills {
            cgroup: first.map(|kills| kills.recent(now)),
            host: on_host,
            within_seconds: first.or(*host).map_or(0.0, |kills| kills.within(now).as_secs_f64()),
        };
        let total = self.proc.host_memory().total;
        let memory = MemoryAtDeath {
            // A limit that is no less than all there is limits nothing.
            limit_bytes: ledgers.first().and_then(|l| l.cgroup.limit()).filter(|limit| total == 0 || *limit < total),
            held: held.get(&death.process).filter(|(pid, _)| *pid == death.pid).map(|(_, samples)| last(samples, now)),
        };
        if by_sigkill && kills.cgroup.or(kills.host).is_some_and(|count| count > 0) {
            for ledger in ledgers {
                ledger.kills.claim();
            }
            if let Some(host) = host {
                host.claim();
            }
        }
        (kills, memory)
    }
}

/// The last sample of a tree that was whole: a great process takes its time to die, and holds less and less meanwhile.
fn last([former, latest]: &[HeldAt; 2], now: Instant) -> Held {
    let sample = if latest.bytes < former.bytes / 2 { former } else { latest };
    Held {
        bytes: sample.bytes,
        proportional: sample.proportional,
        seconds_before: now.saturating_duration_since(sample.at).as_secs_f64(),
    }
}

/// A cgroup that is seen at a death for the first time: what it counted may be old, but not more of it is new than the host
/// has counted of late.
fn unknown(cgroup: &MemoryCgroup, host: Option<&Counter>, now: Instant) -> Option<Ledger> {
    let (recent, since) = host.map_or((0, now), |host| (host.recent(now), host.after()));
    let before = cgroup.oom_kills()?.saturating_sub(recent);
    Some(Ledger { cgroup: cgroup.clone(), kills: Counter::new(before, since) })
}

/// Where a process may write, with what is left; each file system once.
fn places(temporary: PathBuf, job_dir: PathBuf) -> Vec<(Place, PathBuf, Space)> {
    use std::os::unix::fs::MetadataExt as _;

    let mut devices = Vec::new();
    let all = [
        (Place::SharedMemory, PathBuf::from("/dev/shm")),
        (Place::JobDirectory, job_dir),
        (Place::Temporary, temporary),
    ];
    let new = all.into_iter().filter(|(_, path)| {
        let device = std::fs::metadata::<&Path>(path).ok().map(|metadata| metadata.dev());
        let new = device.is_some() && !devices.contains(&device);
        devices.push(device);
        new
    });
    new.filter_map(|(place, path)| Space::of(&path).map(|space| (place, path, space))).collect()
}

#[cfg(test)]
#[path = "coroner_tests.rs"]
mod tests;
