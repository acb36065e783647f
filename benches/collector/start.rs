//! How long a collector takes to be ready, and to be gone.

use crate::bed::{Pipelines, Program, Running, Sink};
use crate::options::Options;
use crate::statistics::Series;
use crate::table::{Goal, Row, Table};

/// Starts and stops for each repetition.
const ROUNDS: usize = 3;

/// Each program in turn, with the full pipelines and nothing in them.
pub fn measure(options: &Options, table: &mut Table) {
    let sink = Sink::start();
    let programs = options.programs(&[Program::Gymrun, Program::Otelcol]);
    let mut series: Vec<[Series; 3]> = programs.iter().map(|_| Default::default()).collect();
    for _ in 0..options.repetitions() * ROUNDS {
        for (program, [start, cpu, stop]) in programs.iter().zip(&mut series) {
            let mut running = Running::start(*program, Pipelines::Full, sink.port, None);
            cpu.push(running.cpu().as_secs_f64() * 1e3);
            start.push(running.started_in.as_secs_f64() * 1e3);
            stop.push(running.stop().as_secs_f64() * 1e3);
        }
    }
    let row = |name: &str, index: usize, goal| Row {
        name: name.into(),
        digits: 1,
        measured: programs.iter().copied().zip(series.iter().map(|series| series[index].clone())).collect(),
        goal,
        floor: None,
    };
    table.add(row("exec to the first 200 of the health check, ms", 0, Goal::AtMost(&[(Program::Otelcol, 0.2)])));
    table.add(row("CPU until then, ms", 1, Goal::None));
    table.add(row("SIGTERM to gone with nothing queued, ms", 2, Goal::None));
}
