//! One process that is looked at again and again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::identity::{Proc, Stat, number};
use super::kept::{Files, Kept};
use super::memory::{Reading, resident, rollup};

/// A process with its open files. They are bound to it: a later one of the same pid is another.
#[derive(Debug)]
pub(super) struct Watched {
    pid: i32,
    /// What the kernel said at the last look.
    pub(super) stat: Stat,
    /// What it had waited for at the look before.
    pub(super) waited_before: u64,
    stat_file: Option<Kept>,
    statm: Option<Kept>,
    rollup: Option<Kept>,
    /// The stack of the program that `rollup` was opened for. That file is bound to an address space, not to a process:
    /// after an exec it tells of the former one, which may live on in somebody else.
    rollup_stack: u64,
    /// The children of each thread.
    threads: Vec<(i32, Option<Kept>)>,
    /// It was seen to have an address space of its own.
    own_space: bool,
}

/// The children of a process.
pub(super) enum Children {
    /// They were added to the list.
    Listed,
    /// This kernel does not list them.
    Unlisted,
}

impl Watched {
    /// Begins with a process, if there is one.
    pub(super) fn open(pid: i32, proc: &Proc, files: &mut Files) -> Option<Self> {
        let mut stat_file = None;
        let stat = Stat::parse(files.read(&mut stat_file, || proc.file(pid, "stat")).ok()?)?;
        Some(Self { stat_file, ..Self::from(stat) })
    }

    /// What is known by one look.
    pub(super) fn from(stat: Stat) -> Self {
        Self {
            pid: stat.identity.pid,
            stat,
            waited_before: 0,
            stat_file: None,
            statm: None,
            rollup: None,
            rollup_stack: 0,
            threads: Vec::new(),
            own_space: false,
        }
    }

    /// Looks again; whether it is still that very process.
    pub(super) fn look(&mut self, proc: &Proc, files: &mut Files) -> bool {
        let pid = self.pid;
        let read = files.read(&mut self.stat_file, || proc.file(pid, "stat")).ok();
        let Some(now) = read.and_then(Stat::parse).filter(|now| now.identity == self.stat.identity) else {
            return false;
        };
        self.take_in(now);
        true
    }

    /// Takes in a look at it.
    pub(super) fn take_in(&mut self, now: Stat) {
        self.waited_before = self.stat.waited_ticks;
        // What is read at two times must not run backwards for it.
        let former = std::mem::replace(&mut self.stat, now);
        self.stat.own_ticks = now.own_ticks.max(former.own_ticks);
        self.stat.waited_ticks = now.waited_ticks.max(former.waited_ticks);
        if now.state == 'Z' {
            (self.statm, self.rollup) = (None, None);
        }
        if !now.alive() {
            self.threads.clear();
        }
    }

    /// All CPU time that it is known to have taken, with what it waited for, in clock ticks.
    pub(super) fn ticks(&self) -> u64 {
        self.stat.own_ticks.saturating_add(self.stat.waited_ticks)
    }

    /// Adds its children, those of all its threads, to `found`.
    pub(super) fn children(&mut self, proc: &Proc, files: &mut Files, found: &mut Vec<i32>) -> Children {
        if !self.stat.alive() {
            return Children::Listed;
        }
        let pid = self.pid;
        let tasks = proc.file(pid, "task");
        if self.stat.threads > 1 {
            self.list_threads(&tasks);
        } else if self.threads.len() != 1 || self.threads[0].0 != pid {
            self.threads.retain(|(thread, _)| *thread == pid);
            if self.threads.is_empty() {
                self.threads.push((pid, None));
            }
        }
        for (thread, kept) in &mut self.threads {
            let own = || tasks.join(thread.to_string());
            match files.read(kept, || own().join("children")) {
                Ok(text) => found.extend(text.split(u8::is_ascii_whitespace).filter_map(number::<i32>)),
                Err(error) if error.kind() == io::ErrorKind::NotFound && own().exists() => {
                    return Children::Unlisted;
                }
                Err(_) => {}
            }
        }
        Children::Listed
    }

