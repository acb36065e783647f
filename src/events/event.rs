//! The events themselves.

use std::time::Duration;

use indexmap::IndexMap;
use serde::Serialize;

use super::ends::{ExitStatus, OutcomeClass, StopReason};
use super::explanation::Explanation;
use super::samples::{Delivery, Sample};
use crate::plan::Kind;

/// By which means no process of the job gets away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Means {
    /// A cgroup for each process of the plan, killed by the kernel as a whole.
    Cgroup {
        /// The directory that holds them.
        cgroup: String,
        /// What is left behind if gymrun is killed by SIGKILL, and why; absent if nothing is.
        #[serde(skip_serializing_if = "Option::is_none")]
        unguarded: Option<String>,
    },
    /// gymrun is their subreaper, and walks the tree.
    Walk {
        /// Why there are no cgroups.
        because: String,
        /// The same.
        #[serde(skip_serializing_if = "Option::is_none")]
        unguarded: Option<String>,
    },
}

/// What happened. `process` is always a unit's name.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// The job directory is there and locked; nothing runs yet.
    JobStarted {
        /// The job's name.
        name: String,
        /// The job id.
        job_id: String,
        /// Absolute.
        job_dir: String,
        /// gymrun's own pid.
        pid: u32,
        /// W3C `traceparent` of the job's trace.
        traceparent: String,
    },
    /// How the job's processes will be found and ended: the strongest means that the machine offers.
    Contained(Means),
    /// All ports are chosen and reserved.
    PortsChosen {
        /// `process` or `process.key` -> port.
        ports: IndexMap<String, u16>,
    },
    /// A process was spawned.
    ProcessStarted {
        /// The unit.
        process: String,
        /// What it is to the job.
        kind: Kind,
        /// Its pid, which is also its process group.
        pid: u32,
    },
    /// The first bad answer of a wait: said once for each wait.
    ProcessWaiting {
        /// The unit.
        process: String,
        /// What its probe answered.
        answer: String,
    },
    /// A process is ready.
    ProcessReady {
        /// The unit.
        process: String,
        /// Since its spawn.
        after_seconds: f64,
    },
    /// A process did not get ready in time.
    ProcessNotReady {
        /// The unit.
        process: String,
        /// Its limit.
        after_seconds: f64,
        /// What its probe answered last.
        answer: String,
        /// The end of its log.
        last_lines: Vec<String>,
    },
    /// A process could not be spawned.
    SpawnFailed {
        /// The unit.
        process: String,
        /// What is wrong and with which path.
        message: String,
        /// 126 (not executable), 127 (not found) or 125.
        code: i32,
    },
    /// A process ended.
    ProcessExited {
        /// The unit.
        process: String,
        /// Its pid.
        pid: u32,
        /// How.
        #[serde(flatten)]
        status: ExitStatus,
        /// Whether gymrun stopped it, or it was due to end (the driver, a task).
        expected: bool,
        /// Whether it had been ready.
        was_ready: bool,
        /// Since its spawn.
        after_seconds: f64,
        /// Why, if it did not exit with 0 and gymrun had not asked it to end, as far as can be known.
        #[serde(skip_serializing_if = "Option::is_none")]
        explanation: Option<Explanation>,
        /// The end of its log; empty if `expected`.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        last_lines: Vec<String>,
    },
    /// A process that was ready does not answer its liveness probe any more; it is stopped.
    ProcessHung {
        /// The unit.
        process: String,
        /// That many bad answers in a row.
        failures: u32,
        /// The last of them.
        answer: String,
    },
    /// A process will be started again, once what is left of it is gone.
    ProcessRestarting {
        /// The unit.
        process: String,
        /// Which restart in its window this is, from 1.
        number: u32,
        /// How many the window allows.
        limit: u32,
        /// From its end to its new start, at least.
        backoff_seconds: f64,
    },
    /// A process was never started since one that it depends on failed.
    ProcessSkipped {
        /// The unit.
        process: String,
        /// The one that failed.
        because: String,
    },
    /// Every service and server is ready.
    AllReady {
        /// Since the job's start.
        after_seconds: f64,
    },
    /// One tick of the sampler.
    MemorySampled(Box<Sample>),
    /// The ordered stop begins.
    Stopping(StopReason),
    /// The last scrape is over.
    LastScrape {
        /// Forced through the admin call (ours), or waited for (otelcol).
        forced: bool,
        /// How long it took.
        seconds: f64,
        /// Why it failed, if it did.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A process got its stop signal.
    ProcessStopping {
        /// The unit.
        process: String,
        /// `SIGTERM` and the like.
        signal: String,
        /// The process itself has ended: this is for what is left of its tree.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        has_ended: bool,
    },
    /// SIGKILL went to what was left of a process's tree after its grace.
    ProcessKilled {
        /// The unit.
        process: String,
        /// How many processes got it.
        processes: u32,
    },
    /// A process and its whole tree are gone.
    ProcessGone {
        /// The unit.
        process: String,
    },
    /// Nothing more is written to a log that gymrun writes; said only if it was rotated or is not whole.
    LogEnded {
        /// The unit.
        process: String,
        /// Its older files, the newest first, relative to the job directory.
        older: Vec<String>,
        /// How much went with older files that are gone.
        rotated_out_bytes: u64,
        /// How much could not be written.
        lost_bytes: u64,
    },
    /// What the collector delivered.
    Delivered(Box<Delivery>),
    /// Something that the author should know; the job goes on.
    Warning {
        /// The unit it is about.
        #[serde(skip_serializing_if = "Option::is_none")]
        process: Option<String>,
        /// A lower-case fragment.
        message: String,
        /// The way out.
        #[serde(skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
    /// The job is over and nothing of it is left.
    JobEnded {
        /// gymrun's exit code.
        code: i32,
        /// What it means.
        class: OutcomeClass,
        /// One sentence.
        message: String,
    },
}

/// One event with its time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// Wall clock, for people: nanoseconds since the epoch, printed as RFC 3339 in UTC.
    #[serde(serialize_with = "rfc3339")]
    pub time: i64,
    /// Monotonic, since gymrun started: what decides.
    #[serde(rename = "elapsed_seconds", serialize_with = "seconds")]
    pub elapsed: Duration,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn rfc3339<S: serde::Serializer>(time: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    let stamp = jiff::Timestamp::from_nanosecond(i128::from(*time)).unwrap_or_default();
    serializer.collect_str(&format_args!("{stamp:.6}"))
}

fn seconds<S: serde::Serializer>(elapsed: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((elapsed.as_secs_f64() * 1e6).round() / 1e6)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Event, EventKind, ExitStatus, StopReason};

    #[test]
    fn an_event_is_one_flat_json_object() {
        let event = Event {
            time: 1_700_000_000_123_456_789,
            elapsed: Duration::from_millis(1500),
            kind: EventKind::Stopping(StopReason::Signal { number: 15 }),
        };
        assert_eq!(
            serde_json::to_string(&event).expect("plain data"),
            r#"{"time":"2023-11-14T22:13:20.123456Z","elapsed_seconds":1.5,"event":"stopping","reason":"signal","number":15}"#
        );
        let status = ExitStatus { code: None, signal: Some(9) };
        assert_eq!(status.to_string(), "signal 9 (SIGKILL)");
        assert_eq!(status.shell_code(), 137);
    }
}
