//! One event as one line of text (and the last lines of a process that failed).

use std::fmt::Write as _;

use crate::diag::counted;
use crate::events::{Delivery, Event, EventKind, StopReason};
use crate::plan::DRIVER;

/// The lines of an event; empty for those that are only for machines (memory samples).
#[must_use]
pub(super) fn describe(event: &Event) -> Vec<String> {
    let Some(text) = sentence(&event.kind) else { return Vec::new() };
    let mut lines = vec![format!("gymrun: {:>8.3} {text}", event.elapsed.as_secs_f64())];
    if let EventKind::ProcessExited { explanation: Some(explanation), .. } = &event.kind {
        lines.push(format!("  why: {}", explanation.text));
    }
    if let EventKind::ProcessNotReady { process, last_lines, .. }
    | EventKind::ProcessExited { process, last_lines, .. } = &event.kind
    {
        lines.extend(last_lines.iter().map(|line| format!("  [{process}] {line}")));
    }
    if let EventKind::Warning { hint: Some(hint), .. } = &event.kind {
        lines.push(format!("  hint: {hint}"));
    }
    lines
}

fn sentence(kind: &EventKind) -> Option<String> {
    Some(match kind {
        EventKind::JobStarted { name, job_id, job_dir, .. } => format!("job {name} ({job_id}) in {job_dir}"),
        EventKind::PortsChosen { ports } if ports.is_empty() => return None,
        EventKind::PortsChosen { ports } => {
            let list: Vec<String> = ports.iter().map(|(name, port)| format!("{name}={port}")).collect();
            format!("ports {}", list.join(" "))
        }
        EventKind::ProcessStarted { process, pid, .. } => format!("{process}: started, pid {pid}"),
        EventKind::ProcessWaiting { process, answer } => format!("{process}: waiting until it is ready ({answer})"),
        // That it runs has been said.
        EventKind::ProcessReady { process, .. } if process == DRIVER => return None,
        EventKind::ProcessReady { process, after_seconds } => format!("{process}: ready after {after_seconds:.3} s"),
        EventKind::ProcessNotReady { process, after_seconds, answer, .. } => {
            format!("{process}: not ready after {after_seconds} s, last answer: {answer}")
        }
        EventKind::SpawnFailed { process, message, .. } => format!("{process}: {message}"),
        EventKind::ProcessExited { process, status, expected, was_ready, after_seconds, .. } => {
            let when = if *expected || *was_ready { "" } else { " before it was ready" };
            format!("{process}: {status}{when}, after {after_seconds:.3} s")
        }
        EventKind::ProcessHung { process, failures, answer } => {
            let often = counted(*failures, "time", "times in a row");
            format!("{process}: failed its liveness probe {often}, last answer: {answer}")
        }
        EventKind::ProcessRestarting { process, number, limit, backoff_seconds } => {
            format!("{process}: restart {number} of {limit} after {backoff_seconds} s")
        }
        EventKind::ProcessSkipped { process, because } => format!("{process}: skipped, {because} failed"),
        EventKind::AllReady { after_seconds } => format!("all ready after {after_seconds:.3} s"),
        EventKind::Contained(_)
        | EventKind::MemorySampled(_)
        | EventKind::ProcessGone { .. }
        | EventKind::LogEnded { .. } => return None,
        EventKind::Stopping(reason) => format!("stopping: {}", stop_reason(reason)),
        EventKind::LastScrape { forced, seconds, error } => {
            let what = if *forced { "last scrape" } else { "waited for the last scrape" };
            match error {
                Some(error) => format!("{what} failed after {seconds:.3} s: {error}"),
                None => format!("{what}, {seconds:.3} s"),
            }
        }
        EventKind::ProcessStopping { process, signal, has_ended } => {
            let what = if *has_ended { "stopping what it left" } else { "stopping" };
            format!("{process}: {what} with {signal}")
        }
        EventKind::ProcessKilled { process, processes } => {
            format!("{process}: needed SIGKILL ({})", counted(*processes, "process", "processes"))
        }
        EventKind::Delivered(delivery) => delivered(delivery),
        EventKind::Warning { process: Some(process), message, .. } => format!("warning: {process}: {message}"),
        EventKind::Warning { process: None, message, .. } => format!("warning: {message}"),
        EventKind::JobEnded { code, message, .. } => format!("{message}; exit code {code}"),
    })
}

