//! Stopping one unit with its whole tree.
//!
//! The stop signal goes to the process group, so that a server can stop its own helpers. Once the process itself is gone,
//! what is left gets SIGTERM, unless it had that already: daemons that left the group, and background processes of a
//! shell, which ignore SIGINT. When the grace is over SIGKILL goes to everything that belongs to the unit, again and
//! again until a look finds nothing: what a killed process leaves behind becomes gymrun's own child, and is found.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::budget::Pace;
use super::host::Report;
use super::looks::{Found, Looks};
use super::machine::UnitId;
use super::resolve::seconds;
use super::slot::Slot;
use crate::plan::{StopPolicy, StopSignal};
use crate::process::{self, Containment, kill_group, send_signal, signal_group};
use crate::procfs::{self, Identity, Proc, Stat};

const SHORTEST_LOOK: Duration = Duration::from_millis(1);
const LONGEST_LOOK: Duration = Duration::from_millis(50);
/// One that has not obeyed by then may be stopped, which hardly any is, and is woken.
const OBEDIENCE: Duration = Duration::from_millis(20);
/// How long a process may take to die of SIGKILL: one in an uninterruptible wait does not.
const KILL_LIMIT: Duration = Duration::from_secs(5);
/// How long a process may take to stop of which nobody knows whose it is.
const STRAY_GRACE: Duration = Duration::from_secs(1);
/// How long the stop signal waits for the look that comes before it.
const FIRST_LOOK: Duration = Duration::from_millis(500);
/// How long the end waits for what was asked to be forked: one that hangs before that may never be.
const FORKING: Duration = Duration::from_secs(1);
/// How long a tree may take to be stopped where it is,
const FREEZING: Duration = Duration::from_secs(2);
/// and how often it is looked at meanwhile.
const FREEZING_LOOKS: usize = 20;
/// How many of those are named.
const NAMED: usize = 5;

/// When what has got SIGKILL at a time is given up, which at leisure has so long to die.
type GiveUpAt = fn(Pace, Instant, Duration) -> Instant;

/// A unit that is to be stopped.
pub(super) struct Stop {
    pub(super) unit: UnitId,
    pub(super) slot: Arc<Slot>,
    pub(super) policy: StopPolicy,
    pub(super) reports: mpsc::UnboundedSender<Report>,
    pub(super) pace: watch::Receiver<Pace>,
    /// What has been seen of it: nothing to begin with.
    pub(super) known: HashSet<Identity>,
    pub(super) looks: Looks,
}

impl Stop {
    /// Stops it within its grace.
    pub(super) async fn run(self) {
        let grace = seconds(self.policy.grace_seconds);
        self.run_until(|pace, started| pace.kill_at(started, grace), Pace::give_up_at).await;
    }

    /// Stops it; `kill_at` says when SIGKILL is due, and `give_up_at` until when its death is waited for, which may change
    /// with the pace.
    pub(super) async fn run_until(mut self, kill_at: impl Fn(Pace, Instant) -> Instant, give_up_at: GiveUpAt) {
        let started = Instant::now();
        let ran = self.slot.running();
        let mut left = match (ran, self.slot.contained()) {
            // Whatever it has started will be found in its cgroup.
            (true, true) => Vec::new(),
            // What it is to do at once does not wait for a look.
            (true, false) if self.at_once() => Vec::new(),
            // What leaves its tree when that is told to stop is known by this.
            (true, false) => timeout(FIRST_LOOK, self.looks.walk(&self.slot)).await.unwrap_or_default(),
            (false, _) => self.left().await,
        };
        self.known.extend(left.iter().map(|stat| stat.identity));
        let mut told = HashSet::new();
        let mut given_up = Vec::new();
        if ran || !left.is_empty() {
            self.report(Report::Stopping { unit: self.unit, signal: name(self.policy.signal), has_ended: !ran });
            // What was in the group before has got that signal, too.
            let mut group = None;
            if let Some(root) = self.slot.root.get() {
                let before = procfs::now();
                if signal_group(*root, self.policy.signal) && self.policy.signal == StopSignal::Term {
                    group = Some((root.pid, before));
                }
            }
            let mut ended = self.slot.ended.subscribe();
            let mut asleep = true;
            let mut pause = SHORTEST_LOOK;
            loop {
                let running = self.slot.running();
                if !running {
                    // Only a look that begins after its end tells that nothing is left.
                    left = self.left().await;
                    if left.is_empty() {
                        break;
                    }
                }
                let deadline = kill_at(*self.pace.borrow_and_update(), started);
                if Instant::now() >= deadline {
                    given_up = self.kill(give_up_at).await;
                    break;
                }
                if !running {
                    tell(&left, group, &mut told);
                }
                tokio::select! {
                    _ = ended.wait_for(|ended| *ended), if running => {}
                    Ok(()) = self.pace.changed() => {}
                    () = sleep_until(deadline) => {}
                    () = sleep_until(started + OBEDIENCE), if running && asleep => {
                        asleep = false;
                        if let Some(root) = self.slot.root.get() {
                            process::wake_group(*root);
                        }
                    }
                    () = sleep(pause), if !running => pause = (pause * 2).min(LONGEST_LOOK),
                }
            }
        }
        self.report(if given_up.is_empty() {
            Report::Gone { unit: self.unit }
        } else {
            Report::GivenUp { unit: self.unit, processes: given_up }
        });
    }

