use std::fs;
use std::path::{Path, PathBuf};

use super::{CgroupVersion, Proc, unescaped};

/// A machine as its files record it: `/proc` and what is mounted beside it.
struct Machine(tempfile::TempDir);

const PID: i32 = 42;

impl Machine {
    fn new(mountinfo: &str, cgroup: &str) -> Self {
        let machine = Self(tempfile::tempdir().expect("a scratch directory"));
        machine.write("proc/self/mountinfo", mountinfo);
        machine.write(&format!("proc/{PID}/cgroup"), cgroup);
        machine
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a scratch directory");
        fs::write(path, content).expect("a scratch file");
    }

    fn with(self, files: &[(&str, &str)]) -> Self {
        for (path, content) in files {
            self.write(path, content);
        }
        self
    }

    fn proc(&self) -> Proc {
        Proc::at(self.path("proc"))
    }

    #[track_caller]
    fn memory(&self) -> super::MemoryCgroup {
        self.proc().cgroups().memory(PID).expect("the controller is seen")
    }

    fn shown(&self, directory: &Path) -> String {
        directory.strip_prefix(self.0.path()).expect("all is below the root").display().to_string()
    }
}

const EVENTS: &str = "low 0\nhigh 12\nmax 80\noom 2\noom_kill 3\noom_group_kill 0\n";
const CONTROL: &str = "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n";
const NONE_V1: &str = "9223372036854771712\n";

const HYBRID: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:7 master:1 - cgroup2 cgroup2 rw
";

