//! The process trees of all units, looked at again and again: who is in them, their memory, their CPU time.
//!
//! Each look walks from the roots along the kernel's lists of children. Whoever was in a tree once belongs to it until its
//! end, wherever it hangs then: a daemon that left for another session and another environment, or a child that the
//! kernel left out of a list which changed while it was read. Only an orphan that was never seen is told by its marks.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use super::account::{Account, Gone};
use super::ends::Ends;
use super::identity::{Identity, Proc, Stat};
use super::kept::Files;
use super::memory::TreeMemory;
use super::tree::Members;
use super::watched::{Children, Watched};

/// Process trees under observation. The descriptors that it keeps open are at most half of those that gymrun may have.
#[derive(Debug)]
pub struct Census {
    proc: Proc,
    files: Files,
    known: HashMap<i32, Known>,
    /// By the root of the unit.
    trees: HashMap<Identity, Tree>,
    round: u64,
    /// The last looks at roots that have ended,
    ends: Ends,
    /// and those of them that were there before this round.
    ended: HashMap<i32, Stat>,
}

#[derive(Debug)]
struct Known {
    watched: Watched,
    /// The root of its unit.
    owner: Identity,
    /// When it was seen last.
    round: u64,
}

#[derive(Debug, Default)]
struct Tree {
    members: Vec<i32>,
    account: Account,
    gone: Vec<Gone>,
}

/// A process to look at.
struct Step {
    pid: i32,
    owner: Identity,
    found: Found,
}

/// How a process was found.
#[derive(Clone, Copy)]
enum Found {
    /// It is the root of a unit.
    Root,
    /// It became a child of gymrun, and is told by its marks.
    Orphan,
    /// It stood in the list of children of this one.
    Child(i32),
    /// It was in the tree before.
    Before,
}

impl Census {
    /// Knows nobody yet. A root that is noted in `ends` before it is reaped is looked at once more as it was then.
    #[must_use]
    pub fn new(proc: Proc, ends: Ends) -> Self {
        Self::with(proc, ends, Files::within_limit())
    }

    pub(super) fn with(proc: Proc, ends: Ends, files: Files) -> Self {
        let (known, trees) = (HashMap::new(), HashMap::new());
        Self { proc, files, known, trees, round: 0, ends, ended: HashMap::new() }
    }

    /// Finds out who is in the trees of `units` now. `adopted` are the children of gymrun that nobody spawned directly.
    ///
    /// An error says that gymrun or the machine is out of descriptors, so that the trees could not be seen whole.
    pub fn walk(&mut self, units: &[Members], adopted: &[i32]) -> io::Result<()> {
        self.round += 1;
        self.ended.extend(self.ends.take_all());
        let mut former = std::mem::take(&mut self.trees);
        for unit in units {
            let mut tree = former.remove(&unit.root).unwrap_or_default();
            tree.members.clear();
            self.trees.insert(unit.root, tree);
        }
        self.known.retain(|_, known| self.trees.contains_key(&known.owner));
        let unknown: Vec<i32> = adopted.iter().copied().filter(|pid| !self.known.contains_key(pid)).collect();
        let mut steps: Vec<Step> = self
            .proc
            .owners(units, &unknown)
            .into_iter()
            .map(|(pid, unit)| Step { pid, owner: units[unit].root, found: Found::Orphan })
            .collect();
        steps.extend(units.iter().map(|unit| Step { pid: unit.root.pid, owner: unit.root, found: Found::Root }));
        self.follow(steps);
        let unseen = self.known.iter().filter(|(_, known)| known.round != self.round);
        let steps = unseen.map(|(pid, known)| Step { pid: *pid, owner: known.owner, found: Found::Before }).collect();
        self.follow(steps);
        self.whole()?;
        self.ended.clear();
        self.close_accounts();
        Ok(())
    }

    /// The memory of a unit's tree as it was walked last, by the identity of its root. The proportional sets are read now,
    /// each of them, or not at all.
    pub fn memory(&mut self, root: Identity, with_pss: bool) -> io::Result<TreeMemory> {
        let mut sum = TreeMemory::none(with_pss);
        for pid in self.trees.get(&root).map(|tree| tree.members.as_slice()).unwrap_or_default() {
            let Some(Known { watched, .. }) = self.known.get_mut(pid) else { continue };
            let reading = if with_pss {
                watched.exact(&self.proc, &mut self.files)
            } else {
                watched.resident(&self.proc, &mut self.files)
            };
            sum.add(*pid, reading);
        }
        self.whole()?;
        Ok(sum)
    }

    /// The CPU time that a unit's tree has taken up to the last walk, ended processes included. It never falls. What a
    /// process took between its last look and its end is missing if it is not the root and nobody in the tree waited for it.
    #[must_use]
    pub fn cpu_time(&self, root: Identity) -> Duration {
        let ticks = self.trees.get(&root).map_or(0, |tree| tree.account.total());
        Duration::from_secs_f64(ticks as f64 / ticks_per_second() as f64)
    }

