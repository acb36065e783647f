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
use super::outbox::Outbox;
use super::restarts::Restarts;
use super::state::{State, step};
use crate::diag::counted;
use crate::events::{EventKind, ExitStatus, Sink};
use crate::plan::{OnExit, Plan};
use crate::procfs::Identity;

/// Runs a plan on a host.
pub(super) struct Engine<H> {
    plan: Arc<Plan>,
    host: H,
    outbox: Outbox,
    state: State,
    reports: mpsc::UnboundedReceiver<Report>,
    pace: watch::Sender<Pace>,
    start: Instant,
    clocks: Vec<Clock>,
    /// How each unit failed, in words.
    failures: Vec<Option<String>>,
    /// Why each unit ended, if it has and nobody asked it to.
    explanations: Vec<Option<String>>,
    /// How often each unit was to be started.
    lives: Vec<u64>,
    /// The number of the last look back at each unit.
    looks: Vec<u64>,
    /// What did not die of SIGKILL when its time was over.
    given_up: Vec<Identity>,
    /// Of each unit that did not get ready, or hangs.
    answers: Vec<Answer>,
    /// Of each unit that may be started again.
    restarts: Vec<Option<Restarts>>,
    finished: bool,
}

#[derive(Clone, Debug, Default)]
struct Clock {
    since: Option<Instant>,
    pid: u32,
}

/// What a probe answered last.
#[derive(Clone, Debug, Default)]
struct Answer {
    text: String,
    /// How long a unit had to get ready.
    limit: Duration,
    /// How often in a row the answer was bad.
    failures: u32,
}

impl Answer {
    fn new(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

/// How a job ended, before anybody asked what became of its telemetry.
pub(super) struct Ended<H> {
    pub(super) host: H,
    pub(super) state: State,
    pub(super) failures: Vec<Option<String>>,
    pub(super) explanations: Vec<Option<String>>,
    /// What did not die of SIGKILL when its time was over.
    pub(super) given_up: Vec<Identity>,
    pub(super) reports: mpsc::UnboundedReceiver<Report>,
    /// The pace at the end, which is that of what still is to be done.
    pub(super) pace: Pace,
}

impl<H: Host> Engine<H> {
    pub(super) fn new(plan: Arc<Plan>, host: H, sink: Sink, reports: mpsc::UnboundedReceiver<Report>) -> Self {
        let state = State::new(rules(&plan));
        let clocks = vec![Clock::default(); plan.units.len()];
        let pace = watch::Sender::new(Pace::Leisurely);
        let failures = vec![None; plan.units.len()];
        let explanations = failures.clone();
        let looks = vec![0; plan.units.len()];
        let lives = looks.clone();
        let answers = vec![Answer::default(); plan.units.len()];
        let restarts = plan.units.iter().map(|unit| Restarts::of(unit.on_exit)).collect();
        Self {
            plan,
            host,
            outbox: Outbox::new(sink),
            state,
            reports,
            pace,
            start: Instant::now(),
            clocks,
            failures,
            explanations,
            lives,
            looks,
            given_up: Vec::new(),
            answers,
            restarts,
            finished: false,
        }
    }

    /// Runs to the end. `told` gives the number of each signal that gymrun gets.
    pub(super) async fn run(mut self, mut told: mpsc::UnboundedReceiver<i32>) -> Ended<H> {
        let limit = self.plan.time_limit_seconds.map(|limit| self.start + super::resolve::seconds(limit));
        let mut limited = limit.is_some();
        self.take(&Input::Begin);
        while !self.finished || !self.outbox.is_empty() {
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
                self.take(&input);
            }
        }
        Ended {
            host: self.host,
            state: self.state,
            failures: self.failures,
            explanations: self.explanations,
            given_up: self.given_up,
            reports: self.reports,
            pace: *self.pace.borrow(),
        }
    }

    fn take(&mut self, input: &Input) {
        let (next, actions) = step(&self.state, input);
        self.state = next;
        for action in actions {
            self.perform(action);
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
                // What is found out of a former life now is only said.
                (self.explanations[unit], self.looks[unit]) = (None, 0);
                self.host.heard(unit, true);
                self.outbox.say(EventKind::ProcessStarted {
                    process: self.name(unit),
                    kind: self.plan.units[unit].kind,
                    pid,
                });
                return Some(Input::Spawned(unit));
            }
            Report::SpawnFailed { unit, message, code } => {
                self.failures[unit] = Some(format!("could not be started: {message}"));
                self.outbox.say(EventKind::SpawnFailed { process: self.name(unit), message, code });
                return Some(Input::SpawnFailed(unit, code));
            }
            Report::NotStarted { unit } => return Some(Input::NotStarted(unit)),
            Report::Ready { unit } => return Some(Input::ProbeGood(unit)),
            Report::NotReady { unit, limit, answer } => {
                self.answers[unit] = Answer { limit, ..Answer::new(answer) };
                self.tell_restarts(unit);
                return Some(Input::NotReady(unit));
            }
            Report::Hung { unit, failures, answer } => {
                self.answers[unit] = Answer { failures, ..Answer::new(answer) };
                self.tell_restarts(unit);
                return Some(Input::Hung(unit));
            }
            Report::Rested { unit } => return Some(Input::Rested(unit)),
            Report::Exited { unit, life, status } => {
                if life != self.lives[unit] {
                    // It was given up, which was said, and its unit was started again.
                    return None;
                }
                self.host.heard(unit, false);
                self.tell_restarts(unit);
                return Some(Input::Exited(unit, status));
            }
            Report::Gone { unit } => {
                self.outbox.say(EventKind::ProcessGone { process: self.name(unit) });
                return Some(Input::Gone(unit));
            }
            Report::GivenUp { unit, processes } => {
                self.given_up.extend(processes);
                return Some(Input::GivenUp(unit));
            }
            Report::Scraped { forced, took, error } => {
                self.outbox.say(EventKind::LastScrape { forced, seconds: took.as_secs_f64(), error });
                return Some(Input::Scraped);
            }
            Report::Sampled => return Some(Input::Sampled),
            Report::StillWaiting { unit, answer } => EventKind::ProcessWaiting { process: self.name(unit), answer },
            Report::Stopping { unit, signal, has_ended } => {
                EventKind::ProcessStopping { process: self.name(unit), signal, has_ended }
            }
            Report::Killed { unit, processes } => {
                self.outbox.say(EventKind::ProcessKilled { process: self.name(unit), processes });
                return Some(Input::Killed(unit));
            }
            Report::LookedBack { unit, look, lines, explanation } => {
                if self.looks[unit] == look {
                    self.explanations[unit] = explanation.as_ref().map(|explanation| explanation.text.clone());
                }
                self.outbox.fill(look, lines, explanation);
                return None;
            }
            Report::Warning { unit, message, hint } => {
                EventKind::Warning { process: unit.map(|unit| self.name(unit)), message, hint }
            }
        };
        self.outbox.say(event);
        None
    }