    fn list_threads(&mut self, tasks: &Path) {
        let Ok(entries) = fs::read_dir(tasks) else { return };
        let mut now: Vec<i32> =
            entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        now.sort_unstable();
        self.threads.retain(|(thread, _)| now.binary_search(thread).is_ok());
        for thread in now {
            if let Err(place) = self.threads.binary_search_by_key(&thread, |(thread, _)| *thread) {
                self.threads.insert(place, (thread, None));
            }
        }
    }

    /// Its memory, without its proportional set. To be asked after its children.
    pub(super) fn resident(&mut self, proc: &Proc, files: &mut Files) -> Reading {
        match self.space(proc) {
            Space::None => Reading::None,
            Space::OfParent => Reading::Memory { rss: 0, pss: None },
            Space::Own => match self.statm(proc, files) {
                None => Reading::None,
                Some(rss) => Reading::Memory { rss, pss: None },
            },
        }
    }

    /// Its memory with its proportional set, as the kernel counts it now. To be asked after its children.
    pub(super) fn exact(&mut self, proc: &Proc, files: &mut Files) -> Reading {
        match self.space(proc) {
            Space::None => return Reading::None,
            Space::OfParent => return Reading::Memory { rss: 0, pss: Some(0) },
            Space::Own => {}
        }
        if self.rollup_stack != self.stat.stack {
            self.rollup = None;
            self.rollup_stack = self.stat.stack;
        }
        let mut read = self.read_rollup(proc, files);
        if read == Some(Reading::None) && self.rollup.take().is_some() {
            // The address space that it was opened for is gone: the process executes another program, or ends.
            read = self.read_rollup(proc, files);
        }
        read.unwrap_or_else(|| match self.statm(proc, files) {
            None => Reading::None,
            Some(rss) => Reading::Refused { rss },
        })
    }

    fn read_rollup(&mut self, proc: &Proc, files: &mut Files) -> Option<Reading> {
        if self.leaderless() {
            let paths = self.other_threads(proc, "smaps_rollup");
            let mut read = paths.into_iter().map(|path| rollup(files.read(&mut None, || path)));
            return read.find(|read| *read != Some(Reading::None)).unwrap_or(Some(Reading::None));
        }
        let pid = self.pid;
        rollup(files.read(&mut self.rollup, || proc.file(pid, "smaps_rollup")))
    }

    fn statm(&mut self, proc: &Proc, files: &mut Files) -> Option<u64> {
        if self.leaderless() {
            let paths = self.other_threads(proc, "statm");
            return paths.into_iter().find_map(|path| resident(files.read(&mut None, || path).ok()?));
        }
        let pid = self.pid;
        resident(files.read(&mut self.statm, || proc.file(pid, "statm")).ok()?)
    }

    /// Its first thread has ended, and with it all that its own files tell of memory; the other threads have theirs.
    fn leaderless(&self) -> bool {
        self.stat.state == 'Z'
    }

    fn other_threads(&self, proc: &Proc, name: &str) -> Vec<PathBuf> {
        let others = self.threads.iter().filter(|(thread, _)| *thread != self.pid);
        others.map(|(thread, _)| proc.file(self.pid, "task").join(thread.to_string()).join(name)).collect()
    }

    /// Whose memory it has. Between `vfork` and exec it has its parent's, which must not be counted twice.
    fn space(&mut self, proc: &Proc) -> Space {
        if !self.stat.alive() {
            return Space::None;
        }
        if self.stat.forked && !self.own_space && proc.is_live() {
            if same_space(self.pid, self.stat.parent) {
                return Space::OfParent;
            }
            // It never gets its parent's again.
            self.own_space = true;
        }
        Space::Own
    }
}

enum Space {
    /// It has ended.
    None,
    /// It has its parent's.
    OfParent,
    /// It has its own.
    Own,
}

/// Whether two processes have one address space; `false` if the kernel does not tell.
#[expect(unsafe_code, reason = "no library has this call")]
fn same_space(one: i32, other: i32) -> bool {
    const VM: libc::c_int = 1;
    // SAFETY: all arguments are plain numbers.
    unsafe { libc::syscall(libc::SYS_kcmp, one, other, VM, 0_u64, 0_u64) == 0 }
}
