use std::fs;
use std::path::PathBuf;

use super::{Coroner, Death, Kills};
use crate::events::{ExitStatus, MemoryAtDeath, Sample, TreeSample};
use crate::plan::Kind;
use crate::procfs::{Proc, Remains};

const GYMRUN: u32 = 10;
const UNIT: u32 = 20;

/// A machine as its files record it, with gymrun and one unit.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new(mounts: &str, own: &str, of_unit: &str, files: &[(&str, &str)]) -> Self {
        let machine = Self(tempfile::tempdir().expect("a scratch directory"));
        machine.write("proc/self/mountinfo", mounts);
        machine.write("proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 1 kB\n");
        machine.write("proc/vmstat", "pgfault 1\noom_kill 40\n");
        machine.write(&format!("proc/{GYMRUN}/cgroup"), own);
        machine.write(&format!("proc/{UNIT}/cgroup"), of_unit);
        for (path, content) in files {
            machine.write(path, content);
        }
        machine
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a scratch directory");
        fs::write(path, content).expect("a scratch file");
    }

    fn proc(&self) -> Proc {
        Proc::at(self.0.path().join("proc"))
    }

    /// The start of a job.
    fn begin(&self) -> Coroner {
        let coroner = Coroner::new(self.proc(), GYMRUN);
        coroner.run(vec![UNIT]);
        coroner
    }

    /// What is counted when the unit dies.
    fn die(&self, coroner: &Coroner, signal: Option<i32>) -> (Kills, MemoryAtDeath) {
        let status = ExitStatus { code: signal.is_none().then_some(1), signal };
        coroner.counted(&Death {
            process: "unit".into(),
            pid: UNIT,
            status,
            remains: Remains::of(&self.proc(), &coroner.cgroups, UNIT.cast_signed()),
            temporary: PathBuf::new(),
            job_dir: PathBuf::new(),
            slurm: false,
        })
    }
}

fn sample(bytes: u64, pss: Option<u64>) -> Sample {
    let tree = TreeSample {
        process: "unit".into(),
        kind: Kind::Service,
        type_name: "service".into(),
        pid: UNIT,
        rss: bytes,
        pss,
        processes: 1,
        peak_rss: bytes,
        peak_pss: pss,
        cpu_seconds: 0.0,
    };
    Sample { trees: vec![tree], ..Sample::default() }
}

fn events(kills: u64) -> String {
    format!("low 0\nhigh 0\nmax 9\noom 1\noom_kill {kills}\noom_group_kill 0\n")
}

const V1: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

#[test]
fn in_the_first_version_a_unit_counts_where_it_was_seen_to_run() {
    let control = |kills: u64| format!("oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n");
    for of_unit in ["", "/own"] {
        let home = format!("sys/fs/cgroup/memory/job{of_unit}");
        let machine = Machine::new(
            V1,
            "4:memory:/job\n",
            &format!("4:memory:/job{of_unit}\n"),
            &[
                ("sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n"),
                ("sys/fs/cgroup/memory/memory.oom_control", &control(40)),
                ("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1\n"),
                ("sys/fs/cgroup/memory/job/memory.oom_control", &control(7)),
                (&format!("{home}/memory.usage_in_bytes"), "1\n"),
                (&format!("{home}/memory.oom_control"), &control(7)),
                (&format!("{home}/memory.limit_in_bytes"), "1000\n"),
            ],
        );
        let coroner = machine.begin();
        machine.write(&format!("{home}/memory.oom_control"), &control(8));
        // A zombie shows the root.
        machine.write(&format!("proc/{UNIT}/cgroup"), "4:memory:/\n");
        let (kills, memory) = machine.die(&coroner, Some(9));
        assert_eq!((kills.cgroup, memory.limit_bytes), (Some(1), Some(1000)), "{of_unit}");
        machine.write(&format!("proc/{UNIT}/cgroup"), &format!("4:memory:/job{of_unit}\n"));
        coroner.run(vec![UNIT]);
        assert_eq!(machine.die(&coroner, Some(9)).0.cgroup, Some(0), "one kill explains one death");
    }
}

#[test]
fn who_is_where_gymrun_is_need_not_be_asked() {
    let machine = Machine::new(
        V2,
        "0::/job\n",
        "",
        &[
            ("sys/fs/cgroup/job/memory.current", "1\n"),
            ("sys/fs/cgroup/job/memory.events", &events(0)),
            ("sys/fs/cgroup/job/cgroup.procs", "0\n10\n20\n"),
        ],
    );
    let coroner = machine.begin();
    let home = |pid: u32| coroner.lock().homes.get(&pid).map(|home| home.directory().to_owned());
    assert_eq!(home(UNIT), Some(machine.0.path().join("sys/fs/cgroup/job")));
    // Another is asked, and has none.
    coroner.run(vec![UNIT + 1]);
    assert_eq!(home(UNIT + 1), None);
}

