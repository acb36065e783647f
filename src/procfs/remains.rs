//! What a process that has ended still shows until it is reaped.

use std::fs;

use super::census::ticks_per_second;
use super::cgroup::{CgroupVersion, Cgroups, MemoryCgroup};
use super::identity::Proc;

/// The bit of a wait status that says that a core was dumped.
const CORE: u32 = 0x80;

/// A process that is a zombie, as far as it tells why.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Remains {
    /// The cgroup that accounted for its memory, if it is seen; in the first version a zombie shows the root instead, so then
    /// there is none.
    pub memory: Option<MemoryCgroup>,
    /// The CPU time that it used, children not counted.
    pub cpu_seconds: f64,
    /// Whether a core was dumped; known only if it ran as the same user.
    pub dumped_core: bool,
    /// Its limits.
    pub limits: Limits,
}

/// Resource limits of a process; `None` is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// `RLIMIT_CPU`, the soft limit.
    pub cpu_seconds: Option<u64>,
    /// `RLIMIT_CPU`, the hard limit.
    pub cpu_seconds_hard: Option<u64>,
    /// `RLIMIT_FSIZE` in bytes, the soft limit.
    pub file_size: Option<u64>,
}

impl Remains {
    /// Of the process `pid`; what cannot be read is left out.
    #[must_use]
    pub fn of(proc: &Proc, cgroups: &Cgroups, pid: i32) -> Self {
        let limits = fs::read_to_string(proc.file(pid, "limits")).unwrap_or_default();
        let stat = fs::read(proc.file(pid, "stat")).unwrap_or_default();
        let (cpu_seconds, status) = times_and_status(&String::from_utf8_lossy(&stat)).unwrap_or_default();
        Self {
            memory: cgroups.memory(pid).filter(|memory| memory.version() == CgroupVersion::V2),
            cpu_seconds,
            dumped_core: status & CORE != 0,
            limits: Limits {
                cpu_seconds: limit(&limits, "Max cpu time", 0),
                cpu_seconds_hard: limit(&limits, "Max cpu time", 1),
                file_size: limit(&limits, "Max file size", 0),
            },
        }
    }
}

impl Proc {
    /// What the kernel makes of a core: a path with `%` fields, or `|` and a command. `None` if it does not say.
    #[must_use]
    pub fn core_pattern(&self) -> Option<String> {
        fs::read_to_string(self.global("sys/kernel/core_pattern")).ok().map(|text| text.trim().to_owned())
    }
}

/// A limit, soft (0) or hard (1); `unlimited` is no number.
fn limit(text: &str, name: &str, column: usize) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().nth(column)?.parse().ok()
}

/// The CPU time in seconds and the wait status that stand in `/proc/PID/stat`.
fn times_and_status(stat: &str) -> Option<(f64, u32)> {
    // Field 3 is the first behind the name.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let ticks = field(14)? + field(15)?;
    let status = field(52).and_then(|status| u32::try_from(status).ok()).unwrap_or_default();
    Some((ticks as f64 / ticks_per_second() as f64, status))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Limits, Remains};
    use crate::procfs::Proc;

    const LIMITS: &str = "\
Limit                     Soft Limit           Hard Limit           Units     \n\
Max cpu time              1                    7                    seconds   \n\
Max file size             unlimited            unlimited            bytes     \n\
Max data size             5                    5                    bytes     \n";

    #[test]
    fn a_zombie_shows_its_limits_its_time_and_its_core() {
        let root = tempfile::tempdir().expect("a scratch directory");
        let own = root.path().join("proc/7");
        fs::create_dir_all(&own).expect("a scratch directory");
        fs::write(own.join("limits"), LIMITS).expect("a scratch file");
        // Fields 3 to 52, the times (14, 15) and the status (52) among them.
        let fields: Vec<String> = (3..=52)
            .map(|n| match n {
                3 => "Z".to_owned(),
                14 => "150".to_owned(),
                15 => "50".to_owned(),
                52 => (libc::SIGSEGV.cast_unsigned() | super::CORE).to_string(),
                _ => "0".to_owned(),
            })
            .collect();
        fs::write(own.join("stat"), format!("7 (a) b) {}\n", fields.join(" "))).expect("a scratch file");
        let proc = Proc::at(root.path().join("proc"));
        let remains = Remains::of(&proc, &proc.cgroups(), 7);
        assert!(remains.dumped_core && remains.memory.is_none());
        assert!((remains.cpu_seconds - 2.0).abs() < 1.0, "{}", remains.cpu_seconds);
        let limits = Limits { cpu_seconds: Some(1), cpu_seconds_hard: Some(7), file_size: None };
        assert_eq!(remains.limits, limits);
        assert_eq!(Remains::of(&proc, &proc.cgroups(), 8), Remains::default(), "nothing is there");
    }
}