    /// How many files are open.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.files.open()
    }

    /// Fails if a file could not be opened for want of descriptors.
    fn whole(&mut self) -> io::Result<()> {
        self.files.trouble().map_or(Ok(()), |errno| Err(errno.into()))
    }

    fn follow(&mut self, mut steps: Vec<Step>) {
        let mut children = Vec::new();
        let mut scanned: Option<HashMap<i32, Vec<i32>>> = None;
        while let Some(step) = steps.pop() {
            if !self.visit(&step) {
                continue;
            }
            let Some(Known { watched, .. }) = self.known.get_mut(&step.pid) else { continue };
            if matches!(watched.children(&self.proc, &mut self.files, &mut children), Children::Unlisted) {
                let scanned = scanned.get_or_insert_with(|| self.proc.all_children());
                children.extend(scanned.get(&step.pid).into_iter().flatten());
            }
            let below = |child| Step { pid: child, owner: step.owner, found: Found::Child(step.pid) };
            steps.extend(children.drain(..).map(below));
        }
    }

    /// Looks at a process; whether it is there and was not looked at in this round yet.
    fn visit(&mut self, step: &Step) -> bool {
        if let Some(known) = self.known.get_mut(&step.pid) {
            if known.round == self.round {
                return false;
            }
            if known.watched.look(&self.proc, &mut self.files) {
                // The pid of a root that has ended may be somebody else's by now, who is known.
                if matches!(step.found, Found::Root) && known.watched.stat.identity != step.owner {
                    return false;
                }
                (known.round, known.owner) = (self.round, step.owner);
                self.join(step);
                return true;
            }
            if self.files.in_trouble() {
                return false;
            }
            if self.look_back(step) {
                return true;
            }
            self.bury(step.pid);
        }
        let Some(watched) = Watched::open(step.pid, &self.proc, &mut self.files) else { return self.look_back(step) };
        // Whoever has the pid by now need not be who was meant.
        let meant = match step.found {
            Found::Root => watched.stat.identity == step.owner,
            Found::Orphan => true,
            Found::Child(parent) => watched.stat.parent == parent,
            Found::Before => false,
        };
        if meant {
            self.known.insert(step.pid, Known { watched, owner: step.owner, round: self.round });
            self.join(step);
        }
        meant
    }

    /// Takes in the last look at a root that has ended; whether there is one.
    fn look_back(&mut self, step: &Step) -> bool {
        if !matches!(step.found, Found::Root) {
            return false;
        }
        let before = self.ended.remove(&step.pid).filter(|stat| stat.identity == step.owner);
        let Some(last) = before.or_else(|| self.ends.take(step.owner)) else { return false };
        let (owner, round) = (step.owner, self.round);
        let new = || Known { watched: Watched::from(last), owner, round };
        let known = self.known.entry(step.pid).or_insert_with(new);
        if known.watched.stat.identity != owner {
            return false;
        }
        known.watched.take_in(last);
        (known.round, known.owner) = (round, owner);
        self.join(step);
        true
    }

    fn join(&mut self, step: &Step) {
        if let Some(tree) = self.trees.get_mut(&step.owner) {
            tree.members.push(step.pid);
        }
    }

    /// Forgets one that is not there any more.
    fn bury(&mut self, pid: i32) {
        let Some(Known { watched, owner, .. }) = self.known.remove(&pid) else { return };
        if let Some(tree) = self.trees.get_mut(&owner) {
            tree.gone.push(Gone { pid, parent: watched.stat.parent, ticks: watched.ticks() });
        }
    }

    fn close_accounts(&mut self) {
        for (root, tree) in &mut self.trees {
            let known = &self.known;
            let member = |pid: &i32| known.get(pid).filter(|known| known.owner == *root).map(|known| &known.watched);
            let living = tree.members.iter().filter_map(member).map(Watched::ticks).fold(0, u64::saturating_add);
            let waited = |pid| member(&pid).map(|w| w.stat.waited_ticks.saturating_sub(w.waited_before));
            tree.account.close(living, &tree.gone, waited);
            tree.gone.clear();
        }
    }
}

/// The time as [`Identity::started`] has it: a process that starts from now on has this or more.
#[must_use]
pub fn now() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from);
    let ticks = now.as_nanos() * u128::from(ticks_per_second()) / 1_000_000_000;
    u64::try_from(ticks).unwrap_or_default()
}

/// Of the times in `/proc/PID/stat`.
pub(super) fn ticks_per_second() -> u64 {
    use std::sync::OnceLock;
    static TICKS: OnceLock<u64> = OnceLock::new();
    *TICKS.get_or_init(|| {
        nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)
            .ok()
            .flatten()
            .and_then(|ticks| u64::try_from(ticks).ok())
            .filter(|ticks| *ticks > 0)
            .unwrap_or(100)
    })
}
