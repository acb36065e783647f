//! Why a process died that gymrun had not asked to end: from facts to findings, and nothing is read here.

use std::path::PathBuf;

use crate::diag::exit;
use crate::events::{ExitStatus, Explanation, Finding, MemoryAtDeath, Place, Resource};
use crate::procfs::{Remains, Space};

/// The kernel measures a limit of CPU time in ticks of its clock, and tells the time exactly: on a busy virtual machine that
/// can be so much less.
const EXACT: f64 = 0.75;

/// What could be learned about a death.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// How it ended.
    pub(super) status: ExitStatus,
    /// What it left to be read before it was reaped.
    pub(super) remains: Remains,
    /// The kernel's pattern for cores.
    pub(super) core_pattern: Option<String>,
    /// What was counted.
    pub(super) kills: Kills,
    /// What was known of its memory.
    pub(super) memory: MemoryAtDeath,
    /// Where it may write, with what is left there.
    pub(super) places: Vec<(Place, PathBuf, Space)>,
    /// It runs in a job of Slurm.
    pub(super) slurm: bool,
}

/// Out-of-memory kills of late.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Kills {
    /// In its cgroup, without those that other deaths explain; `None` if that cannot be seen.
    pub(super) cgroup: Option<u64>,
    /// On the whole host; `None` if that cannot be seen.
    pub(super) host: Option<u64>,
    /// They happened within that time before.
    pub(super) within_seconds: f64,
}

/// What the facts say; `None` if that is nothing beyond the status.
pub(super) fn explain(facts: &Facts) -> Option<Explanation> {
    let mut findings = Vec::new();
    match (facts.status.signal, facts.status.code) {
        (Some(signal), _) => by_signal(facts, signal, &mut findings),
        (None, Some(code)) if code != exit::OK => by_code(facts, code, &mut findings),
        _ => {}
    }
    Explanation::of(findings)
}

fn by_signal(facts: &Facts, signal: i32, findings: &mut Vec<Finding>) {
    let limits = &facts.remains.limits;
    match signal {
        libc::SIGKILL => match limits.cpu_seconds_hard {
            // The kernel kills at the hard limit; at the soft one it sends SIGXCPU.
            Some(limit)
                if !matches!(facts.kills.cgroup, Some(1..)) && facts.remains.cpu_seconds >= limit as f64 * EXACT =>
            {
                findings.push(Finding::ResourceLimit { resource: Resource::CpuTime, limit });
            }
            _ => killed(facts, findings),
        },
        libc::SIGXCPU | libc::SIGXFSZ => findings.push(match (signal, limits.cpu_seconds, limits.file_size) {
            // The kernel raises it by a second when it sends the signal.
            (libc::SIGXCPU, Some(limit), _) => {
                Finding::ResourceLimit { resource: Resource::CpuTime, limit: limit.saturating_sub(1) }
            }
            (libc::SIGXFSZ, _, Some(limit)) => Finding::ResourceLimit { resource: Resource::FileSize, limit },
            _ => Finding::FromOutside { signal, slurm: false },
        }),
        libc::SIGSEGV
        | libc::SIGBUS
        | libc::SIGABRT
        | libc::SIGILL
        | libc::SIGFPE
        | libc::SIGSYS
        | libc::SIGPIPE
        | libc::SIGTRAP
        | libc::SIGALRM
        | libc::SIGVTALRM
        | libc::SIGPROF => {
            let core_pattern = facts.core_pattern.clone().filter(|_| facts.remains.dumped_core);
            findings.push(Finding::OwnFault { signal, core_pattern });
            others_killed(facts, findings);
            // What a process has put into shared memory may be gone with it: then the size still tells.
            room(facts, findings, signal == libc::SIGBUS);
        }
        _ => findings.push(Finding::FromOutside { signal, slurm: facts.slurm && signal == libc::SIGTERM }),
    }
}

fn by_code(facts: &Facts, code: i32, findings: &mut Vec<Finding>) {
    let wrapped = wrapped_signal(code);
    if let Some(signal) = wrapped {
        findings.push(Finding::WrappedSignal { code, signal });
    } else if matches!(code, exit::NOT_EXECUTABLE | exit::NOT_FOUND) {
        findings.push(Finding::WrappedRefusal { code });
    }
    if !others_killed(facts, findings) && wrapped == Some(libc::SIGKILL) {
        findings.push(not_for_memory(facts));
    }
    room(facts, findings, wrapped == Some(libc::SIGBUS));
}

/// SIGKILL, and not at a limit.
fn killed(facts: &Facts, findings: &mut Vec<Finding>) {
    let memory = facts.memory.clone();
    match (facts.kills.cgroup, facts.kills.host) {
        (Some(1..), _) => findings.push(Finding::OutOfMemory { certain: true, memory }),
        (None, Some(1..)) => findings.push(Finding::OutOfMemory { certain: false, memory }),
        _ => {
            findings.push(Finding::FromOutside { signal: libc::SIGKILL, slurm: facts.slurm });
            findings.push(not_for_memory(facts));
        }
    }
}

fn not_for_memory(facts: &Facts) -> Finding {
    match (facts.kills.cgroup, facts.kills.host) {
        (None, None) => Finding::MemoryKillsUnseen,
        (_, host) => Finding::NotForMemory { elsewhere: host.unwrap_or_default() },
    }
}

/// Whether others were killed for memory of late.
fn others_killed(facts: &Facts, findings: &mut Vec<Finding>) -> bool {
    let (kills, in_cgroup) = match (facts.kills.cgroup, facts.kills.host) {
        (Some(kills), _) => (kills, true),
        (None, kills) => (kills.unwrap_or_default(), false),
    };
    if kills > 0 {
        let (within_seconds, memory) = (facts.kills.within_seconds, facts.memory.clone());
        findings.push(Finding::OthersOutOfMemory { kills, in_cgroup, within_seconds, memory });
    }
    kills > 0
}

/// Says which places are full, and what shared memory has in any case if that may matter.
fn room(facts: &Facts, findings: &mut Vec<Finding>, shared_memory: bool) {
    for (place, path, space) in &facts.places {
        let full = space.full() || space.out_of_files();
        if full || (shared_memory && *place == Place::SharedMemory) {
            findings.push(Finding::Room {
                place: *place,
                path: path.display().to_string(),
                full,
                free_bytes: space.free,
                total_bytes: space.total,
                free_files: (space.out_of_files() && !space.full()).then_some(space.free_files),
            });
        }
    }
}

/// The signal that ended a child, if the code is one that shells (128 + N) or Python (-N) give then.
fn wrapped_signal(code: i32) -> Option<i32> {
    const BY_SHELLS: [i32; 15] = [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGILL,
        libc::SIGTRAP,
        libc::SIGABRT,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGKILL,
        libc::SIGSEGV,
        libc::SIGPIPE,
        libc::SIGTERM,
        libc::SIGXCPU,
        libc::SIGXFSZ,
        libc::SIGSYS,
    ];
    const BY_PYTHON: [i32; 6] =
        [libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGKILL, libc::SIGSEGV, libc::SIGTERM];
    let by = |signals: &[i32], signal: i32| signals.contains(&signal).then_some(signal);
    by(&BY_SHELLS, code - 128).or_else(|| by(&BY_PYTHON, 256 - code))
}

#[cfg(test)]
#[path = "cause_tests.rs"]
mod tests;
