//! The end of a job: whose turn it is to be stopped.

use std::sync::Arc;

use super::State;
use crate::plan::Kind;
use crate::supervisor::machine::{Action, Phase, Stage};

impl State {
    /// Stops what may be stopped now, and goes on to the next stage once all of this one are over.
    pub(super) fn advance(&mut self, actions: &mut Vec<Action>) {
        let rules = Arc::clone(&self.rules);
        let (turn, next): (fn(Kind) -> bool, Stage) = match self.stage {
            Stage::EndDriver => (|kind| kind == Kind::Driver, Stage::EndScrape),
            Stage::EndScrape => (|_| false, Stage::EndSample),
            Stage::EndSample => (|_| false, Stage::EndUnits),
            // One that was stuck may have been started since: it is being stopped, whatever its turn was.
            Stage::EndUnits => (|kind| kind.in_middle() || kind == Kind::Driver, Stage::EndCollector),
            Stage::EndCollector | Stage::EndAll => (|_| true, Stage::Over),
            Stage::Start | Stage::Serve | Stage::Over => return,
        };
        let mut over = !self.busy;
        for (unit, rule) in rules.iter().enumerate().filter(|(_, rule)| turn(rule.kind)) {
            if self.phases[unit].stoppable()
                && (self.stage != Stage::EndUnits || rule.needed_by.iter().all(|other| self.phases[*other].over()))
            {
                self.phases[unit] = Phase::Stopping;
                actions.push(Action::Stop(unit));
            }
            over &= self.phases[unit].over();
        }
        if over {
            self.enter(next, actions);
        }
    }
}
