//! The sampler beside its peers: one command, one table.
//!
//! `cargo bench --bench sampler` builds trees of processes and has them sampled in turns by gymrun's own code, by Python
//! programs (`walk.py`: the standard library alone, and psutil where the interpreter has it) and by the floor: nothing but
//! the kernel's reads on descriptors that were opened before. It prints Markdown. `GYMRUN_BENCH_PYTHON` names the
//! interpreter [default: python3]; the Python servers import yaml and pydantic where it has them. `--help` has the options.
//!
//! CPU is that of the sampling thread or process itself. What happens on the machine meanwhile hits all alike, since every
//! repetition measures all of them.

#![expect(clippy::disallowed_methods, reason = "the bench starts the programs that it measures")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the bench prints its table, and how far it is")]

#[path = "../collector/choice.rs"]
mod choice;
mod cost;
mod job;
mod options;
mod python;
mod samplers;
mod stall;
#[path = "../collector/statistics.rs"]
mod statistics;
mod table;
mod tree;

use clap::Parser as _;

use options::{Action, Options, Part};
use table::Table;

fn main() {
    let options = Options::parse();
    match options.action {
        Some(Action::Node(node)) => tree::live(&node),
        Some(Action::Target { mebibytes }) => stall::live(mebibytes),
        None => measure(&options),
    }
}

fn measure(options: &Options) {
    let mut table = Table::default();
    table.note(python::describe());
    for part in [Part::Cost, Part::Scale, Part::Job, Part::Stall] {
        if options.parts.has(&part) {
            match part {
                Part::Cost => cost::measure(options, &mut table),
                Part::Scale => cost::measure_scale(options, &mut table),
                Part::Job => job::measure(options, &mut table),
                Part::Stall => stall::measure(options, &mut table),
            }
        }
    }
    table.print();
}
