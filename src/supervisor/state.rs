//! What the supervisor does, as a table: a state and an input give a state and actions.
//!
//! Nothing here waits, reads a clock or touches a process. The job goes through the stages in order; each unit has a
//! [`Phase`]. What is wanted (`Stage`) and what is (`Phase`) are apart, and so are running and ready: a dependant waits
//! for [`Phase::Ready`], never for [`Phase::Up`].

use std::collections::VecDeque;
use std::sync::Arc;

use super::machine::{Action, Cause, Input, Phase, ReadyWhen, Rule, Stage, UnitId};
use crate::events::{ExitStatus, StopReason};
use crate::plan::{Exhausted, Kind, OnExit};

mod recycle;
mod turns;

/// The whole state of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    rules: Arc<[Rule]>,
    /// Of each unit.
    pub phases: Vec<Phase>,
    /// Of the job.
    pub stage: Stage,
    /// What decided its end, if anything has.
    pub cause: Option<Cause>,
    /// The collector died after it had been ready.
    pub collector_lost: bool,
    /// How the collector ended badly while it was stopped.
    pub collector_failed: Option<ExitStatus>,
    /// Something of the collector needed SIGKILL.
    pub collector_killed: bool,
    /// Since it was started last.
    ready_once: Vec<bool>,
    /// Those that are stopped to be started again.
    recycle: Vec<Option<recycle::Recycle>>,
    /// Those that may not be started again as things are.
    exhausted: Vec<bool>,
    /// The sampler runs.
    served: bool,
    /// Graces are cut to fit.
    hurried: bool,
    /// The host is making the last scrape or sample.
    busy: bool,
    signals: u32,
}

/// One step.
#[must_use]
pub fn step(state: &State, input: &Input) -> (State, Vec<Action>) {
    let mut next = state.clone();
    let mut actions = Vec::new();
    next.apply(input, &mut actions);
    (next, actions)
}

impl State {
    /// Nothing has happened yet.
    #[must_use]
    pub fn new(rules: Arc<[Rule]>) -> Self {
        Self {
            phases: vec![Phase::Waiting; rules.len()],
            ready_once: vec![false; rules.len()],
            recycle: vec![None; rules.len()],
            exhausted: vec![false; rules.len()],
            rules,
            stage: Stage::Start,
            cause: None,
            collector_lost: false,
            collector_failed: None,
            collector_killed: false,
            served: false,
            hurried: false,
            busy: false,
            signals: 0,
        }
    }

    fn find(&self, kind: Kind) -> Option<UnitId> {
        self.rules.iter().position(|rule| rule.kind == kind)
    }

    fn middle(&self) -> impl Iterator<Item = UnitId> {
        let rules = Arc::clone(&self.rules);
        (0..rules.len()).filter(move |id| rules[*id].kind.in_middle())
    }

    fn ending(&self) -> bool {
        self.stage >= Stage::EndDriver
    }

    fn apply(&mut self, input: &Input, actions: &mut Vec<Action>) {
        match *input {
            Input::Begin => self.start_those_that_can(actions),
            Input::Spawned(unit) => self.spawned(unit, actions),
            Input::SpawnFailed(unit, code) => {
                self.phases[unit] = Phase::Missing;
                self.recycle[unit] = None;
                self.failed(unit, Some(code), actions);
                self.recycle_those_that_can(actions);
            }
            Input::NotStarted(unit) => {
                if self.phases[unit] == Phase::Starting {
                    self.phases[unit] = Phase::Stuck;
                    self.advance(actions);
                }
            }
            Input::Killed(unit) => self.killed(unit),
            Input::ProbeGood(unit) => {
                if self.phases[unit] == Phase::Up && !self.ending() {
                    self.ready(unit, Phase::Ready, actions);
                }
            }
            Input::NotReady(unit) => {
                if self.phases[unit] == Phase::Up && self.recycle[unit].is_none() && !self.ending() {
                    self.phases[unit] = Phase::Late;
                    actions.push(Action::Late(unit));
                    self.failed(unit, None, actions);
                }
            }
            Input::Exited(unit, status) => self.exited(unit, status, actions),
            Input::Hung(unit) => {
                if self.satisfies(unit) && !self.ending() {
                    actions.push(Action::Hung(unit));
                    self.failed(unit, None, actions);
                }
            }
            Input::Restarts(unit, left) => self.exhausted[unit] = !left,
            Input::Rested(unit) => {
                if self.phases[unit] == Phase::Resting && !self.ending() {
                    self.phases[unit] = Phase::Waiting;
                    self.start_those_that_can(actions);
                }
            }
            Input::Gone(unit) => self.gone(unit, actions),
            Input::GivenUp(unit) => {
                self.killed(unit);
                self.gone(unit, actions);
            }
            Input::Scraped | Input::Sampled => {
                self.busy = false;
                self.advance(actions);
            }
            Input::Told(signal) => self.told(signal, actions),
            Input::TimeUp => {
                if !self.ending() {
                    self.begin_stop(Cause::TimeLimit, StopReason::TimeLimit, false, actions);
                }
            }
        }
    }

