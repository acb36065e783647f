//! What a million spans cost, and how much memory that takes.

use std::time::Duration;

use crate::bed::{Load, Outlets, Pipelines, Program, Protocol, Requests, Running, Sink};
use crate::floors;
use crate::options::Options;
use crate::statistics::Series;
use crate::table::{Goal, Row, Table};

/// One way of sending through one set of pipelines.
struct Case {
    name: &'static str,
    pipelines: Pipelines,
    protocol: Protocol,
    programs: &'static [Program],
    goal: Goal,
}

const CASES: [Case; 4] = [
    Case {
        name: "full pipelines, OTLP/HTTP",
        pipelines: Pipelines::Full,
        protocol: Protocol::Http,
        programs: &[Program::Gymrun, Program::Otelcol],
        goal: Goal::AtMost(&[(Program::Otelcol, 0.2)]),
    },
    Case {
        name: "full pipelines, OTLP/gRPC",
        pipelines: Pipelines::Full,
        protocol: Protocol::Grpc,
        programs: &[Program::Gymrun, Program::Otelcol],
        goal: Goal::None,
    },
    Case {
        name: "into nothing, OTLP/HTTP",
        pipelines: Pipelines::Null,
        protocol: Protocol::Http,
        programs: &[Program::Gymrun, Program::Otelcol, Program::Rotel, Program::Discard],
        goal: Goal::AtMost(&[(Program::Rotel, 0.3), (Program::Otelcol, 0.2)]),
    },
    Case {
        name: "into nothing, OTLP/gRPC",
        pipelines: Pipelines::Null,
        protocol: Protocol::Grpc,
        programs: &[Program::Gymrun, Program::Otelcol, Program::Rotel],
        goal: Goal::None,
    },
];

/// What one repetition gave.
struct Sample {
    /// CPU seconds for a million spans, from before the first to when the last was out.
    cpu: f64,
    /// Peak resident memory in MB.
    memory: f64,
    /// Bytes a span at the sink: compressed, decompressed.
    sent: Option<[f64; 2]>,
    refusals: u64,
}

/// What the repetitions of one program gave.
#[derive(Default)]
struct Samples {
    cpu: Series,
    memory: Series,
    sent: Option<[f64; 2]>,
    refusals: u64,
}

/// All cases with all programs, in turns.
pub fn measure(options: &Options, table: &mut Table) {
    let requests = Requests::make();
    let programs = CASES.map(|case| options.programs(case.programs));
    let mut samples =
        programs.each_ref().map(|programs| programs.iter().map(|_| Samples::default()).collect::<Vec<_>>());
    for repetition in 1..=options.repetitions() {
        for ((case, programs), samples) in CASES.iter().zip(&programs).zip(&mut samples) {
            for (program, samples) in programs.iter().zip(samples) {
                let sample = once(*program, case, &requests, options.requests());
                eprintln!(
                    "{repetition}: {}, {}: {:.2} s, {:.1} MB",
                    case.name,
                    program.name(),
                    sample.cpu,
                    sample.memory
                );
                samples.cpu.push(sample.cpu);
                samples.memory.push(sample.memory);
                samples.sent = sample.sent;
                samples.refusals += sample.refusals;
            }
        }
    }
    let all = || CASES.iter().zip(&programs).zip(&samples);
    let rows = |of: fn(&Samples) -> &Series, name: &str, digits, goal: fn(&Case) -> Goal| {
        let row = |((case, programs), samples): ((&Case, &Vec<Program>), &Vec<Samples>)| Row {
            name: format!("{name}: {}", case.name),
            digits,
            measured: programs.iter().copied().zip(samples.iter().map(|samples| of(samples).clone())).collect(),
            goal: goal(case),
            floor: None,
        };
        all().map(row).collect::<Vec<_>>()
    };
    let mut cpu = rows(|samples| &samples.cpu, "CPU s per million spans", 2, |case| case.goal);
    add_floor(&mut cpu, &requests);
    let memory = rows(|samples| &samples.memory, "peak resident MB meanwhile", 1, |_| Goal::None);
    cpu.into_iter().chain(memory).for_each(|row| table.add(row));
    for ((case, programs), samples) in all() {
        for (program, samples) in programs.iter().zip(samples) {
            if let Some([bytes, plain]) = samples.sent {
                let level = if *program == Program::Gymrun { "level 1" } else { "its default level" };
                table.note(format!(
                    "{}, {}: every span arrived at the sink and in the file; {plain:.0} bytes a span, {bytes:.0} after gzip ({level}).",
                    case.name,
                    program.name()
                ));
            }
            if samples.refusals > 0 {
                table.note(format!(
                    "{}, {}: {} requests were refused and sent again.",
                    case.name,
                    program.name(),
                    samples.refusals
                ));
            }
        }
    }
}

/// The floor of the full pipelines: receive and drop, and one pass of what must be done.
fn add_floor(rows: &mut [Row], requests: &Requests) {
    let receive = rows.iter().find_map(|row| row.series(Program::Discard)).map_or(0.0, Series::median);
    let floor = receive + floors::spans(requests);
    for (row, case) in rows.iter_mut().zip(&CASES) {
        row.floor = (case.pipelines == Pipelines::Full).then_some(floor);
    }
}

fn once(program: Program, case: &Case, requests: &Requests, count: u64) -> Sample {
    let sink = Sink::start();
    let mut running = Running::start(program, case.pipelines, sink.port, None);
    let before = running.cpu();
    let sent = Load::fast(requests, case.protocol, count).send(running.ports);
    let full = case.pipelines == Pipelines::Full;
    if full {
        Outlets::new(&sink, &running).expect_all(sent.spans);
    }
    // Longer than the timeout of a batch, so that nothing waits any more.
    std::thread::sleep(Duration::from_millis(300));
    let cpu = running.cpu_since(before).as_secs_f64() * 1e6 / sent.spans as f64;
    let memory = running.memory().peak as f64 / 1e6;
    running.stop();
    let totals = sink.totals();
    let per_span = [totals.bytes, totals.plain_bytes].map(|bytes| bytes as f64 / sent.spans as f64);
    Sample { cpu, memory, sent: full.then_some(per_span), refusals: sent.refusals }
}