fn stop_reason(reason: &StopReason) -> String {
    match reason {
        StopReason::DriverEnded => "the driver has ended".to_owned(),
        StopReason::TimeLimit => "the time limit is over".to_owned(),
        StopReason::Signal { number } => match nix::sys::signal::Signal::try_from(*number) {
            Ok(signal) => format!("gymrun got {signal}"),
            Err(_) => format!("gymrun got signal {number}"),
        },
        StopReason::ProcessDied { process } => format!("{process} failed"),
        StopReason::StartFailed { process } => format!("{process} did not get ready"),
    }
}

fn delivered(delivery: &Delivery) -> String {
    let mut text = String::from("telemetry:");
    for (index, (name, signal)) in delivery.signals().into_iter().enumerate() {
        let _ = write!(
            text,
            "{} {name} {} received, {} written, {} sent, {} rejected, {} dropped",
            if index == 0 { "" } else { ";" },
            signal.received,
            signal.written,
            signal.sent,
            signal.rejected,
            signal.dropped_total()
        );
        if !signal.dropped.is_empty() {
            let reasons: Vec<String> =
                signal.dropped.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
            let _ = write!(text, " ({})", reasons.join(", "));
        }
        if signal.stored > 0 {
            let _ = write!(text, ", {} stored", signal.stored);
        }
    }
    text
}

/// The sentence for telemetry that did not arrive; `None` if all did.
#[must_use]
pub(super) fn undelivered(delivery: &Delivery) -> Option<String> {
    let count = delivery.undelivered();
    (count > 0).then(|| {
        let error = delivery.last_error.as_deref().unwrap_or("none told");
        let stored = match delivery.stored() {
            0 => String::new(),
            stored => {
                let stored = counted(stored, "of them is", "of them are");
                format!(" ({stored} stored: `gymrun collector flush` with the job directory sends them)")
            }
        };
        format!("gymrun: telemetry NOT delivered: {}{stored}, last error: {error}", counted(count, "item", "items"))
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::describe;
    use crate::events::{Event, EventKind, ExitStatus, Explanation, Finding};

    #[test]
    fn a_death_shows_name_status_and_last_lines() {
        let event = Event {
            time: 0,
            elapsed: Duration::from_millis(1500),
            kind: EventKind::ProcessExited {
                process: "policy".into(),
                pid: 7,
                status: ExitStatus { code: Some(127), signal: None },
                expected: false,
                was_ready: false,
                after_seconds: 1.0,
                explanation: Explanation::of(vec![Finding::WrappedRefusal { code: 127 }]),
                last_lines: vec!["CUDA boom".into()],
            },
        };
        assert_eq!(
            describe(&event),
            [
                "gymrun:    1.500 policy: exited 127 before it was ready, after 1.000 s",
                "  why: its exit code 127 is what a shell gives when a program does not exist",
                "  [policy] CUDA boom"
            ]
        );
    }

    #[test]
    fn bad_answers_are_counted_and_told_as_they_were() {
        let said = |failures| {
            let kind = EventKind::ProcessHung { process: "a".into(), failures, answer: "connection refused".into() };
            describe(&Event { time: 0, elapsed: Duration::ZERO, kind }).join("\n")
        };
        assert!(said(1).ends_with(" a: failed its liveness probe 1 time, last answer: connection refused"));
        assert!(said(3).ends_with(" a: failed its liveness probe 3 times in a row, last answer: connection refused"));
    }
}