    /// Tells the table whether an end of a unit now would be one too many.
    fn tell_restarts(&mut self, unit: UnitId) {
        if let Some(restarts) = &mut self.restarts[unit] {
            let left = restarts.left(Instant::now());
            self.take(&Input::Restarts(unit, left));
        }
    }

    /// The end of a sentence about a failure, if nothing is started again because of it.
    fn used_up(&mut self, unit: UnitId) -> String {
        let Some(restarts) = &mut self.restarts[unit] else { return String::new() };
        if restarts.left(Instant::now()) { String::new() } else { format!(", and {}", restarts.used_up()) }
    }

    /// Says something that shows the end of a unit's log, or why it ended.
    fn say_after_look(&mut self, unit: UnitId, kind: EventKind, lines: bool, ended: Option<ExitStatus>) {
        self.looks[unit] = self.outbox.say_after_look(kind);
        self.host.look_back(unit, self.looks[unit], lines, ended);
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Spawn(unit) => {
                self.lives[unit] += 1;
                self.host.spawn(unit, self.lives[unit]);
            }
            Action::LimitStart(unit) => self.host.limit_start(unit, self.pace.subscribe()),
            Action::Await(unit) => self.host.watch(unit),
            Action::Forget(unit) => self.host.forget(unit),
            Action::Ready(unit) => {
                let after_seconds = self.since(unit);
                self.outbox.say(EventKind::ProcessReady { process: self.name(unit), after_seconds });
            }
            Action::Late(unit) => {
                let Answer { limit, text: answer, .. } = std::mem::take(&mut self.answers[unit]);
                let after_seconds = limit.as_secs_f64();
                let spent = self.used_up(unit);
                self.failures[unit] =
                    Some(format!("was not ready after {after_seconds} s{spent}, last answer: {answer}"));
                let process = self.name(unit);
                let kind = EventKind::ProcessNotReady { process, after_seconds, answer, last_lines: Vec::new() };
                self.say_after_look(unit, kind, true, None);
            }
            Action::Guard(unit) => self.host.guard(unit),
            Action::Hung(unit) => {
                let Answer { failures, text: answer, .. } = std::mem::take(&mut self.answers[unit]);
                let spent = self.used_up(unit);
                let often = counted(failures, "time", "times in a row");
                self.failures[unit] = Some(format!("failed its liveness probe {often}{spent}, last answer: {answer}"));
                self.outbox.say(EventKind::ProcessHung { process: self.name(unit), failures, answer });
            }
            Action::Restart(unit) => self.count_restart(unit),
            Action::Hold(unit) => self.host.hold(unit),
            Action::Rest(unit) => {
                let left = self.restarts[unit].as_ref().map(|restarts| restarts.backoff_left(Instant::now()));
                self.host.rest(unit, left.unwrap_or_default());
            }
            Action::Skip { unit, because } => {
                self.outbox.say(EventKind::ProcessSkipped { process: self.name(unit), because: self.name(because) });
            }
            Action::Ended { unit, status, expected, asked, was_ready } => {
                if !expected {
                    let before = if was_ready { "" } else { " before it was ready" };
                    let used_up = self.used_up(unit);
                    self.failures[unit] = Some(format!("{}{before}{used_up}", super::outcome::describe(status)));
                }
                let kind = EventKind::ProcessExited {
                    process: self.name(unit),
                    pid: self.clocks[unit].pid,
                    status,
                    expected,
                    was_ready,
                    after_seconds: self.since(unit),
                    explanation: None,
                    last_lines: Vec::new(),
                };
                let unexplained = !asked && !status.success();
                if expected && !unexplained {
                    self.outbox.say(kind);
                } else {
                    self.say_after_look(unit, kind, !expected, unexplained.then_some(status));
                }
            }
            Action::GoOnWithout(unit) => {
                let hint = match self.plan.units[unit].on_exit {
                    OnExit::Ignore => Some("`on_exit = \"ignore\"` says so".to_owned()),
                    OnExit::Restart(_) => Some("its restarts are used up, and `restart.exhausted` says so".to_owned()),
                    OnExit::Stop => None,
                };
                self.warn(Some(self.name(unit)), "it failed, and the job goes on without it", hint);
            }
            Action::LostCollector => {
                let unit = self.plan.units.iter().find(|u| u.kind == crate::plan::Kind::Collector);
                let message = "the collector died: what is sent from now on is lost";
                self.warn(unit.map(|u| u.name.clone()), message, None);
            }
            Action::Serve => {
                let after_seconds = self.start.elapsed().as_secs_f64();
                self.outbox.say(EventKind::AllReady { after_seconds });
                self.host.start_sampler();
            }
            Action::BeginStop { reason, hurried } => {
                self.outbox.say(EventKind::Stopping(reason));
                if hurried {
                    self.hurry();
                }
            }
            Action::Hurry => self.hurry(),
            Action::KillAll => {
                self.warn(None, "told to stop once more: all that is left is killed now, the collector too", None);
                self.pace.send_replace(Pace::Kill);
            }
            Action::Scrape => self.host.scrape(self.pace.subscribe()),
            Action::Sample => self.host.stop_sampler(self.pace.subscribe()),
            Action::Stop(unit) => self.host.stop(unit, self.pace.subscribe()),
            Action::Finish => self.finished = true,
        }
    }

    fn count_restart(&mut self, unit: UnitId) {
        if let Some(restarts) = &mut self.restarts[unit] {
            let (number, backoff) = restarts.count(Instant::now());
            let limit = restarts.limit();
            let backoff_seconds = backoff.as_secs_f64();
            let process = self.name(unit);
            self.outbox.say(EventKind::ProcessRestarting { process, number, limit, backoff_seconds });
        }
    }

    fn warn(&mut self, process: Option<String>, message: &str, hint: Option<String>) {
        self.outbox.say(EventKind::Warning { process, message: message.to_owned(), hint });
    }

    fn hurry(&self) {
        self.pace.send_replace(Pace::hurried(&self.plan, &self.state.phases));
    }
}