#[test]
fn a_hybrid_machine_accounts_in_the_first_version_and_contains_in_the_second() {
    let machine = Machine::new(HYBRID, "9:name=systemd:/\n4:memory:/process_api/40a5\n1:cpu:/\n0::/\n").with(&[
        ("sys/fs/cgroup/memory/memory.usage_in_bytes", "900\n"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", NONE_V1),
        ("sys/fs/cgroup/memory/process_api/memory.limit_in_bytes", "4096000\n"),
        ("sys/fs/cgroup/memory/process_api/40a5/memory.limit_in_bytes", NONE_V1),
        ("sys/fs/cgroup/memory/process_api/40a5/memory.usage_in_bytes", "123456\n"),
        ("sys/fs/cgroup/memory/process_api/40a5/memory.oom_control", CONTROL),
        ("sys/fs/cgroup/unified/cgroup.procs", "1\n42\n"),
    ]);
    let memory = machine.memory();
    assert_eq!(memory.version(), CgroupVersion::V1);
    assert_eq!(machine.shown(memory.directory()), "sys/fs/cgroup/memory/process_api/40a5");
    assert_eq!((memory.current(), memory.limit(), memory.oom_kills()), (Some(123_456), Some(4_096_000), Some(5)));
    let unified = machine.proc().cgroups().unified(PID).expect("it is mounted");
    assert_eq!(machine.shown(&unified), "sys/fs/cgroup/unified");
    // The kernel's own answer knows the limits that no mount shows, and stands.
    let stat = "cache 1\nhierarchical_memory_limit 2048000\nhierarchical_memsw_limit 1\n";
    let machine = machine.with(&[("sys/fs/cgroup/memory/process_api/40a5/memory.stat", stat)]);
    assert_eq!(machine.memory().limit(), Some(2_048_000));
    let stat = "hierarchical_memory_limit 9223372036854771712\n";
    assert_eq!(
        machine.with(&[("sys/fs/cgroup/memory/process_api/40a5/memory.stat", stat)]).memory().limit(),
        None,
        "the greatest number is none"
    );
}

const UNIFIED: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n";

#[test]
fn limits_of_the_second_version_nest_and_a_cgroup_without_the_controller_belongs_to_the_one_around_it() {
    let slurm = "sys/fs/cgroup/system.slice/slurmstepd.scope/job_7";
    let machine = Machine::new(UNIFIED, "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n").with(&[
        ("sys/fs/cgroup/cgroup.procs", "1\n"),
        ("sys/fs/cgroup/system.slice/memory.max", "max\n"),
        ("sys/fs/cgroup/system.slice/memory.current", "1\n"),
        (&format!("{slurm}/memory.max"), "17179869184\n"),
        (&format!("{slurm}/step_0/memory.max"), "34359738368\n"),
        (&format!("{slurm}/step_0/user/memory.max"), "max\n"),
        (&format!("{slurm}/step_0/user/memory.current"), "777\n"),
        (&format!("{slurm}/step_0/user/memory.events"), EVENTS),
        (&format!("{slurm}/step_0/user/task_0/cgroup.procs"), "42\n"),
    ]);
    let memory = machine.memory();
    assert_eq!(memory.version(), CgroupVersion::V2);
    assert_eq!(machine.shown(memory.directory()), format!("{slurm}/step_0/user"));
    assert_eq!((memory.current(), memory.limit(), memory.oom_kills()), (Some(777), Some(17_179_869_184), Some(3)));
    let unified = machine.proc().cgroups().unified(PID).expect("it is mounted");
    assert_eq!(machine.shown(&unified), format!("{slurm}/step_0/user/task_0"));
}

#[test]
fn a_step_of_slurm_in_the_first_version() {
    let step = "sys/fs/cgroup/memory/slurm/uid_1000/job_7/step_0";
    let machine = Machine::new(HYBRID, "4:cpu,memory:/slurm/uid_1000/job_7/step_0/task_0\n").with(&[
        (&format!("{step}/memory.limit_in_bytes"), "1000\n"),
        (&format!("{step}/task_0/memory.limit_in_bytes"), NONE_V1),
        (&format!("{step}/task_0/memory.usage_in_bytes"), "999\n"),
        (&format!("{step}/task_0/memory.oom_control"), "oom_kill_disable 0\nunder_oom 1\n"),
    ]);
    let memory = machine.memory();
    assert_eq!((memory.current(), memory.limit()), (Some(999), Some(1000)));
    assert_eq!(memory.oom_kills(), None, "a kernel before 4.13 does not count");
}

#[test]
fn a_container_has_its_own_cgroup_at_the_root_of_its_mount() {
    // The first version, in the namespace of the host.
    let mounts = "5 4 0:33 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
    let machine = Machine::new(mounts, "7:memory:/docker/abc\n").with(&[
        ("sys/fs/cgroup/memory/memory.usage_in_bytes", "5\n"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "50\n"),
    ]);
    assert_eq!(machine.shown(machine.memory().directory()), "sys/fs/cgroup/memory");
    assert_eq!(machine.memory().limit(), Some(50));
    // The second, in a namespace of its own: its root has the files that a true root lacks.
    let machine = Machine::new(UNIFIED, "0::/\n").with(&[
        ("sys/fs/cgroup/memory.current", "5\n"),
        ("sys/fs/cgroup/memory.max", "50\n"),
        ("sys/fs/cgroup/memory.events", EVENTS),
    ]);
    let memory = machine.memory();
    assert_eq!((memory.current(), memory.limit(), memory.oom_kills()), (Some(5), Some(50), Some(3)));
    // A mount made before the namespace was entered: its root is above the namespace's.
    let above = "30 23 0:26 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    let machine = Machine::new(above, "0::/../../other\n").with(&[("sys/fs/cgroup/other/memory.current", "6\n")]);
    assert_eq!(machine.shown(machine.memory().directory()), "sys/fs/cgroup/other");
}

#[test]
fn what_a_mount_does_not_show_is_none_unless_its_root_has_the_process() {
    // Outside of the namespace; of another container's mount; removed; without any mount; with no such process.
    for (mounts, cgroup) in [
        (UNIFIED, "0::/../../other\n"),
        ("5 4 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/docker/xyz\n"),
        ("5 4 0:26 /.. /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/\n"),
        (UNIFIED, "0::/gone (deleted)\n"),
        ("", "0::/\n4:memory:/\n"),
        (UNIFIED, "garbage\n\n0:\n"),
    ] {
        let machine = Machine::new(mounts, cgroup)
            .with(&[("sys/fs/cgroup/memory.current", "5\n"), ("sys/fs/cgroup/cgroup.procs", "1\n423\n")]);
        assert_eq!(machine.proc().cgroups().memory(PID), None, "{mounts}{cgroup}");
        assert_eq!(machine.proc().cgroups().unified(PID), None, "{mounts}{cgroup}");
        assert_eq!(machine.proc().cgroups().memory(PID + 1), None);
        if !mounts.is_empty() && cgroup.starts_with("0::") {
            machine.write("sys/fs/cgroup/cgroup.procs", "1\n42\n");
            assert_eq!(machine.shown(machine.memory().directory()), "sys/fs/cgroup", "{mounts}{cgroup}");
        }
    }
}

#[test]
fn blanks_and_colons_in_paths_are_part_of_them() {
    let mounts = "5 4 0:26 /a\\040b /mnt/c\\134d\\011e rw - cgroup2 none rw\n";
    let machine = Machine::new(mounts, "0::/a b/x:y z\n").with(&[("mnt/c\\d\te/x:y z/memory.current", "8\n")]);
    assert_eq!(machine.memory().current(), Some(8));
    assert_eq!(unescaped(br"/a\04"), Path::new(r"/a\04"));
    assert_eq!(unescaped(br"/a\999b\"), Path::new(r"/a\999b\"));
}

#[test]
fn the_first_mount_that_shows_it_is_taken() {
    let mounts = format!("1 1 0:26 /elsewhere /mnt/part rw - cgroup2 none rw\n{UNIFIED}");
    let machine = Machine::new(&mounts, "0::/job\n").with(&[("sys/fs/cgroup/job/memory.current", "9\n")]);
    assert_eq!(machine.memory().current(), Some(9));
    assert_eq!(machine.memory().limit(), None);
}

#[test]
fn the_host_counts_what_it_killed_for_memory() {
    let machine = Machine::new("", "").with(&[("proc/vmstat", "pgfault 1\noom_kill 4\n")]);
    assert_eq!(machine.proc().oom_kills(), Some(4));
    assert_eq!(Proc::at("/nowhere/proc").oom_kills(), None);
}

#[test]
fn this_process_is_where_the_kernel_says() {
    let own = i32::try_from(std::process::id()).expect("pids are small");
    let cgroups = Proc::default().cgroups();
    if let Some(memory) = cgroups.memory(own) {
        assert!(memory.current().is_some_and(|bytes| bytes > 0), "{memory:?}");
    }
    if let Some(unified) = cgroups.unified(own) {
        assert!(
            fs::read_to_string(unified.join("cgroup.procs"))
                .is_ok_and(|text| text.lines().any(|l| l == own.to_string()))
        );
    }
}
