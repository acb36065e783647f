//! What a collector costs that has nothing to do.

use std::time::Duration;

use crate::bed::{Pipelines, Program, Running, Sink};
use crate::options::Options;
use crate::statistics::Series;
use crate::table::{Goal, Row, Table};

struct Side {
    program: Program,
    running: Running,
    cpu: Series,
    switches: Series,
    resident: Series,
    anonymous: Series,
}

/// All programs beside each other, without anything to scrape or receive.
pub fn measure(options: &Options, table: &mut Table) {
    let sink = Sink::start();
    let start = |program: Program| {
        let running = Running::start(program, Pipelines::Full, sink.port, None);
        let [cpu, switches, resident, anonymous] = [(); 4].map(|()| Series::default());
        Side { program, running, cpu, switches, resident, anonymous }
    };
    let programs = options.programs(&[Program::Gymrun, Program::Otelcol, Program::Rotel]);
    let mut sides: Vec<Side> = programs.into_iter().map(start).collect();
    let seconds = options.idle_seconds();
    for repetition in 1..=options.repetitions() {
        let before: Vec<_> = sides.iter().map(|side| (side.running.cpu(), side.running.switches())).collect();
        std::thread::sleep(Duration::from_secs(seconds));
        for (side, (cpu, switches)) in sides.iter_mut().zip(before) {
            let memory = side.running.memory();
            side.cpu.push(side.running.cpu_since(cpu).as_secs_f64() * 1e3);
            // A thread that ended takes its count with it.
            side.switches.push(side.running.switches().saturating_sub(switches) as f64);
            side.resident.push(memory.resident as f64 / f64::from(1 << 20));
            side.anonymous.push(memory.anonymous as f64 / f64::from(1 << 20));
            eprintln!("{repetition}: idle, {}: {:.2} ms", side.program.name(), side.cpu.newest());
        }
    }
    let row = |name: String, goal, of: fn(&Side) -> &Series| Row {
        name,
        digits: 1,
        measured: sides.iter().map(|side| (side.program, of(side).clone())).collect(),
        goal,
        floor: None,
    };
    table.add(row("idle: resident MiB".into(), Goal::Value(12.0), |side| &side.resident));
    table.add(row("idle: of that anonymous MiB".into(), Goal::None, |side| &side.anonymous));
    table.add(row(format!("idle: CPU ms in {seconds} s"), Goal::Value(5.0), |side| &side.cpu));
    table.add(row(format!("idle: context switches in {seconds} s"), Goal::None, |side| &side.switches));
    for side in &mut sides {
        side.running.stop();
    }
}
