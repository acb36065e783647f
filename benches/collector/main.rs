//! The embedded collector beside its peers: one command, one table.
//!
//! `cargo bench --bench collector` measures gymrun's collector, otelcol (`GYMRUN_TEST_OTELCOL`) and Rotel's agent
//! (`GYMRUN_BENCH_ROTEL`) in turns, with the same input, and prints Markdown. `--help` has the options.
//!
//! Each measurement starts a collector as a process of its own, sends from this process, receives in this process, and
//! reads the collector's CPU clock and memory from outside. Every repetition measures all programs one after the other,
//! so what the host does meanwhile hits all of them. `docs/benchmarks.md` says what the numbers mean.

#![expect(clippy::disallowed_methods, reason = "the bench starts the programs that it measures")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the bench prints its table, and how far it is")]

mod bed;
mod cost;
mod discard;
mod options;
mod statistics;
mod table;

use clap::Parser as _;

use options::{Action, Options, Part};
use table::Table;

fn main() {
    let options = Options::parse();
    match options.action {
        Some(Action::Discard { port }) => discard::serve(port),
        None => measure(&options),
    }
}

fn measure(options: &Options) {
    let mut table = Table::begin(options);
    if options.has(Part::Cost) {
        cost::measure(options, &mut table);
    }
    table.print();
}
