//! Every state that can be reached, and what must hold in each.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::super::{State, step};
use super::{AGENT, COLLECTOR, DRIVER, MODEL, exit, restart, rules};
use crate::plan::{Exhausted, OnExit};
use crate::supervisor::machine::{Action, Input, Phase, ReadyWhen, Rule, Stage, UnitId};

/// What the host still owes, and what may happen of itself.
#[derive(Clone, Debug)]
struct World {
    state: State,
    /// Processes that run.
    running: Vec<bool>,
    awaited: Vec<bool>,
    limited_starts: Vec<bool>,
    /// Started after they were given up: they are stopped at once, out of order.
    stuck: Vec<bool>,
    guarded: Vec<bool>,
    resting: Vec<bool>,
    restarted: Vec<bool>,
    scraping: bool,
    sampling: bool,
    told: u32,
    limited: bool,
    finished: bool,
}

impl World {
    fn new(rules: Arc<[Rule]>) -> Self {
        let count = rules.len();
        Self {
            state: State::new(rules),
            running: vec![false; count],
            awaited: vec![false; count],
            limited_starts: vec![false; count],
            stuck: vec![false; count],
            guarded: vec![false; count],
            resting: vec![false; count],
            restarted: vec![false; count],
            scraping: false,
            sampling: false,
            told: 0,
            limited: true,
            finished: false,
        }
    }

    /// Everything that may happen next.
    fn possible(&self) -> Vec<Input> {
        let mut inputs = Vec::new();
        for unit in 0..self.running.len() {
            match self.state.phases[unit] {
                Phase::Starting | Phase::Stuck => {
                    inputs.extend([Input::Spawned(unit), Input::SpawnFailed(unit, 127)]);
                    if self.limited_starts[unit] {
                        inputs.push(Input::NotStarted(unit));
                    }
                }
                Phase::Stopping | Phase::Felled | Phase::Recycling if !self.running[unit] => {
                    inputs.push(Input::Gone(unit));
                }
                _ => {}
            }
            if self.running[unit] {
                inputs.extend([Input::Exited(unit, exit(0)), Input::Exited(unit, exit(1))]);
            }
            if self.awaited[unit] {
                inputs.extend([Input::ProbeGood(unit), Input::NotReady(unit)]);
            }
            if self.guarded[unit] {
                inputs.push(Input::Hung(unit));
            }
            if self.resting[unit] {
                inputs.push(Input::Rested(unit));
            }
        }
        if self.scraping {
            inputs.push(Input::Scraped);
        }
        if self.sampling {
            inputs.push(Input::Sampled);
        }
        if self.told < 2 {
            inputs.push(Input::Told(15));
        }
        if self.limited {
            inputs.push(Input::TimeUp);
        }
        inputs
    }

    fn happens(&self, input: &Input) -> Self {
        let mut world = self.clone();
        // One restart each is enough to see.
        if let Input::Exited(unit, _) | Input::NotReady(unit) | Input::Hung(unit) = input
            && world.restarted[*unit]
        {
            world.state = step(&world.state, &Input::Exhausted(*unit)).0;
        }
        match input {
            Input::Spawned(unit) => world.running[*unit] = true,
            Input::Exited(unit, _) => world.running[*unit] = false,
            Input::NotStarted(unit) => {
                world.limited_starts[*unit] = false;
                world.stuck[*unit] = true;
            }
            Input::ProbeGood(unit) | Input::NotReady(unit) => world.awaited[*unit] = false,
            Input::Hung(unit) => world.guarded[*unit] = false,
            Input::Rested(unit) => world.resting[*unit] = false,
            Input::Scraped => world.scraping = false,
            Input::Sampled => world.sampling = false,
            Input::Told(_) => world.told += 1,
            Input::TimeUp => world.limited = false,
            _ => {}
        }
        let (state, actions) = step(&world.state, input);
        world.state = state;
        for action in actions {
            world.check(&action);
            match action {
                Action::Await(unit) => world.awaited[unit] = true,
                Action::LimitStart(unit) => world.limited_starts[unit] = true,
                Action::Guard(unit) => world.guarded[unit] = true,
                Action::Forget(unit) | Action::Stop(unit) => {
                    world.awaited[unit] = false;
                    world.guarded[unit] = false;
                }
                Action::Restart(unit) => world.restarted[unit] = true,
                Action::Rest(unit) => world.resting[unit] = true,
                Action::Scrape => world.scraping = true,
                Action::Sample => world.sampling = true,
                Action::Finish => world.finished = true,
                _ => {}
            }
        }
        world
    }

