//! The events of a job folded into what one wants to know afterwards.

use indexmap::IndexMap;
use serde::Serialize;

use crate::diag::counted;
use crate::events::{
    CgroupMemory, Delivery, Event, EventKind, ExitStatus, Explanation, HostMemory, Means, OutcomeClass, is_zero,
};
use crate::plan::{Kind, Plan};

/// What became of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Not started (yet).
    #[default]
    Waiting,
    /// Spawned, not ready.
    Starting,
    /// Ready.
    Ready,
    /// Got its stop signal.
    Stopping,
    /// Ended as it should: asked to, or its work is done.
    Stopped,
    /// Ended, did not start, or did not get ready, against the plan.
    Failed,
    /// Never started, since one that it depends on failed.
    Skipped,
}

/// One process at the end of the job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessSummary {
    /// What it is to the job.
    pub kind: Kind,
    /// What became of it.
    pub state: State,
    /// Its pid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// From spawn to ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_after_seconds: Option<f64>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExitStatus>,
    /// Processes of its tree that needed SIGKILL.
    #[serde(skip_serializing_if = "is_zero")]
    pub killed: u32,
    /// How often it was started again.
    #[serde(skip_serializing_if = "is_zero")]
    pub restarts: u32,
    /// Greatest resident set of its tree, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_rss: Option<u64>,
    /// Greatest proportional set of its tree, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_pss: Option<u64>,
    /// CPU time of its tree up to the last sample, restarts included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// That of the runs before the present one.
    #[serde(skip)]
    cpu_before: f64,
    /// The root that was sampled last.
    #[serde(skip)]
    sampled_pid: Option<u32>,
    /// Relative to the job directory.
    pub log: String,
    /// Older files of its log, the newest first, relative to the job directory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub older_logs: Vec<String>,
    /// Bytes of its output that went with older files that are gone.
    #[serde(skip_serializing_if = "is_zero")]
    pub log_rotated_out_bytes: u64,
    /// Bytes of its output that could not be written to its log.
    #[serde(skip_serializing_if = "is_zero")]
    pub log_lost_bytes: u64,
    /// Why it ended when gymrun had not asked it to: the last time, if it was started again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
    /// Why it failed or was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The content of `result.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The job's name.
    pub name: String,
    /// The job id.
    pub job_id: String,
    /// gymrun's exit code; `None` while it runs.
    pub code: Option<i32>,
    /// What the code means.
    pub class: Option<OutcomeClass>,
    /// One sentence.
    pub message: String,
    /// Seconds of the monotonic clock from start to end.
    pub duration_seconds: f64,
    /// How the driver ended: code and signal apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<ExitStatus>,
    /// By which means none of its processes got away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub containment: Option<Means>,
    /// Every process of the plan, in start order.
    pub processes: IndexMap<String, ProcessSummary>,
    /// Processes in the order in which they and their trees were gone.
    pub stop_order: Vec<String>,
    /// The last sample of the host, with its peak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_memory: Option<HostMemory>,
    /// The last sample of the cgroup that the job ran in, with its peak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup_memory: Option<CgroupMemory>,
    /// What the collector delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// Warnings, in order.
    pub warnings: Vec<String>,
}

