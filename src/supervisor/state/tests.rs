//! The table, walked along the stories that matter, and explored whole for what must always hold.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;

use super::{State, step};
use crate::events::ExitStatus;
use crate::plan::{Exhausted, Kind, OnExit, RestartPolicy};
use crate::supervisor::machine::{Action, Input, Phase, ReadyWhen, Rule, Stage, UnitId};

const COLLECTOR: UnitId = 0;
const MODEL: UnitId = 1;
const AGENT: UnitId = 2;
const DRIVER: UnitId = 3;

fn exit(code: i32) -> ExitStatus {
    ExitStatus { code: Some(code), signal: None }
}

fn restart(also_dependants: bool, exhausted: Exhausted) -> OnExit {
    OnExit::Restart(RestartPolicy {
        limit: 1,
        window_seconds: 60.0,
        backoff_seconds: 1.0,
        backoff_max_seconds: 1.0,
        also_dependants,
        exhausted,
    })
}

/// A collector, a model that is asked if it is alive, an agent that needs it, and a driver.
fn rules(on_exit: OnExit, model: ReadyWhen) -> Arc<[Rule]> {
    let rule = |name: &str, kind, needs: &[UnitId], needed_by: &[UnitId], ready| Rule {
        name: name.into(),
        kind,
        needs: needs.to_vec(),
        needed_by: needed_by.to_vec(),
        ready,
        liveness: name == "model",
        // One process that is started again is enough to see.
        on_exit: if matches!(on_exit, OnExit::Restart(_)) && name != "model" { OnExit::Stop } else { on_exit },
    };
    [
        rule("collector", Kind::Collector, &[], &[], ReadyWhen::Probed),
        rule("model", Kind::Service, &[], &[AGENT], model),
        rule("agent", Kind::Server, &[MODEL], &[], ReadyWhen::Probed),
        rule("driver", Kind::Driver, &[], &[], ReadyWhen::Started),
    ]
    .into()
}

/// One line for each input: the input, then what is done about it.
fn story(on_exit: OnExit, inputs: &[Input]) -> String {
    let mut state = State::new(rules(on_exit, ReadyWhen::Probed));
    let mut text = String::new();
    for input in inputs {
        let (next, actions) = step(&state, input);
        state = next;
        let actions: Vec<String> = actions.iter().map(|action| format!("{action:?}")).collect();
        let _ = writeln!(text, "{input:?} => {}", actions.join(", "));
    }
    let _ = write!(text, "{:?} {:?} {:?}", state.stage, state.cause, state.phases);
    // Shorter words for what is in every line.
    text.replace("ExitStatus { code: Some(", "exit(").replace("), signal: None }", ")")
}

fn all_up() -> Vec<Input> {
    vec![
        Input::Begin,
        Input::Spawned(COLLECTOR),
        Input::ProbeGood(COLLECTOR),
        Input::Spawned(MODEL),
        Input::ProbeGood(MODEL),
        Input::Spawned(AGENT),
        Input::ProbeGood(AGENT),
        Input::Spawned(DRIVER),
    ]
}

