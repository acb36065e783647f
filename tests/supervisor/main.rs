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

mod collector;
mod end;
mod jobs;
mod output;
mod ports;
mod start;
#[path = "../support/mod.rs"]
mod support;
mod trees;

use std::process::ExitCode;

fn main() -> ExitCode {
    support::main(&[start::CASES, ports::CASES, end::CASES, trees::CASES, output::CASES, collector::CASES].concat())
}
