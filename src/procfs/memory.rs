//! Memory of the host and of process trees, in bytes.

use std::fs;
use std::io;

use super::identity::Proc;

/// Memory of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// `MemTotal`.
    pub total: u64,
    /// `MemAvailable`.
    pub available: u64,
}

/// What one process says of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Nothing: it vanished, is a zombie or has no memory of its own.
    None,
    /// Resident set, and proportional set where it was given.
    Memory {
        /// Resident set.
        rss: u64,
        /// Proportional set; `None` if it was not asked for.
        pss: Option<u64>,
    },
    /// It lives, but does not show its proportional set; the resident set is from `statm`.
    Refused {
        /// Resident set.
        rss: u64,
    },
}

/// The sum over a process tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeMemory {
    /// Resident sets, shared pages counted in each.
    pub rss: u64,
    /// Proportional sets; `None` if not asked for, or if one process did not show it.
    pub pss: Option<u64>,
    /// Processes that have memory.
    pub processes: u32,
    /// Those that did not show their proportional set.
    pub refused: Vec<i32>,
}

/// `ESRCH` as an error kind of the standard library has no name.
fn vanished(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// What a read of `smaps_rollup` means; `None` is a refusal.
fn rollup(read: io::Result<String>) -> Option<Reading> {
    match read {
        // A process that is ending has an address space no more: the kernel says so in one of these ways.
        Ok(text) if text.trim().is_empty() => Some(Reading::None),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Some(Reading::None),
        Ok(text) => Some(Reading::Memory { rss: kilobytes(&text, "Rss")?, pss: Some(kilobytes(&text, "Pss")?) }),
        Err(_) => None,
    }
}

impl Proc {
    /// The host's memory; zeros if it cannot be read.
    #[must_use]
    pub fn host_memory(&self) -> Host {
        let text = fs::read_to_string(self.global("meminfo")).unwrap_or_default();
        let total = kilobytes(&text, "MemTotal").unwrap_or_default();
        let available = kilobytes(&text, "MemAvailable").or_else(|| kilobytes(&text, "MemFree")).unwrap_or_default();
        Host { total, available }
    }

    /// The resident set of a process by `statm`; `None` if it has none.
    fn resident(&self, pid: i32) -> Option<u64> {
        let text = fs::read_to_string(self.file(pid, "statm")).ok()?;
        let mut fields = text.split_ascii_whitespace();
        let size: u64 = fields.next()?.parse().ok()?;
        let resident: u64 = fields.next()?.parse().ok()?;
        (size > 0).then(|| resident * page_size())
    }

    /// The memory of one process.
    #[must_use]
    pub fn memory(&self, pid: i32, with_pss: bool) -> Reading {
        let by_statm = |refused: bool| match self.resident(pid) {
            None => Reading::None,
            Some(rss) if refused => Reading::Refused { rss },
            Some(rss) => Reading::Memory { rss, pss: None },
        };
        if !with_pss {
            return by_statm(false);
        }
        match fs::read_to_string(self.file(pid, "smaps_rollup")) {
            Err(error) if vanished(&error) && !self.file(pid, "stat").exists() => Reading::None,
            read => rollup(read).unwrap_or_else(|| by_statm(true)),
        }
    }

    /// The sum over the given processes.
    #[must_use]
    pub fn tree_memory(&self, pids: impl IntoIterator<Item = i32>, with_pss: bool) -> TreeMemory {
        let mut sum = TreeMemory { pss: with_pss.then_some(0), ..TreeMemory::default() };
        for pid in pids {
            match self.memory(pid, with_pss) {
                Reading::None => continue,
                Reading::Memory { rss, pss } => {
                    sum.rss += rss;
                    sum.pss = sum.pss.zip(pss).map(|(sum, pss)| sum + pss);
                }
                Reading::Refused { rss } => {
                    sum.rss += rss;
                    sum.pss = None;
                    sum.refused.push(pid);
                }
            }
            sum.processes += 1;
        }
        sum
    }
}

fn page_size() -> u64 {
    use std::sync::OnceLock;
    static SIZE: OnceLock<u64> = OnceLock::new();
    *SIZE.get_or_init(|| {
        nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE)
            .ok()
            .flatten()
            .and_then(|size| u64::try_from(size).ok())
            .unwrap_or(4096)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io;
    use std::path::Path;

    use super::{Host, Proc, Reading, page_size, rollup};

    const ROLLUP: &str =
        "00400000-7fff r-xp 00000000 00:00 0 [rollup]\nRss:  2048 kB\nPss:  1024 kB\nPss_Dirty: 9 kB\n";

    fn process(root: &Path, pid: i32, smaps_rollup: Option<&str>) {
        let own = root.join(pid.to_string());
        fs::create_dir_all(&own).expect("a scratch directory");
        fs::write(own.join("stat"), "").expect("a scratch file");
        fs::write(own.join("statm"), "900 3 1 1 0 1 0\n").expect("a scratch file");
        match smaps_rollup {
            Some(text) => fs::write(own.join("smaps_rollup"), text).expect("a scratch file"),
            // A directory cannot be read, whoever asks: root, too.
            None => fs::create_dir(own.join("smaps_rollup")).expect("a scratch directory"),
        }
    }

    #[test]
    fn one_refusal_takes_the_pss_of_the_tree_and_leaves_the_rest() {
        let root = tempfile::tempdir().expect("a scratch directory");
        process(root.path(), 1, Some(ROLLUP));
        process(root.path(), 2, None);
        process(root.path(), 3, Some(""));
        let proc = Proc::at(root.path());
        // 4 vanished between the walk and the read.
        let tree = proc.tree_memory([1, 2, 3, 4], true);
        assert_eq!((tree.rss, tree.pss, tree.processes), (2048 * 1024 + 3 * page_size(), None, 2));
        assert_eq!(tree.refused, [2]);
        let whole = proc.tree_memory([1, 3, 4], true);
        assert_eq!((whole.pss, whole.processes), (Some(1024 * 1024), 1));
        assert_eq!(proc.tree_memory([1, 2], false).rss, 6 * page_size());
    }

    #[test]
    fn a_process_that_is_ending_counts_as_nothing() {
        assert_eq!(rollup(Err(io::Error::from_raw_os_error(libc::ESRCH))), Some(Reading::None));
        assert_eq!(rollup(Err(io::Error::from_raw_os_error(libc::EACCES))), None);
    }

    #[test]
    fn host_memory_is_in_bytes() {
        let root = tempfile::tempdir().expect("a scratch directory");
        fs::write(root.path().join("meminfo"), "MemTotal:  100 kB\nMemFree: 10 kB\nMemAvailable:   60 kB\n")
            .expect("a scratch file");
        assert_eq!(Proc::at(root.path()).host_memory(), Host { total: 102_400, available: 61_440 });
    }
}
