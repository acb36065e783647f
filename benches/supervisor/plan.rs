//! What it costs to plan a job and start nothing.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::bed::{Kit, cpu_of_children, cpu_of_children_since, scratch};
use crate::options::Options;
use crate::statistics::Series;
use crate::table::{Goal, Row, Table};

/// Processes of one repetition.
const RUNS: u32 = 20;

/// The quickstart's plan beside a program that does nothing, and beside what a launcher in Python imports.
pub fn measure(options: &Options, kit: &Kit) {
    let folder = scratch();
    let job = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/quickstart/job.lua");
    let imports = |python: &Path, what: &str| {
        let mut command = Command::new(python);
        command.args(["-c", what]);
        command
    };
    let mut programs = vec![
        ("`gymrun plan`", kit.gymrun("plan", &job, folder.path())),
        ("C: `return 0`", Command::new(kit.nothing())),
        ("`gymrun --version`", {
            let mut version = Command::new(&kit.gymrun);
            version.arg("--version");
            version
        }),
    ];
    if let Some(python) = &kit.python {
        programs.push(("Python", imports(python, "pass")));
        programs.push(("Python: `import yaml, pydantic`", imports(python, "import yaml, pydantic")));
    }
    let mut sides: Vec<Series> = programs.iter().map(|_| Series::default()).collect();
    for _ in 0..options.repetitions() {
        for ((name, command), series) in programs.iter_mut().zip(&mut sides) {
            let runs = if name.starts_with("Python") { RUNS / 4 } else { RUNS };
            let before = cpu_of_children();
            for _ in 0..runs {
                let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().expect("starts");
                assert!(status.success(), "{name}: {status}");
            }
            series.push(cpu_of_children_since(before).as_secs_f64() * 1e3 / f64::from(runs));
        }
    }
    let mut goals = vec![Goal::times(3.0, sides[1].median(), "C")];
    if let Some(python) = sides.get(4) {
        goals.push(Goal::times(0.04, python.median(), "Python's imports"));
    }
    let mut table = Table::new("`gymrun plan` of the quickstart", programs.iter().map(|(name, _)| *name));
    let cells = sides.into_iter().map(Some).collect();
    table.add(Row { name: "CPU of the whole process, ms".into(), digits: 2, cells, goals });
    table.note(format!("{} repetitions of {RUNS} processes, Python of {}.", options.repetitions(), RUNS / 4));
    table.print();
}
