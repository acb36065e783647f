//! What can be seen of processes from outside.

use std::fs;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use nix::time::ClockId;
use nix::unistd::Pid;

/// Memory of some processes in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    pub resident: u64,
    /// What no other process has mapped: what would be free if they were gone.
    pub private: u64,
    /// Of that what was written to: pages of the program's file are not among it.
    pub private_dirty: u64,
}

/// Processes that are looked at again and again.
#[derive(Clone, Debug)]
pub struct Watched(Vec<u32>);

impl Watched {
    /// One process.
    pub fn one(pid: u32) -> Self {
        Self(vec![pid])
    }

    /// A supervisor with its own helpers: itself and its descendants, without the children that it was told to start.
    pub fn supervisor(pid: u32, child: &str) -> Self {
        let name = |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let helpers = descendants(pid).into_iter().filter(|pid| name(*pid).trim_end() != child);
        Self(std::iter::once(pid).chain(helpers).collect())
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// User and system time of all their threads, ended ones included.
    pub fn cpu(&self) -> Duration {
        let clock = |pid: &u32| ClockId::pid_cpu_clock_id(Pid::from_raw(pid.cast_signed())).ok()?.now().ok();
        self.0.iter().filter_map(clock).map(Duration::from).sum()
    }

    /// The same from this on.
    pub fn cpu_since(&self, before: Duration) -> Duration {
        self.cpu().saturating_sub(before)
    }

    /// Context switches of their threads so far.
    pub fn switches(&self) -> u64 {
        let tasks = self.0.iter().filter_map(|pid| fs::read_dir(format!("/proc/{pid}/task")).ok()).flatten().flatten();
        let status = tasks.filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
        let both = ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"];
        status.map(|text| both.map(|name| sum(&text, name)).iter().sum::<u64>()).sum()
    }

    /// Their memory now.
    pub fn memory(&self) -> Memory {
        let rollups = self.0.iter().filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok());
        rollups.fold(Memory::default(), |all, text| {
            // The kernel counts in KiB here.
            let [resident, clean, dirty] =
                ["Rss:", "Private_Clean:", "Private_Dirty:"].map(|name| sum(&text, name) << 10);
            Memory {
                resident: all.resident + resident,
                private: all.private + clean + dirty,
                private_dirty: all.private_dirty + dirty,
            }
        })
    }
}

/// All processes below one, parents first.
pub fn descendants(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(parent) = found.get(next) {
        let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        let children: Vec<u32> =
            children.flat_map(|text| text.split(' ').flat_map(str::parse).collect::<Vec<_>>()).collect();
        found.extend(children);
        next += 1;
    }
    found.split_off(1)
}

/// User and system time of all children that were waited for, and of those that they waited for.
pub fn cpu_of_children() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("a usage");
    let time = |time: TimeVal| {
        let seconds = u64::try_from(time.tv_sec()).unwrap_or_default();
        Duration::from_secs(seconds) + Duration::from_micros(u64::try_from(time.tv_usec()).unwrap_or_default())
    };
    time(usage.user_time()) + time(usage.system_time())
}

/// The same from this on.
pub fn cpu_of_children_since(before: Duration) -> Duration {
    cpu_of_children().saturating_sub(before)
}

/// The sum of the numbers behind a name at the start of a line.
fn sum(text: &str, name: &str) -> u64 {
    let number = |line: &str| line.strip_prefix(name)?.split_whitespace().next()?.parse::<u64>().ok();
    text.lines().filter_map(number).sum()
}