    /// Starts the collector, or each unit whose needs are ready, for the first time or again; then the driver.
    fn start_those_that_can(&mut self, actions: &mut Vec<Action>) {
        if self.ending() {
            return;
        }
        if let Some(collector) = self.find(Kind::Collector) {
            match self.phases[collector] {
                Phase::Waiting => return self.spawn(collector, actions),
                // It was ready if it is dead: otherwise the job would be ending.
                Phase::Ready | Phase::Dead => {}
                _ => return,
            }
        }
        self.skip_those_that_cannot(actions);
        let able: Vec<UnitId> = self
            .middle()
            .filter(|id| self.phases[*id] == Phase::Waiting)
            .filter(|id| self.rules[*id].needs.iter().all(|need| self.satisfies(*need)))
            .collect();
        for unit in able {
            self.spawn(unit, actions);
        }
        if self.stage == Stage::Start && self.middle().all(|id| self.satisfies(id) || self.fails(id)) {
            self.stage = Stage::Serve;
            self.served = true;
            actions.push(Action::Serve);
            if let Some(driver) = self.find(Kind::Driver) {
                self.spawn(driver, actions);
            }
        }
    }

    /// Whether what needs a unit may start.
    fn satisfies(&self, unit: UnitId) -> bool {
        self.phases[unit].satisfies() && self.recycle[unit].is_none()
    }

    /// Whether what needs a unit will never start.
    fn fails(&self, unit: UnitId) -> bool {
        self.phases[unit].fails() && self.recycle[unit].is_none()
    }

    fn spawn(&mut self, unit: UnitId, actions: &mut Vec<Action>) {
        self.phases[unit] = Phase::Starting;
        self.ready_once[unit] = false;
        actions.push(Action::Spawn(unit));
    }

    /// Skips what needs a failed unit, directly or not, naming the one that failed first.
    fn skip_those_that_cannot(&mut self, actions: &mut Vec<Action>) {
        let failed: Vec<UnitId> =
            self.middle().filter(|id| self.fails(*id) && self.phases[*id] != Phase::Skipped).collect();
        for because in failed {
            let mut queue = VecDeque::from(self.rules[because].needed_by.clone());
            while let Some(unit) = queue.pop_front() {
                if self.phases[unit] == Phase::Waiting {
                    self.phases[unit] = Phase::Skipped;
                    actions.push(Action::Skip { unit, because });
                    queue.extend(&self.rules[unit].needed_by);
                }
            }
        }
    }

    fn spawned(&mut self, unit: UnitId, actions: &mut Vec<Action>) {
        if self.phases[unit] == Phase::Stuck {
            // Its turn to be stopped may be over.
            self.phases[unit] = Phase::Stopping;
            return actions.push(Action::Stop(unit));
        }
        self.phases[unit] = Phase::Up;
        if self.ending() {
            return self.advance(actions);
        }
        if self.recycle[unit].is_some() {
            return self.recycle_those_that_can(actions);
        }
        match self.rules[unit].ready {
            ReadyWhen::Started => self.ready(unit, Phase::Ready, actions),
            ReadyWhen::Probed | ReadyWhen::Done => actions.push(Action::Await(unit)),
        }
    }

    fn ready(&mut self, unit: UnitId, phase: Phase, actions: &mut Vec<Action>) {
        self.phases[unit] = phase;
        self.ready_once[unit] = true;
        actions.push(Action::Ready(unit));
        if self.rules[unit].liveness && phase == Phase::Ready {
            actions.push(Action::Guard(unit));
        }
        self.start_those_that_can(actions);
    }

    /// Something of a unit got SIGKILL.
    fn killed(&mut self, unit: UnitId) {
        self.collector_killed |= self.rules[unit].kind == Kind::Collector;
    }

