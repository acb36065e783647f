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
mod choice;
mod cost;
mod discard;
mod floors;
mod idle;
mod options;
mod page;
mod scrape;
mod soak;
mod start;
mod statistics;
mod table;
mod throughput;

use std::time::Duration;

use clap::Parser as _;

use options::{Action, Options, PARTS};
use table::Table;

fn main() {
    let options = Options::parse();
    match options.action {
        Some(Action::Discard { port }) => discard::serve(port),
        Some(Action::Soak { seconds }) => soak(Duration::from_secs(seconds)),
        None => measure(&options),
    }
}

fn measure(options: &Options) {
    let mut table = Table::begin(options);
    for part in PARTS {
        if options.parts.has(&part) {
            part.measure(options, &mut table);
        }
    }
    table.print();
}

fn soak(length: Duration) {
    let soaked = soak::run(length);
    let (early, late) = soaked.memory();
    println!(
        "{} spans sent, at the sink and in the file; nothing lost, {} requests refused for a while",
        soaked.spans, soaked.refusals
    );
    println!(
        "{:.0} spans/s for {} s; the most it took was {:.0} spans/s",
        soaked.rate,
        length.as_secs(),
        soaked.maximum
    );
    println!(
        "resident memory: at most {} MiB in the second quarter, at least {} MiB in the last",
        early >> 20,
        late >> 20
    );
}
