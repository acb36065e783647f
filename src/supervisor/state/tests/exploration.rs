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
    /// Their process was given up, and may still end.
    given_up: Vec<bool>,
    /// One of them may be given up: that is enough to see.
    gives_up: bool,
    /// Nobody else gets their ports.
    held: Vec<bool>,
    scraping: bool,
    sampling: bool,
    told: u32,
    limited: bool,
    finished: bool,
}

/// What an exploration looks at besides what units do: all at once is too much.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// Signals and the time limit.
    Orders,
    /// Processes that do not die.
    GivenUp,
}

impl World {
    fn new(rules: Arc<[Rule]>, seen: Seen) -> Self {
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
            given_up: vec![false; count],
            gives_up: seen == Seen::GivenUp,
            held: vec![true; count],
            scraping: false,
            sampling: false,
            told: if seen == Seen::Orders { 0 } else { 2 },
            limited: seen == Seen::Orders,
            finished: false,
        }
    }

    /// What tells it from others under the same rules.
    fn key(&self) -> String {
        let mut bare = self.clone();
        bare.state.rules = Arc::new([]);
        format!("{bare:?}")
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
                Phase::Stopping | Phase::Felled | Phase::Recycling if self.running[unit] => {
                    inputs.extend(self.gives_up.then_some(Input::GivenUp(unit)));
                }
                Phase::Stopping | Phase::Felled | Phase::Recycling => inputs.push(Input::Gone(unit)),
                _ => {}
            }
            if self.running[unit] {
                inputs.extend([Input::Exited(unit, exit(0)), Input::Exited(unit, exit(1))]);
            }
            if self.given_up[unit] {
                inputs.push(Input::Exited(unit, exit(1)));
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
        let mut left = false;
        if let Input::Exited(unit, _) | Input::NotReady(unit) | Input::Hung(unit) = *input {
            // One restart each is enough to see. At an end that was asked for none is left: that is no news for later ones.
            let asked = world.state.recycle[unit].is_some() || !world.state.phases[unit].runs();
            if matches!(self.rules_of(unit), OnExit::Restart(_)) {
                left = !world.restarted[unit] && !asked;
                world.state = step(&world.state, &Input::Restarts(unit, left)).0;
            }
        }
        match input {
            Input::Spawned(unit) => world.running[*unit] = true,
            Input::GivenUp(unit) => {
                world.running[*unit] = false;
                world.given_up[*unit] = true;
                world.gives_up = false;
            }
            Input::Exited(unit, _) => {
                world.running[*unit] = false;
                world.given_up[*unit] = false;
            }
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
        self.check_failure(input, left, &actions);
        if let Input::Exited(unit, _) = *input
            && self.given_up[unit]
        {
            let what = |state: &State| (state.phases.clone(), state.stage);
            assert_eq!(what(&state), what(&world.state), "the end of one that was given up changes nothing");
            assert!(matches!(actions[..], [Action::Ended { expected: true, asked: true, .. }]), "{actions:?}");
        }
        world.state = state;
        for action in actions {
            world.check(&action);
            match action {
                Action::Spawn(unit) => {
                    world.held[unit] = false;
                    // What is said of that life is not told to the table any more.
                    world.given_up[unit] = false;
                }
                Action::Hold(unit) => world.held[unit] = true,
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

    /// One that fails is started again if its policy says so and a restart is left to it.
    fn check_failure(&self, input: &Input, left: bool, actions: &[Action]) {
        let (Input::Exited(unit, _) | Input::NotReady(unit) | Input::Hung(unit)) = *input else { return };
        let late = self.state.phases[unit] == Phase::Late;
        let fails = |action: &Action| match action {
            Action::Ended { expected, .. } => !*expected && !late,
            Action::Late(_) | Action::Hung(_) => true,
            _ => false,
        };
        if self.state.stage < Stage::EndDriver && actions.iter().any(fails) {
            assert_eq!(actions.contains(&Action::Restart(unit)), left, "{input:?} => {actions:?}: {self:?}");
        }
    }

    fn check(&self, action: &Action) {
        let phases = &self.state.phases;
        match action {
            Action::Spawn(unit) => {
                assert!(self.state.stage < Stage::EndDriver, "nothing starts while the job ends");
                assert!(!self.running[*unit], "one that runs is not started");
                assert!(self.held[*unit], "somebody else may have got the ports of {unit}: {self:?}");
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
    let with_agent = restart(true, Exhausted::Ignore);
    let mut both: Vec<Rule> = rules(with_agent, ReadyWhen::Started).to_vec();
    both[AGENT].on_exit = restart(false, Exhausted::Stop);
    for (rules, seen) in [
        (rules(OnExit::Stop, ReadyWhen::Probed), Seen::Orders),
        (rules(OnExit::Ignore, ReadyWhen::Probed), Seen::Orders),
        (rules(OnExit::Stop, ReadyWhen::Done), Seen::Orders),
        (rules(OnExit::Ignore, ReadyWhen::Started), Seen::Orders),
        (rules(with_agent, ReadyWhen::Probed), Seen::Orders),
        (rules(restart(false, Exhausted::Stop), ReadyWhen::Done), Seen::Orders),
        (rules(OnExit::Stop, ReadyWhen::Probed), Seen::GivenUp),
        (rules(with_agent, ReadyWhen::Probed), Seen::GivenUp),
        (both.into(), Seen::GivenUp),
    ] {
        let first = World::new(rules, seen).happens(&Input::Begin);
        let mut known: BTreeMap<String, usize> = BTreeMap::from([(first.key(), 0)]);
        let mut worlds = vec![first];
        let mut came_from: Vec<Vec<usize>> = vec![Vec::new()];
        let mut current = 0;
        while current < worlds.len() {
            let world = worlds[current].clone();
            if !world.finished {
                for input in world.possible() {
                    let after = world.happens(&input);
                    let next = worlds.len();
                    let index = *known.entry(after.key()).or_insert(next);
                    if index == next {
                        worlds.push(after);
                        came_from.push(Vec::new());
                    }
                    came_from[index].push(current);
                }
            }
            current += 1;
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
