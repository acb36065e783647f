//! The one task that owns all state: takes reports in, asks the table, and has the host do what it says.
//!
//! It decides nothing. Times of day play no part: durations and limits are monotonic.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::budget::Pace;
use super::host::{Host, Report};
use super::machine::{Action, Input, UnitId, rules};
use super::state::{State, step};
use crate::events::{EventKind, Sink};
use crate::plan::{OnExit, Plan};

/// Runs a plan on a host.
pub(super) struct Engine<H> {
    plan: Arc<Plan>,
    host: H,
    sink: Sink,
    state: State,
    reports: mpsc::UnboundedReceiver<Report>,
    pace: watch::Sender<Pace>,
    start: Instant,
    clocks: Vec<Clock>,
    /// How each unit failed, in words.
    failures: Vec<Option<String>>,
    finished: bool,
}

#[derive(Clone, Debug, Default)]
struct Clock {
    since: Option<Instant>,
    pid: u32,
}

/// How a job ended, before anybody asked what became of its telemetry.
pub(super) struct Ended<H> {
    pub(super) host: H,
    pub(super) state: State,
    pub(super) failures: Vec<Option<String>>,
    pub(super) reports: mpsc::UnboundedReceiver<Report>,
}

impl<H: Host> Engine<H> {
    pub(super) fn new(plan: Arc<Plan>, host: H, sink: Sink, reports: mpsc::UnboundedReceiver<Report>) -> Self {
        let state = State::new(rules(&plan));
        let clocks = vec![Clock::default(); plan.units.len()];
        let pace = watch::Sender::new(Pace::Leisurely);
        let failures = vec![None; plan.units.len()];
        Self { plan, host, sink, state, reports, pace, start: Instant::now(), clocks, failures, finished: false }
    }

    /// Runs to the end. `told` gives the number of each signal that gymrun gets.
    pub(super) async fn run(mut self, mut told: mpsc::UnboundedReceiver<i32>) -> Ended<H> {
        let limit = self.plan.time_limit_seconds.map(|limit| self.start + super::resolve::seconds(limit));
        let mut limited = limit.is_some();
        self.take(&Input::Begin).await;
        while !self.finished {
            let input = tokio::select! {
                biased;
                Some(signal) = told.recv() => Some(Input::Told(signal)),
                Some(report) = self.reports.recv() => self.heard(report),
                () = sleep_until(limit.unwrap_or(self.start)), if limited => {
                    limited = false;
                    Some(Input::TimeUp)
                }
            };
            if let Some(input) = input {
                self.take(&input).await;
            }
        }
        Ended { host: self.host, state: self.state, failures: self.failures, reports: self.reports }
    }

    async fn take(&mut self, input: &Input) {
        let (next, actions) = step(&self.state, input);
        self.state = next;
        for action in actions {
            self.perform(action).await;
        }
    }

    fn name(&self, unit: UnitId) -> String {
        self.plan.units[unit].name.clone()
    }

    fn since(&self, unit: UnitId) -> f64 {
        self.clocks[unit].since.map_or(0.0, |since| since.elapsed().as_secs_f64())
    }

    /// Says what a report says, and gives the table its part of it.
    fn heard(&mut self, report: Report) -> Option<Input> {
        let event = match report {
            Report::Spawned { unit, pid } => {
                self.clocks[unit] = Clock { since: Some(Instant::now()), pid };
                self.host.heard(unit, true);
                self.sink.emit(EventKind::ProcessStarted {
                    process: self.name(unit),
                    kind: self.plan.units[unit].kind,
                    pid,
                });
                return Some(Input::Spawned(unit));
            }
            Report::SpawnFailed { unit, message, code } => {
                self.failures[unit] = Some(format!("could not be started: {message}"));
                self.sink.emit(EventKind::SpawnFailed { process: self.name(unit), message, code });
                return Some(Input::SpawnFailed(unit, code));
            }
            Report::Ready { unit } => return Some(Input::ProbeGood(unit)),
            Report::NotReady { unit, limit, answer } => {
                // A probe that is given up may still have said something.
                if self.state.phases[unit] == super::machine::Phase::Up && self.state.cause.is_none() {
                    self.say_not_ready(unit, limit, answer);
                }
                return Some(Input::NotReady(unit));
            }
            Report::Exited { unit, status } => {
                self.host.heard(unit, false);
                return Some(Input::Exited(unit, status));
            }
            Report::Gone { unit } => {
                self.sink.emit(EventKind::ProcessGone { process: self.name(unit) });
                return Some(Input::Gone(unit));
            }
            Report::Scraped { forced, took, error } => {
                self.sink.emit(EventKind::LastScrape { forced, seconds: took.as_secs_f64(), error });
                return Some(Input::Scraped);
            }
            Report::Sampled => return Some(Input::Sampled),
            Report::StillWaiting { unit, answer } => EventKind::ProcessWaiting { process: self.name(unit), answer },
            Report::Stopping { unit, signal } => EventKind::ProcessStopping { process: self.name(unit), signal },
            Report::Killed { unit, processes } => EventKind::ProcessKilled { process: self.name(unit), processes },
            Report::Warning { unit, message, hint } => {
                EventKind::Warning { process: unit.map(|unit| self.name(unit)), message, hint }
            }
        };
        self.sink.emit(event);
        None
    }

