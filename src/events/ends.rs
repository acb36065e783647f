//! How processes and jobs end.

use serde::Serialize;

/// How a process ended: exactly one of the two is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ExitStatus {
    /// The exit code, if it exited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

impl ExitStatus {
    /// As a shell gives it: the code, or 128+N.
    #[must_use]
    pub fn shell_code(&self) -> i32 {
        match (self.code, self.signal) {
            (Some(code), _) => code,
            (None, Some(signal)) => crate::diag::exit::by_signal(signal),
            (None, None) => crate::diag::exit::FAILED,
        }
    }

    /// Whether it exited with 0.
    #[must_use]
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }
}

impl std::fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exited {code}"),
            (None, Some(signal)) => write!(f, "signal {signal} ({})", signal_name(signal)),
            (None, None) => f.write_str("ended in an unknown way"),
        }
    }
}

fn signal_name(number: i32) -> &'static str {
    nix::sys::signal::Signal::try_from(number).map_or("unknown", nix::sys::signal::Signal::as_str)
}

/// Why the job is being stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum StopReason {
    /// The driver ended of itself.
    DriverEnded,
    /// `time_limit_seconds` is over.
    TimeLimit,
    /// gymrun got SIGINT, SIGTERM, SIGHUP or SIGQUIT.
    Signal {
        /// Its number.
        number: i32,
    },
    /// A process ended that should not have.
    ProcessDied {
        /// The unit.
        process: String,
    },
    /// A process did not get ready, or could not be started.
    StartFailed {
        /// The unit.
        process: String,
    },
}

/// The class of a job's end, as `result.json` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeClass {
    /// The driver exited 0 (or there was none and all went well).
    Ok,
    /// The driver exited with another code, or was ended by a signal that was not gymrun's.
    DriverFailed,
    /// The driver's program does not exist or cannot be run.
    DriverNotStarted,
    /// The time limit.
    TimeLimit,
    /// The collector, a service or a server could not start or did not get ready.
    StartFailed,
    /// A process died in mid-run.
    ProcessDied,
    /// gymrun was told to stop.
    ToldToStop,
    /// `otel.required` and telemetry was not delivered in full.
    TelemetryUndelivered,
    /// gymrun itself failed (job directory, ports).
    GymrunFailed,
}
