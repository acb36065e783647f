//! Jobs as they go, line by line.

use std::fmt::Write as _;

use super::super::{State, step};
use super::{AGENT, COLLECTOR, DRIVER, MODEL, exit, restart, rules};
use crate::plan::{Exhausted, OnExit};
use crate::supervisor::machine::{Input, ReadyWhen};

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
    Exited(3, exit(0)) => Ended { unit: 3, status: exit(0), expected: true, asked: false, was_ready: true }, BeginStop { reason: DriverEnded, hurried: false }, Stop(3)
    Gone(3) => Scrape
    Scraped => Sample
    Sampled => Stop(2)
    Exited(2, exit(0)) => Ended { unit: 2, status: exit(0), expected: true, asked: true, was_ready: true }
    Gone(2) => Stop(1)
    Exited(1, exit(143)) => Ended { unit: 1, status: exit(143), expected: true, asked: true, was_ready: true }
    Gone(1) => Stop(0)
    Exited(0, exit(0)) => Ended { unit: 0, status: exit(0), expected: true, asked: true, was_ready: true }
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
    Exited(1, exit(1)) => Ended { unit: 1, status: exit(1), expected: false, asked: false, was_ready: false }, Forget(1), BeginStop { reason: StartFailed { process: "model" }, hurried: true }, Skip { unit: 2, because: 1 }, Skip { unit: 3, because: 1 }, Stop(1)
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
    Exited(1, exit(1)) => Ended { unit: 1, status: exit(1), expected: false, asked: false, was_ready: true }, Forget(1), GoOnWithout(1)
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
        Input::Restarts(MODEL, false),
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
    Exited(2, exit(0)) => Ended { unit: 2, status: exit(0), expected: true, asked: true, was_ready: true }
    Gone(2) => Hold(2), Stop(1)
    Exited(1, exit(143)) => Ended { unit: 1, status: exit(143), expected: true, asked: true, was_ready: true }
    Gone(1) => Hold(1), Rest(1)
    Rested(1) => Spawn(1)
    Spawned(1) => Await(1)
    ProbeGood(1) => Ready(1), Guard(1), Spawn(2)
    Spawned(2) => Await(2)
    ProbeGood(2) => Ready(2)
    Restarts(1, false) => 
    Exited(1, exit(1)) => Ended { unit: 1, status: exit(1), expected: false, asked: false, was_ready: true }, Forget(1), GoOnWithout(1)
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
        Input::Restarts(MODEL, false),
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
    Exited(1, exit(1)) => Ended { unit: 1, status: exit(1), expected: false, asked: false, was_ready: true }, Forget(1), Restart(1), Stop(1)
    Gone(1) => Hold(1), Rest(1)
    Rested(1) => Spawn(1)
    Spawned(1) => Await(1)
    ProbeGood(1) => Ready(1), Guard(1)
    Restarts(1, false) => 
    Exited(1, exit(1)) => Ended { unit: 1, status: exit(1), expected: false, asked: false, was_ready: true }, Forget(1), BeginStop { reason: ProcessDied { process: "model" }, hurried: true }, Stop(3)
    EndDriver Some(Died(1)) [Ready, Dead, Ready, Stopping]
    "#);
}

#[test]
fn an_end_after_giving_up_is_one_that_was_asked_for() {
    let mut inputs = all_up();
    inputs.extend([
        Input::Exited(DRIVER, exit(0)),
        Input::Gone(DRIVER),
        Input::Scraped,
        Input::Sampled,
        Input::GivenUp(AGENT),
        Input::Exited(AGENT, exit(137)),
        Input::Exited(MODEL, exit(0)),
    ]);
    let story = story(OnExit::Stop, &inputs);
    let end: Vec<&str> = story.lines().skip(12).collect();
    insta::assert_snapshot!(end.join("\n"), @r#"
    GivenUp(2) => Stop(1)
    Exited(2, exit(137)) => Ended { unit: 2, status: exit(137), expected: true, asked: true, was_ready: true }
    Exited(1, exit(0)) => Ended { unit: 1, status: exit(0), expected: true, asked: true, was_ready: true }
    EndUnits Some(DriverEnded(exit(0))) [Ready, Stopping, Gone, Gone]
    "#);
}