    fn exited(&mut self, unit: UnitId, status: ExitStatus, actions: &mut Vec<Action>) {
        let kind = self.rules[unit].kind;
        let before = self.phases[unit];
        let task_done = self.rules[unit].ready == ReadyWhen::Done && before == Phase::Up && status.success();
        let driver_ended = kind == Kind::Driver && !self.ending();
        // Whether it is being stopped, or was given up.
        let stopped = !before.runs();
        // What it needs is being started again, and its own turn to be stopped would have come.
        let recycled = self.recycle[unit].is_some();
        let expected = stopped || recycled || task_done || driver_ended;
        let was_ready = self.ready_once[unit] || task_done;
        actions.push(Action::Ended { unit, status, expected, asked: stopped || recycled, was_ready });
        if stopped {
            // Its tree may still run: it is over when the host says so.
            if kind == Kind::Collector && !status.success() {
                self.collector_failed = Some(status);
            }
            return;
        }
        if before == Phase::Up || (before == Phase::Ready && self.rules[unit].liveness) {
            actions.push(Action::Forget(unit));
        }
        self.phases[unit] = Phase::Dead;
        if kind == Kind::Collector && was_ready {
            self.collector_lost = true;
            actions.push(Action::LostCollector);
        }
        if self.ending() {
            self.advance(actions);
        } else if recycled {
            self.recycle_those_that_can(actions);
        } else if driver_ended {
            self.begin_stop(Cause::DriverEnded(status), StopReason::DriverEnded, false, actions);
        } else if task_done {
            self.ready(unit, Phase::Done, actions);
        } else if before != Phase::Late {
            // One that was late had failed already: its end is no news for the job.
            self.failed(unit, None, actions);
        }
    }

    /// A unit is `Dead`, `Late` or `Missing`, or hangs, and nobody asked for it. `code` is a shell's if it could not be
    /// started: then another try would end in the same way.
    fn failed(&mut self, unit: UnitId, code: Option<i32>, actions: &mut Vec<Action>) {
        if self.ending() {
            return self.advance(actions);
        }
        let was_ready = self.ready_once[unit];
        let process = self.rules[unit].name.clone();
        let in_middle = self.rules[unit].kind.in_middle();
        if let (true, OnExit::Restart(policy), None, false) =
            (in_middle, self.rules[unit].on_exit, code, self.exhausted[unit])
        {
            return self.restart(unit, policy, actions);
        }
        if self.phases[unit] == Phase::Ready {
            // It hangs.
            self.phases[unit] = Phase::Felled;
            actions.push(Action::Stop(unit));
        }
        let ignored = match self.rules[unit].on_exit {
            OnExit::Ignore => true,
            OnExit::Restart(policy) => policy.exhausted == Exhausted::Ignore,
            OnExit::Stop => false,
        };
        match (self.rules[unit].kind, code) {
            (Kind::Driver, Some(code)) => {
                self.begin_stop(Cause::DriverMissing(code), StopReason::StartFailed { process }, true, actions);
            }
            // Telemetry never changes the result.
            (Kind::Collector, _) if was_ready => {}
            _ if in_middle && ignored => {
                actions.push(Action::GoOnWithout(unit));
                self.start_those_that_can(actions);
            }
            _ if was_ready => {
                self.begin_stop(Cause::Died(unit), StopReason::ProcessDied { process }, true, actions);
            }
            _ => self.begin_stop(Cause::NotReady(unit), StopReason::StartFailed { process }, true, actions),
        }
    }

    fn told(&mut self, signal: i32, actions: &mut Vec<Action>) {
        self.signals += 1;
        if !self.ending() {
            self.begin_stop(Cause::Told(signal), StopReason::Signal { number: signal }, true, actions);
        } else if self.signals > 1 {
            if self.stage < Stage::EndAll {
                actions.push(Action::KillAll);
                self.enter(Stage::EndAll, actions);
            }
        } else if !self.hurried {
            // The job was ending at leisure: now it has to be quick. What decided its end stands.
            self.hurried = true;
            actions.push(Action::Hurry);
        }
    }

    fn begin_stop(&mut self, cause: Cause, reason: StopReason, hurried: bool, actions: &mut Vec<Action>) {
        self.cause = Some(cause.clone());
        self.hurried = hurried;
        self.recycle.fill(None);
        actions.push(Action::BeginStop { reason, hurried });
        for (unit, phase) in self.phases.iter().enumerate() {
            match phase {
                Phase::Up => actions.push(Action::Forget(unit)),
                Phase::Starting => actions.push(Action::LimitStart(unit)),
                _ => {}
            }
        }
        self.skip_those_that_cannot(actions);
        if let (Cause::NotReady(because) | Cause::Died(because), Some(driver)) = (cause, self.find(Kind::Driver))
            && self.phases[driver] == Phase::Waiting
        {
            self.phases[driver] = Phase::Skipped;
            actions.push(Action::Skip { unit: driver, because });
        }
        self.enter(Stage::EndDriver, actions);
    }

    fn enter(&mut self, stage: Stage, actions: &mut Vec<Action>) {
        self.stage = stage;
        let collector_up = self.find(Kind::Collector).is_some_and(|id| self.phases[id] == Phase::Ready);
        let work = match stage {
            Stage::EndScrape if self.served && collector_up => Some(Action::Scrape),
            Stage::EndSample if self.served => Some(Action::Sample),
            Stage::Over => return actions.push(Action::Finish),
            _ => None,
        };
        self.busy = work.is_some();
        actions.extend(work);
        self.advance(actions);
    }
}

#[cfg(test)]
mod tests;
