//! Ends what a gymrun that was killed has left of an attempt in the same job directory.
//!
//! The lock of the directory is ours, so whatever carries the marks of this job directory is none of a gymrun that lives:
//! its own children died with it, but not what those had started.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::events::Sink;
use crate::plan::{PROCESS_MARK, Plan, process_mark};
use crate::process::{end_left_cgroup, left_in, send_signal, told_meanwhile};
use crate::procfs::{Identity, Proc};

/// How long they may take to die of SIGKILL.
const LIMIT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);
/// How many are named.
const NAMED: usize = 10;

/// Kills what is left of a former attempt, by its marks and by its cgroup, and says so with `sentence`, which is about the
/// attempt. To be called before anything of this attempt is started. A signal that is held meanwhile is obeyed: what was
/// killed is then not waited for.
pub fn end_former(plan: &Plan, sentence: &str, cgroup: Option<&Path>, sink: &Sink) {
    let proc = Proc::default();
    let mark = format!("{PROCESS_MARK}={}", process_mark(&plan.job_id, ""));
    let place = format!("GYMRUN_JOB_DIR={}", plan.job_dir);
    // Where this gymrun was itself started by something of that attempt, those above it are not ended.
    let above = proc.ancestors(nix::unistd::getpid().as_raw());
    let cgroup = cgroup.filter(|cgroup| !left_in(cgroup).iter().any(|pid| above.contains(pid)));
    let find = || -> Vec<Identity> {
        let mut roots = proc.marked(&mark, &place);
        roots.retain(|pid| !above.contains(pid));
        let mut found = proc.descendants(&roots);
        found.extend(cgroup.map(left_in).unwrap_or_default());
        let stats = found.into_iter().filter(|pid| !above.contains(pid)).filter_map(|pid| proc.stat(pid));
        stats.filter(crate::procfs::Stat::alive).map(|stat| stat.identity).collect()
    };
    let mut killed: HashSet<Identity> = HashSet::new();
    let mut named = Vec::new();
    let start = Instant::now();
    let mut left = find();
    let mut told = false;
    while !left.is_empty() && start.elapsed() < LIMIT {
        // What came of one before it was killed is not left alive, whoever tells gymrun to stop.
        told = left.iter().all(|process| killed.contains(process)) && told_meanwhile().is_some();
        if told {
            break;
        }
        for process in &left {
            let command = proc.command(process.pid);
            if send_signal(*process, None) && killed.insert(*process) && named.len() < NAMED {
                named.push(format!("{command} (pid {})", process.pid));
            }
        }
        thread::sleep(PAUSE);
        left = find();
    }
    if let Some(cgroup) = cgroup {
        end_left_cgroup(cgroup);
    }
    let mut message = sentence.to_owned();
    if !killed.is_empty() {
        let more = if killed.len() > named.len() { ", ..." } else { "" };
        let _ = write!(
            message,
            "; {} of its processes still ran, and were killed: {}{more}",
            killed.len(),
            named.join(", ")
        );
    }
    if !left.is_empty() {
        let pids: Vec<String> = left.iter().map(|process| process.pid.to_string()).collect();
        let what = if told { "not waited for, since gymrun was told to stop" } else { "could not be killed" };
        let _ = write!(message, "; {what}: pid {}", pids.join(", "));
    }
    let hint = "gymrun itself was killed (by SIGKILL, or for memory), or the machine stopped: the last lines of its `events.jsonl` \
                say how far it was";
    sink.warn(None, message, Some(hint.to_owned()));
}
