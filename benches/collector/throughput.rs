//! How many spans a collector takes on one core, with nothing lost, and its memory meanwhile.

use std::time::Instant;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::bed::{Load, Outlets, Pipelines, Program, Protocol, Requests, Running, Sink};
use crate::options::Options;
use crate::statistics::Series;
use crate::table::{Goal, Row, Table};

const COLLECTOR_CORE: usize = 0;
const SENDER_CORE: usize = 1;

/// What the repetitions of one program gave.
#[derive(Default)]
struct Samples {
    /// Thousand spans a second, from the first sent to the last batch but one at the sink.
    rate: Series,
    /// Peak resident memory in MB.
    memory: Series,
    refusals: u64,
}

/// The collector on one core, sender and sink on the other.
pub fn measure(options: &Options, table: &mut Table) {
    let programs = options.programs(&[Program::Gymrun, Program::Otelcol]);
    let Some(all) = confine() else {
        table.note("Throughput on one core was not measured: there is no second core for the sender.");
        return;
    };
    let requests = Requests::make();
    let mut samples: Vec<Samples> = programs.iter().map(|_| Samples::default()).collect();
    for repetition in 1..=options.repetitions() {
        for (program, samples) in programs.iter().zip(&mut samples) {
            once(*program, &requests, options.requests(), samples);
            eprintln!("{repetition}: one core, {}: {:.0} thousand spans/s", program.name(), samples.rate.newest());
        }
    }
    sched_setaffinity(Pid::from_raw(0), &all).expect("the cores as before");
    let row = |name: &str, goal, of: fn(&Samples) -> &Series| Row {
        name: name.into(),
        digits: 1,
        measured: programs.iter().copied().zip(samples.iter().map(|samples| of(samples).clone())).collect(),
        goal,
        floor: None,
    };
    let goal = Goal::AtLeast(Program::Otelcol, 4.0);
    table.add(row("thousand spans/s on one core, full pipelines, OTLP/HTTP", goal, |samples| &samples.rate));
    let goal = Goal::AtMost(&[(Program::Otelcol, 0.125)]);
    table.add(row("peak resident MB under that load", goal, |samples| &samples.memory));
    for (program, samples) in programs.iter().zip(&samples) {
        table.note(format!(
            "One core, {}: {} requests were refused and sent again; none was lost.",
            program.name(),
            samples.refusals
        ));
    }
}

fn once(program: Program, requests: &Requests, count: u64, samples: &mut Samples) {
    let sink = Sink::start();
    let mut running = Running::start(program, Pipelines::Full, sink.port, Some(COLLECTOR_CORE));
    let begin = Instant::now();
    let sent = Load::fast(requests, Protocol::Http, count).send(running.ports);
    Outlets::new(&sink, &running).expect_all(sent.spans);
    // The last batch is not full, as a rule, and waits for its timeout with nothing to do: that is no throughput.
    let totals = sink.totals();
    let until_last = || (totals.spans, totals.newest.expect("spans came"));
    let (spans, until) = totals.before_newest.unwrap_or_else(until_last);
    samples.rate.push(spans as f64 / until.duration_since(begin).as_secs_f64() / 1e3);
    samples.memory.push(running.memory().peak as f64 / 1e6);
    samples.refusals += sent.refusals;
    running.stop();
}

/// Puts this thread, and those that it starts, on the sender's core; the cores it had before.
fn confine() -> Option<CpuSet> {
    let before = sched_getaffinity(Pid::from_raw(0)).ok()?;
    let both = [COLLECTOR_CORE, SENDER_CORE].map(|core| before.is_set(core).unwrap_or(false));
    let mut one = CpuSet::new();
    one.set(SENDER_CORE).ok()?;
    (both == [true, true] && sched_setaffinity(Pid::from_raw(0), &one).is_ok()).then_some(before)
}
