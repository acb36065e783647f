//! What a sample of a whole tree costs.

use crate::options::Options;
use crate::python::{self, Mode};
use crate::samplers::{Floor, Ours, cost};
use crate::statistics::Series;
use crate::table::{Peer, Row, Table};
use crate::tree::Tree;

/// Processes of a tree.
const COUNT: usize = 100;
/// Samples of a repetition.
const TIMES: usize = 20;

/// A whole exact sample of a hundred processes of two kinds.
pub fn measure(options: &Options, table: &mut Table) {
    for (name, tree, whole) in [
        ("small processes (4 MiB, one thread)", Tree::small(COUNT, 4096), 1.3),
        ("Python servers (4 threads)", Tree::python(COUNT), 1.1),
    ] {
        let [mut floor, mut ours, mut walk, mut psutil, mut resident] = <[Series; 5]>::default();
        let with_psutil = python::has("psutil");
        let per_process = |microseconds: f64| microseconds / COUNT as f64;
        let mut reads = Floor::open(tree.root(), "smaps_rollup");
        let mut sampler = Ours::begin(tree.root());
        for repetition in 1..=options.repetitions {
            floor.push(per_process(cost(TIMES, || reads.sample())));
            ours.push(per_process(cost(TIMES, || sampler.sample(true))));
            resident.push(per_process(cost(TIMES, || sampler.sample(false))));
            let peer = python::sample(Mode::Walk, tree.root(), TIMES, 0.0);
            let (processes, pss) = sampler.sample(true);
            assert_eq!((processes, peer.processes), (COUNT, COUNT));
            // Both are idle, so both must have read the same.
            assert!(pss.abs_diff(peer.pss) < pss / 100, "{pss} and {} bytes of PSS", peer.pss);
            walk.push(per_process(peer.cpu));
            if with_psutil {
                psutil.push(per_process(python::sample(Mode::Psutil, tree.root(), TIMES, 0.0).cpu));
            }
            eprintln!("{repetition}: {name}: {:.1} µs, floor {:.1}", ours.newest(), floor.newest());
        }
        let above = |series: &Series| series.less(&floor);
        let psutil = with_psutil.then_some(psutil);
        table.add(&Row {
            name: format!("whole exact sample, {COUNT} {name}: CPU µs a process"),
            digits: 1,
            floor: Some(floor.clone()),
            ours: ours.clone(),
            walk: Some(walk.clone()),
            psutil: psutil.clone(),
            goals: vec![(Peer::Floor, whole)],
        });
        table.add(&Row {
            name: "the same, above the floor".into(),
            digits: 1,
            floor: None,
            ours: above(&ours),
            walk: Some(above(&walk)),
            psutil: psutil.as_ref().map(above),
            goals: vec![(Peer::Walk, 0.25)],
        });
        table.add(&Row {
            name: "RSS and CPU time alone, the same processes: CPU µs a process".into(),
            digits: 1,
            ours: resident,
            walk: Some(walk),
            ..Row::default()
        });
    }
}

/// What a process more costs in a large job.
pub fn measure_scale(options: &Options, table: &mut Table) {
    for count in [10, 100, 1000] {
        let tree = Tree::small(count, 256);
        let mut reads = Floor::open(tree.root(), "statm");
        let mut exact_reads = Floor::open(tree.root(), "smaps_rollup");
        let mut sampler = Ours::begin(tree.root());
        let times = (TIMES * 100 / count).max(5);
        let [mut floor, mut ours, mut exact_floor, mut exact] = <[Series; 4]>::default();
        for _ in 0..options.repetitions {
            floor.push(cost(times, || reads.sample()) / count as f64);
            ours.push(cost(times, || sampler.sample(false)) / count as f64);
            exact_floor.push(cost(times, || exact_reads.sample()) / count as f64);
            exact.push(cost(times, || sampler.sample(true)) / count as f64);
        }
        let row = |what: &str, floor, ours| Row {
            name: format!("{what}, {count} small processes (256 KiB): CPU µs a process"),
            digits: 1,
            floor: Some(floor),
            ours,
            ..Row::default()
        };
        table.add(&row("RSS and CPU time (floor: `statm` alone)", floor, ours));
        table.add(&row("exact sample", exact_floor, exact));
    }
}