#[test]
fn in_the_second_version_a_units_own_cgroup_counts_and_gymruns_counts_along() {
    let own = "sys/fs/cgroup/job";
    let machine = Machine::new(
        V2,
        "0::/job\n",
        "0::/job/unit\n",
        &[
            ("sys/fs/cgroup/job/memory.current", "1\n"),
            ("sys/fs/cgroup/job/memory.max", "2000\n"),
            ("sys/fs/cgroup/job/memory.events", &events(3)),
            ("sys/fs/cgroup/job/unit/memory.current", "1\n"),
            ("sys/fs/cgroup/job/unit/memory.max", "max\n"),
            ("sys/fs/cgroup/job/unit/memory.events", &events(0)),
        ],
    );
    let coroner = machine.begin();
    // Another unit was killed.
    machine.write(&format!("{own}/memory.events"), &events(4));
    let (kills, memory) = machine.die(&coroner, Some(9));
    assert_eq!((kills.cgroup, memory.limit_bytes), (Some(0), Some(2000)));
    // Now it was this one.
    machine.write(&format!("{own}/memory.events"), &events(5));
    machine.write(&format!("{own}/unit/memory.events"), &events(1));
    assert_eq!(machine.die(&coroner, Some(9)).0.cgroup, Some(1));
    assert_eq!(coroner.lock().own.as_ref().map(|own| own.kills.recent(std::time::Instant::now())), Some(1));
}

#[test]
fn a_cgroup_that_is_seen_first_at_a_death_may_have_counted_long_ago() {
    let machine = Machine::new(
        V2,
        "0::/job\n",
        "0::/job\n",
        &[
            ("sys/fs/cgroup/job/memory.current", "1\n"),
            ("sys/fs/cgroup/job/memory.events", &events(0)),
            ("sys/fs/cgroup/late/memory.current", "1\n"),
            ("sys/fs/cgroup/late/memory.events", &events(30)),
        ],
    );
    let coroner = machine.begin();
    machine.write(&format!("proc/{UNIT}/cgroup"), "0::/late\n");
    assert_eq!(machine.die(&coroner, Some(9)).0.cgroup, Some(0));
    let coroner = machine.begin();
    machine.write("proc/vmstat", "oom_kill 41\n");
    machine.write(&format!("proc/{UNIT}/cgroup"), "0::/later\n");
    machine.write("sys/fs/cgroup/later/memory.current", "1\n");
    machine.write("sys/fs/cgroup/later/memory.events", &events(12));
    assert_eq!(machine.die(&coroner, Some(9)).0.cgroup, Some(1));
}

#[test]
fn without_a_controller_there_is_the_hosts_count_or_none() {
    let machine = Machine::new("", "0::/\n", "0::/\n", &[]);
    let coroner = machine.begin();
    machine.write("proc/vmstat", "oom_kill 42\n");
    let (kills, memory) = machine.die(&coroner, None);
    assert_eq!((kills.cgroup, kills.host, memory.limit_bytes), (None, Some(2), None));
    // An exit claims nothing, a SIGKILL one.
    assert_eq!(machine.die(&coroner, Some(9)).0.host, Some(2));
    assert_eq!(machine.die(&coroner, Some(9)).0.host, Some(1));
    let machine = Machine::new("", "", "", &[]);
    machine.write("proc/vmstat", "pgfault 1\n");
    let coroner = machine.begin();
    assert_eq!(machine.die(&coroner, Some(9)).0, Kills::default());
}

#[test]
fn the_last_whole_sample_is_what_a_tree_held_and_a_limit_above_the_hosts_memory_is_none() {
    let machine = Machine::new(
        V2,
        "0::/job\n",
        "0::/job\n",
        &[
            ("sys/fs/cgroup/job/memory.current", "1\n"),
            ("sys/fs/cgroup/job/memory.events", &events(0)),
            // The host has 1 GiB.
            ("sys/fs/cgroup/job/memory.max", "1073741824\n"),
        ],
    );
    let coroner = machine.begin();
    let held = |coroner: &Coroner| machine.die(coroner, None).1.held.map(|held| (held.bytes, held.proportional));
    assert_eq!(held(&coroner), None);
    coroner.sampled(&sample(900, None));
    assert_eq!(held(&coroner), Some((900, false)));
    coroner.sampled(&sample(990, Some(950)));
    assert_eq!(held(&coroner), Some((950, true)));
    // While it dies it holds less and less.
    coroner.sampled(&sample(100, None));
    assert_eq!(held(&coroner), Some((950, true)));
    assert_eq!(machine.die(&coroner, None).1.limit_bytes, None);
}
