//! Which processes belong to a unit: its descendants, and the daemons that left it.
//!
//! gymrun is a subreaper, so whoever loses its parent becomes a child of gymrun. Such a child is told by the mark in its
//! environment, or by the process group or session that it kept; before all these by its cgroup, where units have some.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;

use super::identity::{Identity, Proc, Stat, number};
use super::kept::read;

/// How the processes of one unit are found.
#[derive(Clone, Debug)]
pub struct Members {
    /// The process that was spawned; it may be gone by now.
    pub root: Identity,
    /// The entry of the environment (`NAME=value`) that marks everything it starts.
    pub mark: String,
    /// The cgroup of its own, as `/proc/PID/cgroup` names it: whatever is in it or below it belongs to the unit.
    pub cgroup: Option<String>,
}

impl Members {
    fn has(&self, cgroup: &str) -> bool {
        let rest = self.cgroup.as_ref().and_then(|own| cgroup.strip_prefix(own.as_str()));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl Proc {
    /// The children of a process, those of all its threads.
    #[must_use]
    pub fn children(&self, pid: i32) -> Vec<i32> {
        let entries = fs::read_dir(self.file(pid, "task")).into_iter().flatten().flatten();
        let threads: Vec<i32> = entries.filter_map(|entry| number(entry.file_name().as_bytes())).collect();
        self.children_of(pid, &threads)
    }

    /// The children of some threads of a process.
    #[must_use]
    pub fn children_of(&self, pid: i32, threads: &[i32]) -> Vec<i32> {
        let mut children = Vec::new();
        let tasks = self.file(pid, "task");
        for thread in threads {
            let own = tasks.join(thread.to_string());
            match read(&own.join("children")) {
                Ok(list) => children.extend(list.split(u8::is_ascii_whitespace).filter_map(number::<i32>)),
                // A kernel without CONFIG_PROC_CHILDREN: the parents of all processes say the same, at a higher price.
                Err(error) if error.kind() == io::ErrorKind::NotFound && own.exists() => {
                    return self.children_by_scan(pid);
                }
                Err(_) => {}
            }
        }
        children
    }

    /// A process and those above it, up to the first.
    #[must_use]
    pub fn ancestors(&self, pid: i32) -> Vec<i32> {
        let mut found = vec![pid];
        let mut at = pid;
        while let Some(stat) = self.stat(at).filter(|stat| stat.parent > 0 && !found.contains(&stat.parent)) {
            at = stat.parent;
            found.push(at);
        }
        found
    }

    /// All processes whose environment, as it was at the last exec, has an entry that begins with `beginning` and another
    /// that is `entry`.
    #[must_use]
    pub fn marked(&self, beginning: &str, entry: &str) -> Vec<i32> {
        let mut found = Vec::new();
        self.images("environ", &self.pids().unwrap_or_default(), |pid, environment| {
            let has = |is_meant: &dyn Fn(&[u8]) -> bool| environment.split(|b| *b == 0).any(is_meant);
            if has(&|e| e.starts_with(beginning.as_bytes())) && has(&|e| e == entry.as_bytes()) {
                found.push(pid);
            }
        });
        found
    }

    fn children_by_scan(&self, parent: i32) -> Vec<i32> {
        let pids = self.pids().unwrap_or_default();
        pids.into_iter().filter(|pid| self.stat(*pid).is_some_and(|s| s.parent == parent)).collect()
    }

    /// The given processes and all their descendants, each once.
    #[must_use]
    pub fn descendants(&self, roots: &[i32]) -> Vec<i32> {
        let mut seen: HashSet<i32> = roots.iter().copied().collect();
        let mut found: Vec<i32> = seen.iter().copied().collect();
        let mut next = 0;
        while let Some(pid) = found.get(next).copied() {
            next += 1;
            for child in self.children(pid) {
                if seen.insert(child) {
                    found.push(child);
                }
            }
        }
        found
    }

    /// Those of `adopted` that belong to a unit, with its place in `units`: by their cgroup, by their mark, or by the group or session that
    /// they kept.
    pub(super) fn owners(&self, units: &[Members], adopted: &[i32]) -> Vec<(i32, usize)> {
        if adopted.is_empty() {
            return Vec::new();
        }
        let by_mark: HashMap<&[u8], usize> = units.iter().enumerate().map(|(i, u)| (u.mark.as_bytes(), i)).collect();
        let grouped = units.iter().any(|unit| unit.cgroup.is_some());
        let by_cgroup = |pid: i32| {
            let name = if grouped { self.cgroup_name(pid) } else { None }?;
            units.iter().position(|unit| unit.has(&name))
        };
        let mut owners: HashMap<i32, usize> = adopted.iter().filter_map(|pid| Some((*pid, by_cgroup(*pid)?))).collect();
        // As it was at the last exec, if it can be read.
        let ungrouped: Vec<i32> = adopted.iter().copied().filter(|pid| !owners.contains_key(pid)).collect();
        self.images("environ", &ungrouped, |pid, environment| {
            let marked = environment.split(|b| *b == 0).find_map(|entry| by_mark.get(entry).copied());
            owners.extend(marked.map(|owner| (pid, owner)));
        });
        let kept = |pid: i32| {
            let stat = self.stat(pid)?;
            units.iter().position(|unit| self.kept(unit.root, &stat))
        };
        let owner = |pid: i32| owners.get(&pid).copied().or_else(|| kept(pid));
        adopted.iter().filter_map(|pid| Some((*pid, owner(*pid)?))).collect()
    }

    /// Whether an orphan kept the group or the session of that very process. The number is reserved while the group or the
    /// session lives; once another has it, or where the orphan is older, it is another's.
    fn kept(&self, root: Identity, orphan: &Stat) -> bool {
        let same_number = root.pid == orphan.group || root.pid == orphan.session;
        same_number
            && orphan.identity.started >= root.started
            && self.identity(root.pid).is_none_or(|holder| holder == root)
    }

    /// The children of all processes, by one look at each.
    pub(super) fn all_children(&self) -> HashMap<i32, Vec<i32>> {
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        for stat in self.pids().unwrap_or_default().into_iter().filter_map(|pid| self.stat(pid)) {
            children.entry(stat.parent).or_default().push(stat.identity.pid);
        }
        children
    }

    /// The processes of each unit that live (zombies are left out), in the order of `units`. `adopted` are the children
    /// of gymrun that nobody spawned directly: orphans that became its own.
    #[must_use]
    pub fn members(&self, units: &[Members], adopted: &[i32]) -> Vec<Vec<Stat>> {
        let mut roots: Vec<Vec<i32>> = units
            .iter()
            .map(|unit| match self.stat(unit.root.pid) {
                Some(stat) if stat.identity == unit.root => vec![unit.root.pid],
                _ => Vec::new(),
            })
            .collect();
        for (pid, owner) in self.owners(units, adopted) {
            roots[owner].push(pid);
        }
        roots
            .iter()
            .map(|roots| {
                self.descendants(roots).into_iter().filter_map(|pid| self.stat(pid)).filter(Stat::alive).collect()
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{Identity, Members, Proc};

    fn process(root: &Path, pid: i32, group: i32, state: char, mark: &str, threads: &[(i32, &str)]) {
        let own = root.join(pid.to_string());
        let stat = format!("{pid} (x) {state} 1 {group} {group} 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 7 0 0\n");
        for (thread, children) in threads {
            let task = own.join("task").join(thread.to_string());
            fs::create_dir_all(&task).expect("a scratch directory");
            fs::write(task.join("children"), children).expect("a scratch file");
        }
        fs::write(own.join("stat"), stat).expect("a scratch file");
        fs::write(own.join("environ"), format!("A=1\0GYMRUN_PROCESS={mark}\0")).expect("a scratch file");
    }

    #[test]
    fn threads_count_once_daemons_belong_by_mark_or_group_and_zombies_do_not_count() {
        let root = tempfile::tempdir().expect("a scratch directory");
        let dir = root.path();
        process(dir, 10, 10, 'S', "j:a", &[(10, "11 "), (12, "13 ")]);
        process(dir, 11, 10, 'S', "j:a", &[(11, "")]);
        process(dir, 13, 10, 'Z', "j:a", &[(13, "")]);
        // Two orphans that gymrun adopted: one by its mark with a child of its own, one by its group alone.
        process(dir, 20, 20, 'S', "j:a", &[(20, "21")]);
        process(dir, 21, 20, 'S', "other", &[(21, "")]);
        process(dir, 30, 40, 'S', "", &[(30, "")]);
        process(dir, 31, 31, 'S', "stranger", &[(31, "")]);
        // One that dropped its environment and left its session is known by its cgroup, or one below; not by a like name.
        for (pid, cgroup) in [(32, "/x/a"), (33, "/x/a/own"), (34, "/x/ab")] {
            process(dir, pid, pid, 'S', "", &[(pid, "")]);
            fs::write(dir.join(format!("{pid}/cgroup")), format!("4:memory:/y\n0::{cgroup}\n"))
                .expect("a scratch file");
        }
        let proc = Proc::at(dir);
        let units = [
            Members {
                root: Identity { pid: 10, started: 7 },
                mark: "GYMRUN_PROCESS=j:a".into(),
                cgroup: Some("/x/a".into()),
            },
            Members { root: Identity { pid: 40, started: 7 }, mark: "GYMRUN_PROCESS=j:b".into(), cgroup: None },
        ];
        let mut found: Vec<Vec<i32>> = proc
            .members(&units, &[20, 30, 31, 32, 33, 34])
            .into_iter()
            .map(|unit| unit.into_iter().map(|s| s.identity.pid).collect())
            .collect();
        found[0].sort_unstable();
        assert_eq!(found, [vec![10, 11, 20, 21, 32, 33], vec![30]]);
    }

    #[test]
    fn a_pid_that_was_used_again_is_not_the_unit() {
        let root = tempfile::tempdir().expect("a scratch directory");
        process(root.path(), 10, 10, 'S', "", &[(10, "")]);
        let units = [Members { root: Identity { pid: 10, started: 6 }, mark: "j:a".into(), cgroup: None }];
        assert_eq!(Proc::at(root.path()).members(&units, &[]), [Vec::new()]);
        // Nor is an orphan whose group has that number now; nor one that is older than a root that is gone.
        process(root.path(), 11, 10, 'S', "", &[(11, "")]);
        process(root.path(), 21, 20, 'S', "", &[(21, "")]);
        let late = Members { root: Identity { pid: 20, started: 8 }, mark: "j:b".into(), cgroup: None };
        let members = Proc::at(root.path()).members(&[units[0].clone(), late], &[11, 21]);
        assert_eq!(members, [Vec::new(), Vec::new()]);
    }
}