    fn rules_of(&self, unit: UnitId) -> OnExit {
        self.state.rules[unit].on_exit
    }

    fn check(&self, action: &Action) {
        let phases = &self.state.phases;
        match action {
            Action::Spawn(unit) => {
                assert!(self.state.stage < Stage::EndDriver, "nothing starts while the job ends");
                assert!(!self.running[*unit], "one that runs is not started");
                assert!(*unit == COLLECTOR || matches!(phases[COLLECTOR], Phase::Ready | Phase::Dead));
                assert!(*unit != AGENT || phases[MODEL].satisfies(), "the agent needs the model");
                assert!(*unit != DRIVER || [MODEL, AGENT].iter().all(|u| phases[*u].satisfies() || phases[*u].fails()));
            }
            Action::Stop(unit) if self.state.stage < Stage::EndAll => {
                let ending = self.state.stage >= Stage::EndDriver;
                let with_agent = matches!(self.rules_of(*unit), OnExit::Restart(policy) if policy.also_dependants);
                let later: &[UnitId] = match *unit {
                    // It hangs, or came up after it had been given up: nobody waits for it.
                    _ if phases[*unit] == Phase::Felled || self.stuck[*unit] => &[],
                    MODEL if !ending && with_agent => &[AGENT],
                    _ if !ending => &[],
                    DRIVER => &[],
                    AGENT => &[DRIVER],
                    MODEL => &[DRIVER, AGENT],
                    _ => &[DRIVER, AGENT, MODEL],
                };
                let over = |u: &UnitId| phases[*u].over() || self.stuck[*u] || (!ending && phases[*u].fails());
                assert!(later.iter().all(over), "{unit} is stopped before {later:?} are gone: {self:?}");
            }
            Action::Finish => {
                assert!(self.running.iter().all(|runs| !runs), "something still runs: {self:?}");
                assert!(!self.scraping || self.told > 1);
            }
            _ => {}
        }
    }
}

/// Every state that can be reached keeps the promises above, and from each of them the end can be reached.
#[test]
fn the_whole_table_keeps_its_promises() {
    for (on_exit, model) in [
        (OnExit::Stop, ReadyWhen::Probed),
        (OnExit::Ignore, ReadyWhen::Probed),
        (OnExit::Stop, ReadyWhen::Done),
        (OnExit::Ignore, ReadyWhen::Started),
        (restart(true, Exhausted::Ignore), ReadyWhen::Probed),
        (restart(false, Exhausted::Stop), ReadyWhen::Done),
    ] {
        let first = World::new(rules(on_exit, model)).happens(&Input::Begin);
        let mut seen: BTreeMap<String, usize> = BTreeMap::from([(format!("{first:?}"), 0)]);
        let mut worlds = vec![first];
        let mut came_from: Vec<Vec<usize>> = vec![Vec::new()];
        let mut next = 0;
        while next < worlds.len() {
            let world = worlds[next].clone();
            if !world.finished {
                for input in world.possible() {
                    let after = world.happens(&input);
                    let known = worlds.len();
                    let index = *seen.entry(format!("{after:?}")).or_insert(known);
                    if index == known {
                        worlds.push(after);
                        came_from.push(Vec::new());
                    }
                    came_from[index].push(next);
                }
            }
            next += 1;
        }
        assert!(worlds.len() > 1000, "the exploration is a real one: {}", worlds.len());
        let mut ends: VecDeque<usize> = (0..worlds.len()).filter(|w| worlds[*w].finished).collect();
        let mut can_end = vec![false; worlds.len()];
        while let Some(world) = ends.pop_front() {
            if !std::mem::replace(&mut can_end[world], true) {
                ends.extend(&came_from[world]);
            }
        }
        let stuck: Vec<&World> = (0..worlds.len()).filter(|w| !can_end[*w]).map(|w| &worlds[w]).collect();
        assert!(stuck.is_empty(), "{} states without an end, such as {:#?}", stuck.len(), stuck[0]);
    }
}
