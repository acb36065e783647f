//! Memory of the host and of process trees, in bytes.

use std::fs;
use std::io;

use super::identity::{Proc, number};

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

impl TreeMemory {
    /// The sum over no process: `with_pss` says whether proportional sets are asked for.
    pub(super) fn none(with_pss: bool) -> Self {
        Self { pss: with_pss.then_some(0), ..Self::default() }
    }

    /// Adds a process.
    pub(super) fn add(&mut self, pid: i32, reading: Reading) {
        match reading {
            Reading::None => return,
            Reading::Memory { rss, pss } => {
                self.rss = self.rss.saturating_add(rss);
                self.pss = self.pss.zip(pss).map(|(sum, pss)| sum.saturating_add(pss));
            }
            Reading::Refused { rss } => {
                self.rss = self.rss.saturating_add(rss);
                self.pss = None;
                self.refused.push(pid);
            }
        }
        self.processes += 1;
    }
}

fn kilobytes(text: &[u8], key: &[u8]) -> Option<u64> {
    let mut lines = text.split(|b| *b == b'\n');
    let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(b":"))?;
    let kib: u64 = value.split(u8::is_ascii_whitespace).find(|word| !word.is_empty()).and_then(number)?;
    Some(kib.saturating_mul(1024))
}

/// What a read of `smaps_rollup` means; `None` is a refusal.
pub(super) fn rollup(read: io::Result<&[u8]>) -> Option<Reading> {
    match read {
        // A process that is ending has an address space no more: the kernel says so in one of these ways.
        Ok(text) if text.trim_ascii().is_empty() => Some(Reading::None),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Some(Reading::None),
        Ok(text) => Some(Reading::Memory { rss: kilobytes(text, b"Rss")?, pss: Some(kilobytes(text, b"Pss")?) }),
        Err(_) => None,
    }
}

/// The resident set that `statm` tells; `None` if the process has no memory.
pub(super) fn resident(text: &[u8]) -> Option<u64> {
    let mut fields = text.split(u8::is_ascii_whitespace);
    let size: u64 = number(fields.next()?)?;
    let resident: u64 = number(fields.next()?)?;
    (size > 0).then(|| resident.saturating_mul(page_size()))
}

impl Proc {
    /// The host's memory; zeros if it cannot be read.
    #[must_use]
    pub fn host_memory(&self) -> Host {
        let text = fs::read(self.global("meminfo")).unwrap_or_default();
        let total = kilobytes(&text, b"MemTotal").unwrap_or_default();
        let available = kilobytes(&text, b"MemAvailable").or_else(|| kilobytes(&text, b"MemFree")).unwrap_or_default();
        Host { total, available }
    }
}

/// Resident memory of this process, in bytes; `None` if it cannot be read.
#[must_use]
pub fn own_resident_memory() -> Option<u64> {
    own_status(b"VmRSS")
}

/// Resident memory of this process that it shares with no file, in bytes; `None` if it cannot be read.
#[must_use]
pub fn own_anonymous_memory() -> Option<u64> {
    own_status(b"RssAnon")
}

fn own_status(key: &[u8]) -> Option<u64> {
    kilobytes(&fs::read("/proc/self/status").ok()?, key)
}

/// The bytes of a page.
#[must_use]
pub fn page_size() -> u64 {
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

    use super::{Host, Proc, Reading, page_size, resident, rollup};

    #[test]
    fn a_process_that_is_ending_counts_as_nothing() {
        assert_eq!(rollup(Err(io::Error::from_raw_os_error(libc::ESRCH))), Some(Reading::None));
        assert_eq!(rollup(Err(io::Error::from_raw_os_error(libc::EACCES))), None);
        assert_eq!(rollup(Ok(b"\n")), Some(Reading::None));
        assert_eq!(rollup(Ok(b"55d0-7ffc ---p 0 0:0 0 [rollup]\nRss: x kB\n")), None);
        assert_eq!(resident(b"0 0 0 0 0 0 0\n"), None);
        assert_eq!(resident(b""), None);
    }

    #[test]
    fn sizes_beyond_any_machine_stay_numbers() {
        // 1 TiB that is only reserved, and more than 64 bits of bytes.
        assert_eq!(resident(b"268435456 2 1 0 0 0 0\n"), Some(2 * page_size()));
        assert_eq!(resident(b"18446744073709551615 18446744073709551615 0 0 0 0 0\n"), Some(u64::MAX));
        let text = b"x\nRss:            18446744073709551615 kB\nPss:                   7 kB\nPss_Dirty:  3 kB\n";
        assert_eq!(rollup(Ok(text)), Some(Reading::Memory { rss: u64::MAX, pss: Some(7168) }));
    }

    #[test]
    fn host_memory_is_in_bytes() {
        let root = tempfile::tempdir().expect("a scratch directory");
        fs::write(root.path().join("meminfo"), "MemTotal:  100 kB\nMemFree: 10 kB\nMemAvailable:   60 kB\n")
            .expect("a scratch file");
        assert_eq!(Proc::at(root.path()).host_memory(), Host { total: 102_400, available: 61_440 });
    }
}
