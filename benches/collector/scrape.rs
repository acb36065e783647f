//! What a scrape of a large page each second costs.

use std::time::{Duration, Instant};

use crate::bed::{Pipelines, Program, Running, Sink};
use crate::floors;
use crate::options::Options;
use crate::page::{SERIES, Target, page};
use crate::statistics::Series;
use crate::table::{Goal, Row, Table};

/// Scrapes before the first that counts: series are new in them.
const WARM_UP: u64 = 3;
/// Scrapes of one repetition.
const SCRAPES: u64 = 4;
const PATIENCE: Duration = Duration::from_mins(1);

struct Side {
    program: Program,
    running: Running,
    target: Target,
    sink: Sink,
    cpu: Series,
}

/// All programs beside each other, each with a target of its own.
pub fn measure(options: &Options, table: &mut Table) {
    let programs = options.programs(&[Program::Gymrun, Program::Otelcol]);
    let start = |program: &Program| {
        let (target, sink) = (Target::start(), Sink::start());
        let running = Running::start(*program, Pipelines::Scraping(target.port), sink.port, None);
        Side { program: *program, running, target, sink, cpu: Series::default() }
    };
    let mut sides: Vec<Side> = programs.iter().map(start).collect();
    for side in &sides {
        wait(side, WARM_UP);
    }
    for repetition in 1..=options.repetitions() {
        let before: Vec<_> = sides.iter().map(|side| (side.target.served(), side.running.cpu())).collect();
        for (side, (served, _)) in sides.iter().zip(&before) {
            wait(side, served + SCRAPES);
        }
        for (side, (served, cpu)) in sides.iter_mut().zip(before) {
            let scrapes = side.target.served() - served;
            side.cpu.push(side.running.cpu_since(cpu).as_secs_f64() * 1e3 / scrapes as f64);
            eprintln!("{repetition}: scraping, {}: {:.2} ms", side.program.name(), side.cpu.newest());
        }
    }
    let ours = sides.iter().find(|side| side.program == Program::Gymrun);
    let floor = ours.map(|side| floors::scrape(&page(1), &side.sink.metrics(), &side.running.path("floor")));
    for side in &mut sides {
        let written = std::fs::metadata(side.running.path("metrics.jsonl")).map_or(0, |data| data.len());
        assert!(written > 0 && !side.sink.metrics().is_empty(), "{} wrote or sent nothing", side.program.name());
        side.running.stop();
    }
    table.add(Row {
        name: format!("CPU ms per scrape of {SERIES} series, full pipelines"),
        digits: 2,
        measured: sides.into_iter().map(|side| (side.program, side.cpu)).collect(),
        goal: Goal::AtMost(&[(Program::Otelcol, 1.0 / 6.0)]),
        floor,
    });
}

/// Waits until so many pages were asked for, and half a second more: the points of the last one are out then.
fn wait(side: &Side, pages: u64) {
    let begin = Instant::now();
    while side.target.served() < pages {
        assert!(begin.elapsed() < PATIENCE, "{} does not scrape: {}", side.program.name(), side.running.log());
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(500));
}