#[test]
fn a_job_that_goes_well() {
    let mut inputs = all_up();
    inputs.extend([
        Input::Exited(DRIVER, exit(0)),
        Input::Gone(DRIVER),
        Input::Scraped,
        Input::Sampled,
        Input::Exited(AGENT, exit(0)),
        Input::Gone(AGENT),
        Input::Exited(MODEL, exit(143)),
        Input::Gone(MODEL),
        Input::Exited(COLLECTOR, exit(0)),
        Input::Gone(COLLECTOR),
    ]);
    insta::assert_snapshot!(story(OnExit::Stop, &inputs), @r#"
    Begin => Spawn(0)
    Spawned(0) => Await(0)
    ProbeGood(0) => Ready(0), Spawn(1)
    Spawned(1) => Await(1)
    ProbeGood(1) => Ready(1), Guard(1), Spawn(2)
    Spawned(2) => Await(2)
    ProbeGood(2) => Ready(2), Serve, Spawn(3)
    Spawned(3) => Ready(3)
    Exited(3, exit(0)) => Ended { unit: 3, status: exit(0), expected: true, was_ready: true }, BeginStop { reason: DriverEnded, hurried: false }, Stop(3)
    Gone(3) => Scrape
    Scraped => Sample
    Sampled => Stop(2)
    Exited(2, exit(0)) => Ended { unit: 2, status: exit(0), expected: true, was_ready: true }
    Gone(2) => Stop(1)
    Exited(1, exit(143)) => Ended { unit: 1, status: exit(143), expected: true, was_ready: true }
    Gone(1) => Stop(0)
    Exited(0, exit(0)) => Ended { unit: 0, status: exit(0), expected: true, was_ready: true }
    Gone(0) => Finish
    Over Some(DriverEnded(exit(0))) [Gone, Gone, Gone, Gone]
    "#);
}

#[test]
fn a_need_that_fails_skips_the_rest() {
    let mut inputs = all_up();
    inputs.truncate(4);
    inputs.extend([Input::Exited(MODEL, exit(1)), Input::Gone(MODEL), Input::Gone(COLLECTOR)]);
    insta::assert_snapshot!(story(OnExit::Stop, &inputs), @r#"
    Begin => Spawn(0)
    Spawned(0) => Await(0)
    ProbeGood(0) => Ready(0), Spawn(1)
    Spawned(1) => Await(1)
    Exited(1, exit(1)) => Ended { unit: 1, status: exit(1), expected: false, was_ready: false }, Forget(1), BeginStop { reason: StartFailed { process: "model" }, hurried: true }, Skip { unit: 2, because: 1 }, Skip { unit: 3, because: 1 }, Stop(1)
    Gone(1) => Stop(0)
    Gone(0) => Finish
    Over Some(NotReady(1)) [Gone, Gone, Skipped, Skipped]
    "#);
}

#[test]
fn a_death_that_is_ignored_and_a_signal_twice() {
    let mut inputs = all_up();
    inputs.extend([Input::Exited(MODEL, exit(1)), Input::Told(15), Input::Told(2)]);
    insta::assert_snapshot!(story(OnExit::Ignore, &inputs), @r#"
    Begin => Spawn(0)
    Spawned(0) => Await(0)
    ProbeGood(0) => Ready(0), Spawn(1)
    Spawned(1) => Await(1)
    ProbeGood(1) => Ready(1), Guard(1), Spawn(2)
    Spawned(2) => Await(2)
    ProbeGood(2) => Ready(2), Serve, Spawn(3)
    Spawned(3) => Ready(3)
    Exited(1, exit(1)) => Ended { unit: 1, status: exit(1), expected: false, was_ready: true }, Forget(1), GoOnWithout(1)
    Told(15) => BeginStop { reason: Signal { number: 15 }, hurried: true }, Stop(3)
    Told(2) => KillAll, Stop(0), Stop(1), Stop(2)
    EndAll Some(Told(15)) [Stopping, Stopping, Stopping, Stopping]
    "#);
}

#[test]
fn a_start_that_hangs_is_given_up_and_stopped_if_it_comes_after_all() {
    let mut inputs = all_up();
    inputs.truncate(3);
    inputs.extend([
        Input::Told(15),
        Input::NotStarted(MODEL),
        Input::Spawned(MODEL),
        Input::Gone(COLLECTOR),
        Input::Gone(MODEL),
    ]);
    insta::assert_snapshot!(story(OnExit::Stop, &inputs), @r#"
    Begin => Spawn(0)
    Spawned(0) => Await(0)
    ProbeGood(0) => Ready(0), Spawn(1)
    Told(15) => BeginStop { reason: Signal { number: 15 }, hurried: true }, LimitStart(1)
    NotStarted(1) => Stop(0)
    Spawned(1) => Stop(1)
    Gone(0) => 
    Gone(1) => Finish
    Over Some(Told(15)) [Gone, Gone, Waiting, Waiting]
    "#);
}

#[test]
fn what_needs_it_is_stopped_before_and_started_again_after_it() {
    let mut inputs = all_up();
    inputs.extend([
        Input::Hung(MODEL),
        Input::Exited(AGENT, exit(0)),
        Input::Gone(AGENT),
        Input::Exited(MODEL, exit(143)),
        Input::Gone(MODEL),
        Input::Rested(MODEL),
        Input::Spawned(MODEL),
        Input::ProbeGood(MODEL),
        Input::Spawned(AGENT),
        Input::ProbeGood(AGENT),
        Input::Exhausted(MODEL),
        Input::Exited(MODEL, exit(1)),
    ]);
    insta::assert_snapshot!(story(restart(true, Exhausted::Ignore), &inputs), @r#"
    Begin => Spawn(0)
    Spawned(0) => Await(0)
    ProbeGood(0) => Ready(0), Spawn(1)
    Spawned(1) => Await(1)
    ProbeGood(1) => Ready(1), Guard(1), Spawn(2)
    Spawned(2) => Await(2)
    ProbeGood(2) => Ready(2), Serve, Spawn(3)
    Spawned(3) => Ready(3)
    Hung(1) => Hung(1), Restart(1), Stop(2)
    Exited(2, exit(0)) => Ended { unit: 2, status: exit(0), expected: true, was_ready: true }
    Gone(2) => Stop(1)
    Exited(1, exit(143)) => Ended { unit: 1, status: exit(143), expected: true, was_ready: true }
    Gone(1) => Rest(1)
    Rested(1) => Spawn(1)
    Spawned(1) => Await(1)
    ProbeGood(1) => Ready(1), Guard(1), Spawn(2)
    Spawned(2) => Await(2)
    ProbeGood(2) => Ready(2)
    Exhausted(1) => 
    Exited(1, exit(1)) => Ended { unit: 1, status: exit(1), expected: false, was_ready: true }, Forget(1), GoOnWithout(1)
    Serve None [Ready, Dead, Ready, Ready]
    "#);
}

#[test]
fn a_death_restarts_the_process_alone_and_one_too_many_ends_the_job() {
    let mut inputs = all_up();
    inputs.extend([
        Input::Exited(MODEL, exit(1)),
        Input::Gone(MODEL),
        Input::Rested(MODEL),
        Input::Spawned(MODEL),
        Input::ProbeGood(MODEL),
        Input::Exhausted(MODEL),
        Input::Exited(MODEL, exit(1)),
    ]);
    insta::assert_snapshot!(story(restart(false, Exhausted::Stop), &inputs), @r#"
    Begin => Spawn(0)
    Spawned(0) => Await(0)
    ProbeGood(0) => Ready(0), Spawn(1)
    Spawned(1) => Await(1)
    ProbeGood(1) => Ready(1), Guard(1), Spawn(2)
    Spawned(2) => Await(2)
    ProbeGood(2) => Ready(2), Serve, Spawn(3)
    Spawned(3) => Ready(3)
    Exited(1, exit(1)) => Ended { unit: 1, status: exit(1), expected: false, was_ready: true }, Forget(1), Restart(1), Stop(1)
    Gone(1) => Rest(1)
    Rested(1) => Spawn(1)
    Spawned(1) => Await(1)
    ProbeGood(1) => Ready(1), Guard(1)
    Exhausted(1) => 
    Exited(1, exit(1)) => Ended { unit: 1, status: exit(1), expected: false, was_ready: true }, Forget(1), BeginStop { reason: ProcessDied { process: "model" }, hurried: true }, Stop(3)
    EndDriver Some(Died(1)) [Ready, Dead, Ready, Stopping]
    "#);
}

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
