//! Processes below gymrun that are none of the job's: its children from before it began, and what comes of them.
//!
//! `sleep 77 & exec gymrun job.yaml` gives gymrun a child that it never asked for. Such children and their descendants
//! are noted at the begin and at each look, since one that loses its parent becomes gymrun's own child. Whatever stays in
//! gymrun's own process group is one of them, too: what gymrun spawns has a group of its own before it is executed.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::procfs::{Identity, Proc};

/// The strangers below this process.
pub(super) struct Strangers {
    known: Mutex<HashSet<Identity>>,
    /// Whether there were any at the begin.
    any: bool,
    group: i32,
}

impl Strangers {
    /// Notes who is there.
    pub(super) fn note(proc: &Proc) -> Self {
        Self::below(proc, nix::unistd::getpid().as_raw(), nix::unistd::getpgrp().as_raw())
    }

    fn below(proc: &Proc, parent: i32, group: i32) -> Self {
        // Those of the first thread: another has none before it spawns any. A list of the threads, or a look at each, would
        // have the kernel keep files of all of them, in which their ends get into one another's way.
        let found = proc.descendants(&proc.children_of(parent, &[parent]));
        let known: HashSet<Identity> = found.into_iter().filter_map(|pid| proc.identity(pid)).collect();
        Self { any: !known.is_empty(), known: Mutex::new(known), group }
    }

    /// Whether there may be any.
    pub(super) fn any(&self) -> bool {
        self.any
    }

    /// Those of gymrun's children `all` that are no strangers.
    pub(super) fn without(&self, proc: &Proc, mut all: Vec<i32>) -> Vec<i32> {
        if self.any {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.retain(|stranger| proc.identity(stranger.pid) == Some(*stranger));
            let roots: Vec<i32> = known.iter().map(|stranger| stranger.pid).collect();
            known.extend(proc.descendants(&roots).into_iter().filter_map(|pid| proc.identity(pid)));
            all.retain(|pid| {
                proc.stat(*pid).is_some_and(|stat| stat.group != self.group && !known.contains(&stat.identity))
            });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::Strangers;
    use crate::procfs::Proc;

    fn process(root: &Path, pid: i32, group: i32, children: &str) {
        let task = root.join(format!("{pid}/task/{pid}"));
        fs::create_dir_all(&task).expect("a scratch directory");
        fs::write(task.join("children"), children).expect("a scratch file");
        let stat = format!("{pid} (x) S 1 {group} {group} 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 7 0 0\n");
        fs::write(root.join(format!("{pid}/stat")), stat).expect("a scratch file");
    }

    #[test]
    fn what_was_there_before_and_what_comes_of_it_are_strangers() {
        let root = tempfile::tempdir().expect("a scratch directory");
        let dir = root.path();
        let proc = Proc::at(dir);
        process(dir, 1, 1, "2");
        process(dir, 2, 2, "");
        let strangers = Strangers::below(&proc, 1, 1);
        // Later: the stranger has a child in a session of its own, and the job has two.
        process(dir, 2, 2, "3");
        process(dir, 3, 3, "");
        process(dir, 10, 10, "");
        process(dir, 11, 10, "");
        assert_eq!(strangers.without(&proc, vec![2, 10, 11]), [10, 11]);
        // The stranger is gone: its child has become ours, and so has one in our own group that nobody had seen.
        fs::remove_dir_all(dir.join("2")).expect("a scratch directory");
        process(dir, 4, 1, "");
        assert_eq!(strangers.without(&proc, vec![3, 4, 10]), [10]);
        // Where there was nobody at the begin, nobody is a stranger.
        process(dir, 20, 20, "");
        assert_eq!(Strangers::below(&proc, 20, 1).without(&proc, vec![3, 4, 10]), [3, 4, 10]);
    }
}
