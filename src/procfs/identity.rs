//! One process: what `/proc/PID/stat` says of it.

use std::fs;
use std::io;
use std::path::PathBuf;

/// A process beyond doubt: its pid, and when it started (in clock ticks since the machine booted).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// The process id.
    pub pid: i32,
    /// Field 22 of `/proc/PID/stat`.
    pub started: u64,
}

/// The fields of `/proc/PID/stat` that supervision needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Pid and start time.
    pub identity: Identity,
    /// `R`, `S`, `D`, `Z`, ...
    pub state: char,
    /// The parent's pid.
    pub parent: i32,
    /// The process group.
    pub group: i32,
    /// The session.
    pub session: i32,
}

impl Stat {
    /// Whether it can still do anything: neither a zombie nor dead.
    #[must_use]
    pub fn alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x')
    }

    fn parse(text: &str) -> Option<Self> {
        // The command's name stands in parentheses and may hold anything, parentheses and blanks included.
        let (head, tail) = text.rsplit_once(')')?;
        let pid = head.split_once(' ')?.0.parse().ok()?;
        let mut fields = tail.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let session = fields.next()?.parse().ok()?;
        let started = fields.nth(15)?.parse().ok()?;
        Some(Self { identity: Identity { pid, started }, state, parent, group, session })
    }
}

/// A /proc file system.
#[derive(Clone, Debug)]
pub struct Proc {
    root: PathBuf,
}

impl Default for Proc {
    fn default() -> Self {
        Self::at("/proc")
    }
}

impl Proc {
    /// Another root, as tests need it.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The path of a file of a process.
    pub(super) fn file(&self, pid: i32, name: &str) -> PathBuf {
        let mut path = self.root.join(pid.to_string());
        path.push(name);
        path
    }

    /// The path of a file that belongs to no process.
    pub(super) fn global(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// What the kernel says of a process; `None` if there is none.
    #[must_use]
    pub fn stat(&self, pid: i32) -> Option<Stat> {
        // The name may be no UTF-8.
        let bytes = fs::read(self.file(pid, "stat")).ok()?;
        Stat::parse(&String::from_utf8_lossy(&bytes))
    }

    /// Who a pid is now.
    #[must_use]
    pub fn identity(&self, pid: i32) -> Option<Identity> {
        self.stat(pid).map(|s| s.identity)
    }

    /// Whether that very process still runs (a zombie does not).
    #[must_use]
    pub fn alive(&self, identity: Identity) -> bool {
        self.stat(identity.pid).is_some_and(|s| s.identity == identity && s.alive())
    }

    /// All pids.
    pub(super) fn pids(&self) -> io::Result<Vec<i32>> {
        let mut pids = Vec::new();
        for entry in fs::read_dir(&self.root)? {
            if let Some(pid) = entry?.file_name().to_str().and_then(|n| n.parse().ok()) {
                pids.push(pid);
            }
        }
        Ok(pids)
    }

    /// The command line of a process, its first three words at most: later ones may be long or private.
    #[must_use]
    pub fn command(&self, pid: i32) -> String {
        let bytes = fs::read(self.file(pid, "cmdline")).unwrap_or_default();
        let words: Vec<String> = bytes
            .split(|b| *b == 0)
            .filter(|w| !w.is_empty())
            .take(3)
            .map(|w| String::from_utf8_lossy(w).into_owned())
            .collect();
        if !words.is_empty() {
            return words.join(" ");
        }
        fs::read_to_string(self.file(pid, "comm")).map(|c| format!("[{}]", c.trim())).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Proc, Stat};

    #[test]
    fn a_name_with_blanks_and_parentheses_does_not_shift_the_fields() {
        let text = "42 (a) b (c)) S 7 42 41 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 20 1844";
        let stat = Stat::parse(text).expect("well formed");
        assert_eq!((stat.identity.pid, stat.identity.started), (42, 98765));
        assert_eq!((stat.parent, stat.group, stat.session, stat.state), (7, 42, 41, 'S'));
        assert!(Stat::parse("42 (cut").is_none());
    }

    #[test]
    fn this_process_is_alive_and_another_start_time_is_another_process() {
        let proc = Proc::default();
        let own = proc.identity(i32::try_from(std::process::id()).expect("pids are small")).expect("it runs");
        assert!(proc.alive(own));
        assert!(!proc.alive(super::Identity { started: own.started + 1, ..own }));
        assert!(proc.stat(i32::MAX).is_none());
    }
}
