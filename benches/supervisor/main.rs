//! gymrun's supervisor beside its peers: one command, tables in Markdown.
//!
//! `cargo bench --bench supervisor` measures gymrun, a bare loop of Rust's `Command` as the floor, bash, s6
//! (`GYMRUN_BENCH_S6`), and supervisord, honcho and circus of the venv of `GYMRUN_BENCH_PYTHON`; where supervisors are not
//! the peers, curl, cat, a C program and Python. `--help` has the options.
//!
//! Everything is measured from outside, in turns: each repetition measures all programs one after the other, so what the
//! host does meanwhile hits all of them. This process adopts what its peers leave behind, and so knows when all is gone.
//! `docs/benchmarks-supervisor.md` says what the numbers mean.

#![expect(clippy::disallowed_methods, reason = "the bench starts the programs that it measures")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the bench prints its tables, and how far it is")]

mod bed;
mod capture;
#[path = "../collector/choice.rs"]
mod choice;
mod idle;
mod options;
mod plan;
mod readiness;
mod roles;
mod scale;
mod start_stop;
#[path = "../collector/statistics.rs"]
#[allow(dead_code, reason = "the collector's bench uses the rest")]
mod statistics;
mod table;

use std::process::ExitCode;

use clap::Parser as _;

use options::{Options, PARTS};

fn main() -> ExitCode {
    // First of all, without a parser: one of the roles is a floor.
    if let Some(code) = roles::play() {
        return code;
    }
    let options = Options::parse();
    nix::sys::prctl::set_child_subreaper(true).expect("a kernel that has subreapers");
    let _sweep = bed::Sweep;
    let kit = bed::Kit::make();
    println!("Load average at the start: {}.", table::load_average());
    for part in PARTS {
        if options.parts.has(&part) {
            part.measure(&options, &kit);
        }
    }
    println!("\nLoad average at the end: {}.", table::load_average());
    ExitCode::SUCCESS
}
