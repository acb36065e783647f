//! Which children there are: spawned ones, adopted ones, and those that are none of the job's.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use super::exit::Exit;
use super::strangers::Strangers;
use super::wait::{Waited, wait};
use crate::procfs::{Identity, Proc};

/// Hears how a child ended.
pub(super) type OnExit = Box<dyn FnOnce(Exit) + Send>;

/// How often a spawn that takes its time is looked at by who wants to reap an orphan.
const LOOK: Duration = Duration::from_millis(1);

struct Child {
    identity: Identity,
    /// Whoever asked for it knows that it runs, so its end may be told.
    announced: AtomicBool,
    /// Who hears of its end; `None` once it is being reaped. Held while its group gets a signal.
    exited: Mutex<Option<OnExit>>,
}

impl Child {
    fn lock(&self) -> MutexGuard<'_, Option<OnExit>> {
        self.exited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The children that were spawned and not reaped yet.
pub(super) struct Registry {
    /// Held while a child is forked and executed, which may take long (a file system that does not answer), and while
    /// a process is reaped that the map does not have: whoever forks waits itself for a child that could not be executed,
    /// so nobody else may take that one away.
    gate: Mutex<()>,
    /// Held for moments only: anybody may ask for it.
    children: Mutex<HashMap<i32, Arc<Child>>>,
    /// There is a new child to wait for.
    spawned: Condvar,
    strangers: Strangers,
    /// The pid of the job's guard, if it has one: a child that is none of the job's. 0 is none.
    guard: AtomicI32,
    /// The thread that spawns; 0 as long as there is none.
    spawner: AtomicI32,
}

impl Registry {
    /// To be made before the first child is spawned.
    pub(super) fn new() -> Self {
        Self {
            gate: Mutex::default(),
            children: Mutex::default(),
            spawned: Condvar::new(),
            strangers: Strangers::note(&Proc::default()),
            guard: AtomicI32::new(0),
            spawner: AtomicI32::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i32, Arc<Child>>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that is spawned is spawned by this thread.
    pub(super) fn spawn_here(&self) {
        self.spawner.store(nix::unistd::gettid().as_raw(), Ordering::SeqCst);
    }

    /// To be held while a child is forked, executed, put in here and announced.
    pub(super) fn begin_spawn(&self) -> MutexGuard<'_, ()> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the guard of the job, which has gymrun as its parent, though no wait sees it.
    pub(super) fn spawn_guard(&self, fork: impl FnOnce() -> io::Result<i32>) -> io::Result<i32> {
        // Until its pid is known it must not be taken for an orphan.
        let _gate = self.begin_spawn();
        let pid = fork()?;
        self.guard.store(pid, Ordering::SeqCst);
        Ok(pid)
    }

    /// Waits for the guard, which is ending.
    pub(super) fn reap_guard(&self, pid: i32) {
        while matches!(wait(Some(pid), libc::WEXITED | libc::__WCLONE), Waited::Nothing) {}
        // From then on the number may be anybody's.
        let _ = self.guard.compare_exchange(pid, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// A child runs; its end is not told before it is announced.
    pub(super) fn insert(&self, identity: Identity, exited: OnExit) {
        let child = Child { identity, announced: AtomicBool::new(false), exited: Mutex::new(Some(exited)) };
        self.lock().insert(identity.pid, Arc::new(child));
    }

    /// Whoever asked for a child has heard that it runs.
    pub(super) fn announce(&self, pid: i32) {
        if let Some(child) = self.lock().get(&pid) {
            child.announced.store(true, Ordering::SeqCst);
        }
        self.spawned.notify_all();
    }

    /// Calls `act` if that very child has not been reaped: its pid and its group are its own for as long as that lasts.
    pub(super) fn while_unreaped(&self, identity: Identity, act: impl FnOnce()) -> bool {
        let child = self.lock().get(&identity.pid).filter(|child| child.identity == identity).cloned();
        let Some(child) = child else { return false };
        let exited = child.lock();
        if exited.is_some() {
            act();
        }
        exited.is_some()
    }

    /// Waits until there is a child again.
    pub(super) fn wait_for_children(&self) {
        let children = self.lock();
        // What was spawned before this is seen here, and what is spawned later rings.
        if matches!(wait(None, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT), Waited::NoChildren) {
            drop(self.spawned.wait(children).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Reaps a process that has ended.
    pub(super) fn reap(&self, pid: i32) {
        if self.reap_spawned(pid) {
            return;
        }
        let gate = match self.gate.try_lock() {
            Ok(gate) => Some(gate),
            Err(TryLockError::Poisoned(gate)) => Some(gate.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if gate.is_some() {
            if !self.reap_spawned(pid) {
                let _ = wait(Some(pid), libc::WEXITED | libc::WNOHANG);
            }
            return;
        }
        // It may be the one that is being spawned. The others are told from it by their pids meanwhile.
        let spawned: Vec<i32> = self.lock().keys().copied().collect();
        for pid in spawned {
            self.reap_spawned(pid);
        }
        thread::sleep(LOOK);
    }

    /// Reaps a spawned child if it has ended, and tells so.
    fn reap_spawned(&self, pid: i32) -> bool {
        let child = self.lock().get(&pid).filter(|child| child.announced.load(Ordering::SeqCst)).cloned();
        let Some(child) = child else { return false };
        // Nobody else reaps what is announced.
        let Waited::Ended(_, exit) = wait(Some(pid), libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) else {
            return false;
        };
        // From now on nobody signals its group; it stays in the list, so that it is not taken for an orphan.
        let exited = child.lock().take();
        if let Some(exited) = exited {
            // Still a zombie: whoever wants to know why it ended can read what the kernel shows of it.
            exited(exit);
        }
        let _ = wait(Some(pid), libc::WEXITED | libc::WNOHANG);
        let mut children = self.lock();
        // The number may be that of a new one by now.
        if children.get(&pid).is_some_and(|now| Arc::ptr_eq(now, &child)) {
            children.remove(&pid);
        }
        true
    }

    /// Whether there are none. Among strangers only a list tells, which is not read in one moment.
    pub(super) fn childless(&self) -> bool {
        if self.strangers.any() {
            return self.children().is_empty();
        }
        matches!(wait(None, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT), Waited::NoChildren)
    }

    /// The children of gymrun that are the job's. One that is being spawned may be among them.
    pub(super) fn children(&self) -> Vec<i32> {
        let proc = Proc::default();
        let own = nix::unistd::getpid().as_raw();
        // No other thread has any: what loses its parent becomes the first one's.
        let mut all = proc.children_of(own, &[own, self.spawner.load(Ordering::SeqCst)]);
        let guard = self.guard.load(Ordering::SeqCst);
        all.retain(|pid| *pid != guard);
        self.strangers.without(&proc, all)
    }

    /// Those of them that nobody spawned.
    pub(super) fn adopted(&self) -> Vec<i32> {
        let all = self.children();
        let spawned = self.lock();
        all.into_iter().filter(|pid| !spawned.contains_key(pid)).collect()
    }
}
