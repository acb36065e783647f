//! Real jobs of real processes, seen from outside: start, readiness, ends of every kind, order, and that nothing is left.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    clippy::disallowed_methods,
    reason = "a runner of cases and a program that misbehaves: printing and exiting is what they are for"
)]
#![allow(
    clippy::needless_for_each,
    clippy::default_trait_access,
    clippy::semicolon_if_nothing_returned,
    reason = "tests"
)]

mod answers;
mod cases;
mod child;
mod child_forks;
mod child_memory;
mod clock;
mod collector;
mod containment;
mod cpu;
mod deaths;
mod disk;
mod end;
mod given_up;
mod guard;
#[path = "../harness/mod.rs"]
mod harness;
mod health;
mod job;
mod jobs;
mod listen;
mod logs;
mod memory;
mod output;
mod plan;
mod ports;
mod restart;
mod start;
mod storm;
mod trees;

use std::process::ExitCode;

const CASES: &[&[cases::Case]] = &[
    start::CASES,
    ports::CASES,
    answers::CASES,
    clock::CASES,
    health::CASES,
    end::CASES,
    trees::CASES,
    containment::CASES,
    guard::CASES,
    memory::CASES,
    cpu::CASES,
    output::CASES,
    logs::CASES,
    disk::CASES,
    collector::CASES,
    restart::CASES,
    given_up::CASES,
    deaths::CASES,
    storm::CASES,
];

/// The same executable is the runner of the cases, the children of their jobs (`child STEP...`), and the gymrun under test
/// (`run JOB`), each in a process of its own.
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("child") => child::run(&arguments[1..]),
        Some("run") => job::run(std::path::Path::new(&arguments[1])),
        _ => cases::run(&CASES.concat(), &arguments),
    }
}
