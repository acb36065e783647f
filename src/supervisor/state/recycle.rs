//! Starting a unit again: what is left of it is stopped first, after those that need it if its policy says so; then it
//! rests, and then it is started like any other.

use std::collections::VecDeque;

use super::State;
use crate::plan::RestartPolicy;
use crate::supervisor::machine::{Action, Phase, UnitId};

/// When a unit that is stopped to be started again may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recycle {
    /// After its back-off.
    Rested,
    /// As soon as what it needs is ready again.
    WhenNeedsAreReady,
}

impl State {
    /// Stops what is left of a unit, after those that need it if the policy says so, to start it again.
    pub(super) fn restart(&mut self, unit: UnitId, policy: RestartPolicy, actions: &mut Vec<Action>) {
        actions.push(Action::Restart(unit));
        self.recycle[unit] = Some(Recycle::Rested);
        let mut queue = VecDeque::from(self.rules[unit].needed_by.clone());
        while let Some(other) = queue.pop_front().filter(|_| policy.also_dependants) {
            let runs = matches!(self.phases[other], Phase::Starting | Phase::Up | Phase::Ready | Phase::Done);
            if runs && self.recycle[other].is_none() {
                self.recycle[other] = Some(Recycle::WhenNeedsAreReady);
                queue.extend(&self.rules[other].needed_by);
            }
        }
        self.recycle_those_that_can(actions);
    }

    /// Stops each unit that is to be started again, once those that need it and are so too are gone.
    pub(super) fn recycle_those_that_can(&mut self, actions: &mut Vec<Action>) {
        for unit in 0..self.phases.len() {
            let free = !self.rules[unit].needed_by.iter().any(|other| self.recycle[*other].is_some());
            if self.recycle[unit].is_some() && self.phases[unit].stoppable() && free {
                self.phases[unit] = Phase::Recycling;
                actions.push(Action::Stop(unit));
            }
        }
    }

    /// A unit and its whole tree are gone.
    pub(super) fn gone(&mut self, unit: UnitId, actions: &mut Vec<Action>) {
        if self.ending() {
            self.phases[unit] = Phase::Gone;
            return self.advance(actions);
        }
        let recycle = self.recycle[unit].take();
        if recycle.is_some() {
            actions.push(Action::Hold(unit));
        }
        match recycle {
            Some(Recycle::Rested) => {
                self.phases[unit] = Phase::Resting;
                actions.push(Action::Rest(unit));
            }
            Some(Recycle::WhenNeedsAreReady) => self.phases[unit] = Phase::Waiting,
            // It hung, and the job goes on without it.
            None => self.phases[unit] = Phase::Dead,
        }
        self.recycle_those_that_can(actions);
        self.start_those_that_can(actions);
    }
}
