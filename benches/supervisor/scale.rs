//! Whether the cost of a child stays the same however many there are.

use std::time::{Duration, Instant};

use crate::bed::{Fifo, Job, Kit, Running, Watched, cpu_of_children, cpu_of_children_since, scratch};
use crate::options::Options;
use crate::statistics::Series;
use crate::table::{Goal, Row, Table};

const COUNTS: [usize; 3] = [10, 100, 1000];
const INTERVAL: f64 = 0.5;

/// Of all children of one job, and per child.
#[derive(Default)]
struct Side {
    start: Series,
    start_cpu: Series,
    sample: Series,
    stop: Series,
    all: Series,
}

/// 10, 100 and 1000 children, each sampled twice a second, resident and proportional memory.
pub fn measure(options: &Options, kit: &Kit) {
    let mut sides: [Side; 3] = Default::default();
    for repetition in 1..=options.repetitions() {
        for (count, side) in COUNTS.into_iter().zip(&mut sides) {
            once(options, kit, count, side);
            eprintln!("{repetition}: scale, {count}: {:.0} us", side.start.newest());
        }
    }
    let columns = COUNTS.map(|count| format!("{count} children"));
    let mut table = Table::new("Cost of one child, microseconds", columns.into_iter().rev());
    let mut row = |name: &str, of: fn(&Side) -> &Series| {
        let cells = sides.iter().rev().map(|side| Some(of(side).clone())).collect();
        let goals = vec![Goal::times(1.3, of(&sides[1]).median(), "that of 100")];
        table.add(Row { name: name.into(), digits: 0, cells, goals });
    };
    row("exec to all started", |side| &side.start);
    row("gymrun's CPU until then", |side| &side.start_cpu);
    row("gymrun's CPU for one sample", |side| &side.sample);
    row("SIGTERM to all gone", |side| &side.stop);
    row("CPU of all from exec to gone, children included", |side| &side.all);
    table.note(format!("{} repetitions; a sample each {INTERVAL} s.", options.repetitions()));
    table.print();
}

fn once(options: &Options, kit: &Kit, count: usize, side: &mut Side) {
    let all_before = cpu_of_children();
    let folder = scratch();
    let mut fifo = Fifo::make(folder.path().join("started"));
    let mut job = Job::of_children(kit, count, fifo.path());
    job.sample_seconds = Some(INTERVAL);
    job.proportional = true;
    let path = job.write(folder.path());
    let command = kit.gymrun("run", &path, folder.path());
    let running = Running::launch(command, folder, &mut fifo, count);
    let each = |time: Duration| time.as_secs_f64() * 1e6 / count as f64;
    side.start.push(each(running.started_in));
    let gymrun = Watched::one(running.pid());
    let started = gymrun.cpu();
    side.start_cpu.push(each(started));
    // The first sample is taken at once, and may be late.
    std::thread::sleep(Duration::from_secs(1));
    let (before, begin) = (gymrun.cpu(), Instant::now());
    std::thread::sleep(Duration::from_secs(if options.quick { 2 } else { 5 }));
    let used = gymrun.cpu_since(before);
    let samples = begin.elapsed().as_secs_f64() / INTERVAL;
    side.sample.push(each(used) / samples);
    side.stop.push(each(running.stop()));
    side.all.push(each(cpu_of_children_since(all_before).saturating_sub(used)));
}