    fn at_once(&self) -> bool {
        *self.pace.borrow() == Pace::Kill
    }

    /// Everything that still lives of it, the root included.
    async fn left(&mut self) -> Vec<Stat> {
        let proc = Proc::default();
        let Found { walked: mut left, grouped } = self.looks.look(&self.slot).await;
        let mut found: HashSet<i32> = left.iter().map(|stat| stat.identity.pid).collect();
        // Those that have lost what the walk knows them by since it saw them; and those of which only the cgroup tells.
        self.known.retain(|process| proc.alive(*process));
        let lost: Vec<i32> = self.known.iter().map(|process| process.pid).filter(|pid| !found.contains(pid)).collect();
        let more = proc.descendants(&lost).into_iter().chain(grouped).filter(|pid| found.insert(*pid));
        left.extend(more.filter_map(|pid| proc.stat(pid)).filter(Stat::alive));
        self.known.extend(left.iter().map(|stat| stat.identity));
        left
    }

    /// Stops all of it where it is, until a look finds nobody new: those that multiply would be ahead of each look for ever.
    async fn freeze(&mut self) {
        let mut frozen = HashSet::new();
        for _ in 0..FREEZING_LOOKS {
            let left = self.left().await;
            if !freeze_new(left.iter().map(|stat| stat.identity), &mut frozen) {
                return;
            }
        }
    }

    /// Kills all of it; gives what does not die.
    async fn kill(&mut self, give_up_at: GiveUpAt) -> Vec<Identity> {
        let mut killed: HashSet<Identity> = HashSet::new();
        if self.at_once() {
            killed.extend(self.below());
            self.known.extend(&killed);
            self.strike();
        }
        if !self.slot.contained() {
            let _ = timeout(FREEZING, self.freeze()).await;
        }
        let start = Instant::now();
        let mut pause = SHORTEST_LOOK;
        let given_up = loop {
            let left = self.left().await;
            if left.is_empty() && !self.slot.running() {
                break Vec::new();
            }
            killed.extend(left.iter().map(|s| s.identity).filter(|process| send_signal(*process, None)));
            // What was forked since the look dies with them.
            self.strike();
            if Instant::now() >= give_up_at(*self.pace.borrow(), start, KILL_LIMIT) {
                break self.give_up(left.into_iter().map(|stat| stat.identity).collect());
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_LOOK);
        };
        killed.retain(|process| !given_up.contains(process));
        if !killed.is_empty() {
            let processes = u32::try_from(killed.len()).unwrap_or(u32::MAX);
            self.report(Report::Killed { unit: self.unit, processes });
        }
        given_up
    }

    /// Says that what got SIGKILL is not waited for any more; gives it, with its root if that was not reaped.
    fn give_up(&self, mut left: Vec<Identity>) -> Vec<Identity> {
        let root = self.slot.root.get().filter(|_| self.slot.running());
        let (what, why) = if left.is_empty() {
            ("has ended, but cannot be reaped", "is it traced?")
        } else {
            ("does not die of SIGKILL", "in an uninterruptible wait?")
        };
        left.extend(root.filter(|root| !left.contains(root)));
        let pids: Vec<String> = left.iter().map(|process| process.pid.to_string()).collect();
        let message = format!("{what}, and is not waited for any longer: pid {} ({why})", pids.join(", "));
        self.report(Report::Warning { unit: Some(self.unit), message, hint: None });
        left
    }

    /// Who is in its cgroup or below its root, which takes no look.
    fn below(&self) -> Vec<Identity> {
        let proc = Proc::default();
        let pids = match (&self.slot.cgroup, self.slot.root.get()) {
            (Some(cgroup), _) if self.slot.contained() => cgroup.pids(),
            (_, Some(root)) if self.slot.running() => proc.descendants(&[root.pid]),
            _ => Vec::new(),
        };
        pids.into_iter().filter_map(|pid| proc.stat(pid)).filter(Stat::alive).map(|stat| stat.identity).collect()
    }

    /// Kills its cgroup and its group, which takes no look.
    fn strike(&self) {
        if let Some(cgroup) = &self.slot.cgroup {
            let _ = cgroup.kill();
        }
        if let Some(root) = self.slot.root.get() {
            let _ = kill_group(*root);
        }
    }

    pub(super) fn report(&self, report: Report) {
        let _ = self.reports.send(report);
    }
}

