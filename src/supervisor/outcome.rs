//! What a job's end means: its exit code, its class and one sentence.

use super::machine::Cause;
use super::state::State;
use crate::diag::{counted, exit};
use crate::events::{Delivery, ExitStatus, OutcomeClass};
use crate::plan::{Kind, Plan};

/// The end of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// gymrun's exit code.
    pub code: i32,
    /// What it means.
    pub class: OutcomeClass,
    /// One sentence: a lower-case fragment.
    pub message: String,
}

impl Outcome {
    /// gymrun itself failed before or while it ran the job.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self { code: exit::FAILED, class: OutcomeClass::GymrunFailed, message: message.into() }
    }

    /// gymrun was told to stop, by the signal of that number.
    pub(super) fn told(signal: i32) -> Self {
        let message = format!("told to stop by {}", ExitStatus { code: None, signal: Some(signal) });
        Self { code: exit::by_signal(signal), class: OutcomeClass::ToldToStop, message }
    }
}

/// The end that the table decided; then `otel.required` turns a 0 into 125 if telemetry was not delivered.
pub(super) fn judge(
    plan: &Plan,
    state: &State,
    failures: &[Option<String>],
    explanations: &[Option<String>],
    delivery: Option<&Result<Delivery, String>>,
) -> Outcome {
    let ended = by_cause(plan, state.cause.as_ref(), failures, explanations);
    let required = plan.collector.as_ref().is_some_and(|c| c.required);
    if !required || ended.code != exit::OK {
        return ended;
    }
    let unmet = match delivery {
        _ if state.collector_lost => Some("the collector died".to_owned()),
        _ if state.collector_killed => Some("the collector had to be killed".to_owned()),
        _ if let Some(status) = state.collector_failed => {
            Some(format!("the collector {} when it was stopped", describe(status)))
        }
        Some(Ok(delivery)) if delivery.undelivered() > 0 => {
            let last = delivery.last_error.as_deref().map(|e| format!(", last error: {e}")).unwrap_or_default();
            Some(format!("{} not delivered{last}", counted(delivery.undelivered(), "item was", "items were")))
        }
        Some(Ok(_)) => None,
        Some(Err(error)) => Some(format!("nothing is known of the delivery: {error}")),
        None => Some("nothing is known of the delivery".to_owned()),
    };
    match unmet {
        None => ended,
        Some(why) => Outcome {
            code: exit::FAILED,
            class: OutcomeClass::TelemetryUndelivered,
            message: format!("{}, but `otel.required` is set and {why}", ended.message),
        },
    }
}

fn by_cause(
    plan: &Plan,
    cause: Option<&Cause>,
    failures: &[Option<String>],
    explanations: &[Option<String>],
) -> Outcome {
    let why = |unit: usize| explanations[unit].as_deref().map(|text| format!(": {text}")).unwrap_or_default();
    let failed = |unit: usize, otherwise: &str| {
        format!("`{}` {}{}", plan.units[unit].name, failures[unit].as_deref().unwrap_or(otherwise), why(unit))
    };
    let driver = plan.units.iter().position(|u| u.kind == Kind::Driver).unwrap_or_default();
    let (code, class, message) = match cause {
        Some(Cause::DriverEnded(status)) => {
            let class = if status.success() { OutcomeClass::Ok } else { OutcomeClass::DriverFailed };
            (status.shell_code(), class, format!("the driver {}{}", describe(*status), why(driver)))
        }
        Some(Cause::DriverMissing(code)) => {
            (*code, OutcomeClass::DriverNotStarted, failed(driver, "could not be started"))
        }
        Some(Cause::TimeLimit) => {
            let limit = plan.time_limit_seconds.unwrap_or_default();
            (exit::TIME_LIMIT, OutcomeClass::TimeLimit, format!("the time limit of {limit} s is over"))
        }
        Some(Cause::Told(signal)) => return Outcome::told(*signal),
        Some(Cause::Died(unit)) => (exit::FAILED, OutcomeClass::ProcessDied, failed(*unit, "died")),
        Some(Cause::NotReady(unit)) => (exit::FAILED, OutcomeClass::StartFailed, failed(*unit, "did not get ready")),
        None => (exit::FAILED, OutcomeClass::GymrunFailed, "the job ended for no reason".to_owned()),
    };
    Outcome { code, class, message }
}

/// `exited 7`, `was ended by signal 9 (SIGKILL)`.
pub(super) fn describe(status: ExitStatus) -> String {
    if status.code.is_some() { status.to_string() } else { format!("was ended by {status}") }
}
