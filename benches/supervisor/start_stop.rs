//! From the exec of a supervisor until all its children run; from the word to stop until all are gone.

use std::process::Stdio;
use std::time::Instant;

use crate::bed::{Job, Kit, Running, Supervisor, cpu_of_children, cpu_of_children_since, scratch};
use crate::options::Options;
use crate::statistics::Series;
use crate::table::{Goal, Row, Table};

/// What is measured of one supervisor.
#[derive(Default)]
struct Side {
    start: Series,
    stop: Series,
    cpu: Series,
}

/// 10 and 100 children that do nothing, on one level.
pub fn measure(options: &Options, kit: &Kit) {
    let floors = [Supervisor::Gymrun, Supervisor::Loop, Supervisor::ContainedLoop];
    let wanted = |supervisor: &Supervisor| supervisor.there(kit) && (!options.no_peers || floors.contains(supervisor));
    let supervisors: Vec<Supervisor> = Supervisor::ALL.into_iter().filter(wanted).collect();
    let names = supervisors.iter().map(|supervisor| supervisor.name()).chain(["`gymrun plan`"]);
    let mut table = Table::new("Start and stop", names);
    for count in [10, 100] {
        let mut sides: Vec<Side> = supervisors.iter().map(|_| Side::default()).collect();
        let mut plan = Series::default();
        for repetition in 0..options.repetitions() {
            plan.push(plan_alone(kit, count));
            // Each begins once, so that nobody always follows the same.
            for turn in 0..supervisors.len() {
                let index = (turn + repetition) % supervisors.len();
                let (supervisor, side) = (supervisors[index], &mut sides[index]);
                let before = cpu_of_children();
                let running = Running::start(supervisor, kit, count);
                let started_in = running.started_in;
                std::thread::sleep(supervisor.settles_in());
                side.stop.push(running.stop().as_secs_f64() * 1e3);
                // It moves itself from cgroup to cgroup, as only a loop has to.
                if supervisor != Supervisor::ContainedLoop {
                    side.start.push(started_in.as_secs_f64() * 1e3);
                    side.cpu.push(cpu_of_children_since(before).as_secs_f64() * 1e3);
                }
            }
        }
        let floor = &sides[1];
        let start_goal = Goal::times(1.3, floor.start.median() + plan.median(), "(bare loop + plan)");
        let stop_goal = Goal::times(1.5, floor.stop.median(), "bare loop");
        let mut row = |name: String, of: fn(&Side) -> &Series, last: Option<Series>, goals| {
            let cells =
                sides.iter().map(|side| Some(of(side).clone()).filter(|of| !of.newest().is_nan())).chain([last]);
            let cells = cells.collect();
            table.add(Row { name, digits: 1, cells, goals });
        };
        row(format!("exec to all {count} started, ms"), |side| &side.start, Some(plan.clone()), vec![start_goal]);
        row(
            format!("SIGTERM to all {count} gone, ms"),
            |side| &side.stop,
            None,
            if count == 100 { vec![stop_goal] } else { Vec::new() },
        );
        row(format!("CPU of all that, {count} children included, ms"), |side| &side.cpu, None, Vec::new());
        eprintln!("start and stop of {count}: done");
    }
    table.note(format!("{} repetitions.", options.repetitions()));
    table.print();
}

/// Milliseconds that `gymrun plan` takes for the same job.
fn plan_alone(kit: &Kit, count: usize) -> f64 {
    let folder = scratch();
    let job = Job::of_children(kit, count, &folder.path().join("started")).write(folder.path());
    let mut command = kit.gymrun("plan", &job, folder.path());
    let begin = Instant::now();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().expect("starts");
    assert!(status.success(), "`gymrun plan` fails: {status}");
    begin.elapsed().as_secs_f64() * 1e3
}