/// Sends SIGTERM to those that had none yet, as those of `group` that had started before its time, and wakes all of them.
fn tell(processes: &[Stat], group: Option<(i32, u64)>, told: &mut HashSet<Identity>) {
    for stat in processes.iter().filter(|stat| told.insert(stat.identity)) {
        if group.is_some_and(|(group, before)| stat.group == group && stat.identity.started < before) {
            process::wake(stat.identity);
        } else {
            // One that is gone by now needs no telling.
            let _ = send_signal(stat.identity, Some(StopSignal::Term));
        }
    }
}

/// Stops those that have not been stopped yet; whether there were any.
fn freeze_new(processes: impl Iterator<Item = Identity>, frozen: &mut HashSet<Identity>) -> bool {
    let mut any = false;
    for process in processes.filter(|process| frozen.insert(*process)) {
        process::freeze(process);
        any = true;
    }
    any
}

fn name(signal: StopSignal) -> String {
    let word = match signal {
        StopSignal::Term => "SIGTERM",
        StopSignal::Int => "SIGINT",
        StopSignal::Quit => "SIGQUIT",
        StopSignal::Hup => "SIGHUP",
        StopSignal::Usr1 => "SIGUSR1",
        StopSignal::Usr2 => "SIGUSR2",
    };
    word.to_owned()
}

/// What [`sweep`] found.
#[derive(Debug, Default)]
pub(super) struct Swept {
    /// What was still there, in words, the first few by name.
    pub(super) found: Vec<String>,
    /// How many there were.
    pub(super) count: usize,
    /// Those that did not die of SIGKILL.
    pub(super) left: Vec<i32>,
}

/// Ends whatever is still a descendant of gymrun, spawned by it or not, except what was there before it began: asks it to
/// stop, gives it a moment, and kills it with all that is in the job's cgroup. What `pace` leaves of a hurried stop is
/// all that it takes. What is known to be a unit's, and was `given_up`, is not among what it found.
pub(super) async fn sweep(containment: &Containment, pace: Pace, given_up: &[Identity]) -> Swept {
    // Nobody asks for children any more, but a probe that was asked for may not have been forked yet. Where the program of
    // one does not come to be executed it dies with gymrun.
    sweep_until(containment, pace, given_up, process::spawned_so_far()).await
}

/// The same; `forked` is over when all that was asked for has been forked.
async fn sweep_until(
    containment: &Containment,
    pace: Pace,
    given_up: &[Identity],
    forked: impl Future<Output = ()>,
) -> Swept {
    let proc = Proc::default();
    let mut swept = Swept::default();
    let mut told: HashSet<Identity> = HashSet::new();
    let start = Instant::now();
    let kill_at = pace.kill_last_at(start, STRAY_GRACE);
    let give_up_at = pace.give_up_last_at(kill_at, KILL_LIMIT);
    let mut pause = SHORTEST_LOOK;
    let mut forked = pin!(timeout(FORKING, forked));
    let mut all_forked = false;
    loop {
        let left = if process::childless() { Vec::new() } else { descendants(&proc) };
        let killing = Instant::now() >= kill_at;
        if killing {
            containment.kill();
            // With those that come meanwhile.
            let mut frozen = HashSet::new();
            for _ in 0..FREEZING_LOOKS {
                if !freeze_new(descendants(&proc).into_iter(), &mut frozen) {
                    break;
                }
            }
        }
        for process in &left {
            if told.insert(*process) {
                pause = SHORTEST_LOOK;
                if !given_up.contains(process) {
                    swept.count += 1;
                    if swept.found.len() < NAMED {
                        swept.found.push(format!("{} (pid {})", proc.command(process.pid), process.pid));
                    }
                }
                let _ = send_signal(*process, Some(StopSignal::Term));
            }
            if killing {
                let _ = send_signal(*process, None);
            }
        }
        // A process that forks and ends all the time may be between two looks; children that cannot be reaped may not.
        let none = process::childless();
        if (none && all_forked) || Instant::now() >= give_up_at {
            // What has moved itself below another parent is still in the job's cgroup.
            containment.kill();
            // What was seen above may have died of it since.
            swept.left = left.into_iter().filter(|_| !none).map(|process| process.pid).collect();
            return swept;
        }
        tokio::select! {
            biased;
            _ = &mut forked, if !all_forked => all_forked = true,
            () = sleep(pause) => pause = (pause * 2).min(LONGEST_LOOK),
        }
    }
}

/// What lives below gymrun and is the job's.
fn descendants(proc: &Proc) -> Vec<Identity> {
    let found = proc.descendants(&process::children());
    let ours: HashSet<i32> = found.iter().copied().chain([nix::unistd::getpid().as_raw()]).collect();
    let stats = found.into_iter().filter_map(|pid| proc.stat(pid));
    // A pid that was used again since the walk has another parent.
    stats.filter(|stat| stat.alive() && ours.contains(&stat.parent)).map(|stat| stat.identity).collect()
}

#[cfg(test)]
#[path = "teardown_tests.rs"]
mod tests;