impl Summary {
    /// Nothing has happened yet.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let processes = plan
            .units
            .iter()
            .map(|unit| {
                let summary = ProcessSummary {
                    kind: unit.kind,
                    state: State::Waiting,
                    pid: None,
                    ready_after_seconds: None,
                    exit: None,
                    killed: 0,
                    restarts: 0,
                    peak_rss: None,
                    peak_pss: None,
                    cpu_seconds: None,
                    cpu_before: 0.0,
                    sampled_pid: None,
                    log: unit.log_file(),
                    older_logs: Vec::new(),
                    log_rotated_out_bytes: 0,
                    log_lost_bytes: 0,
                    explanation: None,
                    reason: None,
                };
                (unit.name.clone(), summary)
            })
            .collect();
        Self {
            name: plan.name.clone(),
            job_id: plan.job_id.clone(),
            code: None,
            class: None,
            message: String::new(),
            duration_seconds: 0.0,
            driver: None,
            containment: None,
            processes,
            stop_order: Vec::new(),
            host_memory: None,
            cgroup_memory: None,
            delivery: None,
            warnings: Vec::new(),
        }
    }

    /// Takes in one event.
    pub fn apply(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ProcessStarted { process, pid, .. } => {
                self.stop_order.retain(|gone| gone != process);
                self.change(process, |p| {
                    p.state = State::Starting;
                    p.pid = Some(*pid);
                    p.exit = None;
                    p.reason = None;
                });
            }
            EventKind::ProcessReady { process, after_seconds } => self.change(process, |p| {
                if p.state == State::Starting {
                    p.state = State::Ready;
                }
                p.ready_after_seconds = Some(*after_seconds);
            }),
            EventKind::ProcessNotReady { process, after_seconds, answer, .. } => {
                self.fail(process, format!("not ready after {after_seconds} s, last answer: {answer}"));
            }
            EventKind::ProcessHung { process, failures, answer } => {
                let often = counted(*failures, "time", "times in a row");
                self.fail(process, format!("failed its liveness probe {often}, last answer: {answer}"));
            }
            EventKind::ProcessRestarting { process, .. } => self.change(process, |p| p.restarts += 1),
            EventKind::SpawnFailed { process, message, .. } => self.fail(process, message.clone()),
            EventKind::ProcessSkipped { process, because } => self.change(process, |p| {
                p.state = State::Skipped;
                p.reason = Some(format!("{because} failed"));
            }),
            EventKind::ProcessStopping { process, .. } => self.change(process, |p| {
                if p.state != State::Failed {
                    p.state = State::Stopping;
                }
            }),
            EventKind::ProcessKilled { process, processes } => self.change(process, |p| p.killed += processes),
            EventKind::ProcessExited { process, status, expected, explanation, .. } => {
                let status = *status;
                let expected = *expected;
                self.change(process, |p| {
                    p.exit = Some(status);
                    if explanation.is_some() {
                        p.explanation.clone_from(explanation);
                    }
                    if p.kind == Kind::Driver && !status.success() && p.state != State::Stopping {
                        p.state = State::Failed;
                    } else if expected && p.state != State::Failed {
                        p.state = State::Stopped;
                    } else if !expected {
                        p.state = State::Failed;
                        p.reason = Some(status.to_string());
                    }
                });
                if self.processes.get(process).is_some_and(|p| p.kind == Kind::Driver) {
                    self.driver = Some(status);
                }
            }
            EventKind::ProcessGone { process } => self.stop_order.push(process.clone()),
            EventKind::MemorySampled(sample) => {
                self.host_memory = Some(sample.host);
                self.cgroup_memory = sample.cgroup.or(self.cgroup_memory);
                for tree in &sample.trees {
                    self.change(&tree.process, |p| {
                        // One that ended before memory was sampled is told for its CPU time alone.
                        p.peak_rss = (tree.peak_rss > 0).then_some(tree.peak_rss).or(p.peak_rss);
                        p.peak_pss = tree.peak_pss.or(p.peak_pss);
                        // One that was started again counts from nothing, and what it had before is kept.
                        if p.sampled_pid.replace(tree.pid).is_some_and(|former| former != tree.pid) {
                            p.cpu_before = p.cpu_seconds.unwrap_or_default();
                        }
                        p.cpu_seconds = Some(p.cpu_before + tree.cpu_seconds);
                    });
                }
            }
            EventKind::Contained(means) => self.containment = Some(means.clone()),
            EventKind::LogEnded { process, older, rotated_out_bytes, lost_bytes } => self.change(process, |p| {
                p.older_logs.clone_from(older);
                p.log_rotated_out_bytes = *rotated_out_bytes;
                p.log_lost_bytes = *lost_bytes;
            }),
            EventKind::Delivered(delivery) => self.delivery = Some((**delivery).clone()),
            EventKind::Warning { process, message, .. } => self.warnings.push(match process {
                Some(process) => format!("{process}: {message}"),
                None => message.clone(),
            }),
            EventKind::JobEnded { code, class, message } => {
                self.code = Some(*code);
                self.class = Some(*class);
                self.message.clone_from(message);
                self.duration_seconds = event.elapsed.as_secs_f64();
            }
            EventKind::JobStarted { .. }
            | EventKind::PortsChosen { .. }
            | EventKind::ProcessWaiting { .. }
            | EventKind::AllReady { .. }
            | EventKind::Stopping(_)
            | EventKind::LastScrape { .. } => {}
        }
    }

    /// As JSON with no more than `most` bytes, without the last warnings if need be, and a word on how many those are. `None` if
    /// all of them are not enough.
    #[must_use]
    pub fn shortened(&self, most: usize) -> Option<Vec<u8>> {
        let mut shorter = self.clone();
        let mut kept = self.warnings.len();
        while kept > 0 {
            kept /= 2;
            shorter.warnings.truncate(kept);
            let left_out = counted(self.warnings.len() - kept, "more warning is", "more warnings are");
            shorter.warnings.push(format!("{left_out} left out here: the disk was full"));
            let text = serde_json::to_vec_pretty(&shorter).ok()?;
            if text.len() <= most {
                return Some(text);
            }
        }
        None
    }

    fn change(&mut self, process: &str, change: impl FnOnce(&mut ProcessSummary)) {
        if let Some(summary) = self.processes.get_mut(process) {
            change(summary);
        }
    }

    fn fail(&mut self, process: &str, reason: String) {
        self.change(process, |p| {
            p.state = State::Failed;
            p.reason = Some(reason);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::Summary;

    #[test]
    fn warnings_are_left_out_until_the_rest_fits() {
        let mut summary = Summary {
            name: "t".into(),
            job_id: "j".into(),
            code: Some(0),
            class: None,
            message: String::new(),
            duration_seconds: 0.0,
            driver: None,
            containment: None,
            processes: indexmap::IndexMap::new(),
            stop_order: Vec::new(),
            host_memory: None,
            cgroup_memory: None,
            delivery: None,
            warnings: Vec::new(),
        };
        assert_eq!(summary.shortened(10_000), None, "there is nothing to leave out");
        summary.warnings = (0..1000).map(|number| format!("warning {number}")).collect();
        for most in [500, 1_000, 10_000] {
            let text = summary.shortened(most).expect("it fits");
            assert!(text.len() <= most, "{most}");
            let value: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
            let warnings = value["warnings"].as_array().expect("a list");
            let left_out = format!("{} more warnings are left out here: the disk was full", 1001 - warnings.len());
            assert_eq!(warnings.last().expect("a word"), &left_out);
            assert!(warnings.len() < 2 || warnings[0] == "warning 0");
        }
        assert_eq!(summary.shortened(100), None);
    }
}
