//! What supervisors cost that have nothing to do but to be there.

use std::time::Duration;

use crate::bed::{Kit, Memory, Running, Supervisor, Watched};
use crate::options::Options;
use crate::statistics::Series;
use crate::table::{Goal, Row, Table};

const CHILDREN: usize = 10;
const MEGABYTE: f64 = 1e6;

struct Side {
    supervisor: Supervisor,
    running: Running,
    processes: Watched,
    cpu: Series,
    switches: Series,
    memory: Memory,
}

/// All of them beside each other, with ten children that do nothing; gymrun does not sample.
pub fn measure(options: &Options, kit: &Kit) {
    let wanted = |supervisor: &Supervisor| {
        let peer = !options.no_peers && *supervisor != Supervisor::ContainedLoop;
        supervisor.there(kit) && (peer || *supervisor == Supervisor::Gymrun)
    };
    let start = |supervisor: Supervisor| {
        let running = Running::start(supervisor, kit, CHILDREN);
        (supervisor, running)
    };
    let started: Vec<_> = Supervisor::ALL.into_iter().filter(wanted).map(start).collect();
    std::thread::sleep(Duration::from_secs(6));
    let side = |(supervisor, running): (Supervisor, Running)| {
        let processes = Watched::supervisor(running.pid(), "child");
        let [cpu, switches] = [(); 2].map(|()| Series::default());
        Side { supervisor, running, processes, cpu, switches, memory: Memory::default() }
    };
    let mut sides: Vec<Side> = started.into_iter().map(side).collect();
    let seconds = if options.quick { 5 } else { 20 };
    for repetition in 1..=options.repetitions() {
        let before: Vec<_> = sides.iter().map(|side| (side.processes.cpu(), side.processes.switches())).collect();
        std::thread::sleep(Duration::from_secs(seconds));
        for (side, (cpu, switches)) in sides.iter_mut().zip(before) {
            side.cpu.push(side.processes.cpu_since(cpu).as_secs_f64() * 1e3);
            // A thread that ended takes its count with it.
            side.switches.push(side.processes.switches().saturating_sub(switches) as f64);
        }
        eprintln!("{repetition}: idle: {:.2} ms", sides[0].cpu.newest());
    }
    for side in &mut sides {
        side.memory = side.processes.memory();
    }
    let mut table =
        Table::new("Ten children that do nothing, no sampling", sides.iter().map(|side| side.supervisor.name()));
    let once = |value: f64| {
        let mut series = Series::default();
        series.push(value);
        series
    };
    let mut row = |name: &str, digits, goals, of: &dyn Fn(&Side) -> Series| {
        table.add(Row { name: name.into(), digits, cells: sides.iter().map(|side| Some(of(side))).collect(), goals });
    };
    row("processes", 0, Vec::new(), &|side| once(side.processes.count() as f64));
    row("private memory, MB", 2, vec![Goal::Value(3.0)], &|side| once(side.memory.private as f64 / MEGABYTE));
    row("of that written to, MB", 2, Vec::new(), &|side| once(side.memory.private_dirty as f64 / MEGABYTE));
    row("resident memory, MB", 2, Vec::new(), &|side| once(side.memory.resident as f64 / MEGABYTE));
    row(&format!("CPU in {seconds} s, ms"), 2, vec![Goal::Value(1.3)], &|side| side.cpu.clone());
    row(&format!("context switches in {seconds} s"), 0, vec![Goal::Value(5.0)], &|side| side.switches.clone());
    table.note("Supervisors with their own helpers, without the children.");
    table.print();
    for side in &sides {
        side.running.tell();
    }
    Running::wait_for_all();
}