    fn say_not_ready(&mut self, unit: UnitId, limit: Duration, answer: String) {
        self.failures[unit] = Some(format!("was not ready after {} s, last answer: {answer}", limit.as_secs_f64()));
        let path = std::path::Path::new(&self.plan.job_dir).join(self.plan.units[unit].log_file());
        self.sink.emit(EventKind::ProcessNotReady {
            process: self.name(unit),
            after_seconds: limit.as_secs_f64(),
            answer,
            last_lines: super::files::last_lines(&path),
        });
    }

    async fn perform(&mut self, action: Action) {
        match action {
            Action::Spawn(unit) => self.host.spawn(unit),
            Action::Await(unit) => self.host.watch(unit),
            Action::Forget(unit) => self.host.forget(unit),
            Action::Ready(unit) => {
                let after_seconds = self.since(unit);
                self.sink.emit(EventKind::ProcessReady { process: self.name(unit), after_seconds });
            }
            Action::Skip { unit, because } => {
                self.sink.emit(EventKind::ProcessSkipped { process: self.name(unit), because: self.name(because) });
            }
            Action::Ended { unit, status, expected, was_ready } => {
                if !expected {
                    let before = if was_ready { "" } else { " before it was ready" };
                    self.failures[unit] = Some(format!("{}{before}", super::outcome::describe(status)));
                }
                let last_lines = if expected { Vec::new() } else { self.host.last_lines(unit).await };
                self.sink.emit(EventKind::ProcessExited {
                    process: self.name(unit),
                    pid: self.clocks[unit].pid,
                    status,
                    expected,
                    was_ready,
                    after_seconds: self.since(unit),
                    last_lines,
                });
            }
            Action::GoOnWithout(unit) => {
                let hint = (self.plan.units[unit].on_exit == OnExit::Ignore)
                    .then(|| "`on_exit = \"ignore\"` says so".to_owned());
                self.sink.warn(Some(&self.name(unit)), "it failed, and the job goes on without it", hint);
            }
            Action::LostCollector => {
                let name = self.plan.units.iter().find(|u| u.kind == crate::plan::Kind::Collector);
                let message = "the collector died: what is sent from now on is lost";
                self.sink.warn(name.map(|u| u.name.as_str()), message, None);
            }
            Action::Serve => {
                let after_seconds = self.start.elapsed().as_secs_f64();
                self.sink.emit(EventKind::AllReady { after_seconds });
                self.host.start_sampler();
            }
            Action::BeginStop { reason, hurried } => {
                self.sink.emit(EventKind::Stopping(reason));
                if hurried {
                    self.hurry();
                }
            }
            Action::Hurry => self.hurry(),
            Action::KillAll => {
                self.pace.send_replace(Pace::Kill);
            }
            Action::Scrape => self.host.scrape(self.pace.subscribe()),
            Action::Sample => self.host.stop_sampler(),
            Action::Stop(unit) => self.host.stop(unit, self.pace.subscribe()),
            Action::Finish => self.finished = true,
        }
    }

    fn hurry(&self) {
        self.pace.send_replace(Pace::hurried(&self.plan, &self.state.phases));
    }
}
