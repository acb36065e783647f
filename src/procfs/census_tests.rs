//! A census over made-up processes.

use std::fs;
use std::path::{Path, PathBuf};

use super::census::Census;
use super::ends::Ends;
use super::identity::{Identity, Proc};
use super::kept::Files;
use super::memory::{TreeMemory, page_size};
use super::testing::Family;
use super::tree::Members;

const ROOT: Identity = Identity { pid: 10, started: 7 };

/// A process below a root of /proc that is a folder.
struct Made {
    pid: i32,
    parent: i32,
    state: char,
    threads: u32,
    own: u64,
    waited: u64,
    started: u64,
}

impl Made {
    fn new(pid: i32, parent: i32) -> Self {
        Self { pid, parent, state: 'S', threads: 1, own: 100, waited: 0, started: 7 }
    }

    fn write(&self, root: &Path, children: &str) -> PathBuf {
        let Self { pid, parent, state, threads, own, waited, started } = self;
        let folder = root.join(pid.to_string());
        fs::create_dir_all(folder.join(format!("task/{pid}"))).expect("a scratch directory");
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("a scratch file");
        write(&format!("task/{pid}/children"), children);
        let stat = format!(
            "{pid} (a) S) b) {state} {parent} 10 10 0 -1 0 0 0 0 0 {own} 0 {waited} 0 20 0 {threads} 0 {started} 1 2\n"
        );
        write("stat", &stat);
        write("statm", "900 3 1 1 0 1 0\n");
        write("smaps_rollup", "0-1 r-xp 0 0 [rollup]\nRss:  2048 kB\nPss:  1024 kB\n");
        folder
    }

    /// The kernel's way to say that a kept file's process is gone.
    fn end(pid: i32, root: &Path) {
        fs::write(root.join(format!("{pid}/stat")), "").expect("a scratch file");
        fs::remove_dir_all(root.join(pid.to_string())).expect("a scratch directory");
    }
}

struct Bed {
    folder: tempfile::TempDir,
    census: Census,
    ends: Ends,
}

impl Bed {
    fn new() -> Self {
        Self::keeping(1000)
    }

    fn keeping(files: usize) -> Self {
        let folder = tempfile::tempdir().expect("a scratch directory");
        let ends = Ends::default();
        let census = Census::with(Proc::at(folder.path()), ends.clone(), Files::with(files));
        Self { folder, census, ends }
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    /// One look: memory with PSS, and CPU time in hundredths of a second.
    fn look(&mut self, adopted: &[i32]) -> (TreeMemory, u128) {
        let unit = Members { root: ROOT, mark: "GYMRUN_PROCESS=j:a".into(), cgroup: None };
        self.census.walk(&[unit], adopted).expect("there are descriptors");
        let memory = self.census.memory(ROOT, true).expect("there are descriptors");
        (memory, self.census.cpu_time(ROOT).as_millis() / 10)
    }
}

#[test]
fn a_tree_is_counted_whole_with_and_without_kept_files() {
    for files in [0, 5, 1000] {
        let mut bed = Bed::keeping(files);
        let root = bed.root().to_owned();
        Made { threads: 2, ..Made::new(10, 1) }.write(&root, "11 ");
        // A child of a thread that is not the first.
        fs::create_dir_all(root.join("10/task/12")).expect("a scratch directory");
        fs::write(root.join("10/task/12/children"), "13 ").expect("a scratch file");
        Made::new(11, 10).write(&root, "");
        Made::new(13, 10).write(&root, "14 ");
        // A zombie has no memory, and has its time until somebody waits for it.
        Made { state: 'Z', threads: 0, own: 50, ..Made::new(14, 13) }.write(&root, "");
        for _ in 0..3 {
            let (memory, cpu) = bed.look(&[]);
            assert_eq!((memory.processes, memory.pss, cpu), (3, Some(3 << 20), 350));
            assert_eq!(bed.census.memory(ROOT, false).expect("readable").rss, 9 * page_size());
        }
        // The thread ends, another takes its place, and the child is its.
        fs::remove_dir_all(root.join("10/task/12")).expect("a scratch directory");
        fs::create_dir_all(root.join("10/task/15")).expect("a scratch directory");
        fs::write(root.join("10/task/15/children"), "16 ").expect("a scratch file");
        Made::new(16, 10).write(&root, "");
        assert_eq!(bed.look(&[]).0.processes, 4);
    }
}

#[test]
fn whoever_was_in_the_tree_stays_in_it_and_its_pid_does_not() {
    for files in [0, 1000] {
        let mut bed = Bed::keeping(files);
        let root = bed.root().to_owned();
        Made::new(10, 1).write(&root, "11 ");
        Made::new(11, 10).write(&root, "12");
        Made::new(12, 11).write(&root, "");
        assert_eq!(bed.look(&[]).1, 300);
        // The middle one ends: its child has no mark and no group of ours, and hangs below gymrun now.
        Made::end(11, &root);
        Made::new(10, 1).write(&root, "");
        Made { parent: 1, own: 110, ..Made::new(12, 1) }.write(&root, "");
        let (memory, cpu) = bed.look(&[]);
        assert_eq!((memory.processes, cpu), (2, 310));
        // It ends, and a stranger gets its pid.
        Made::end(12, &root);
        Made { started: 8, own: 7000, ..Made::new(12, 1) }.write(&root, "");
        let (memory, cpu) = bed.look(&[]);
        assert_eq!((memory.processes, cpu), (1, 310));
        // One that a list names, and that is somebody else's child by now.
        Made::new(10, 1).write(&root, "12 ");
        assert_eq!(bed.look(&[]).0.processes, 1);
    }
}

#[test]
fn a_root_that_is_another_process_has_no_tree() {
    let mut bed = Bed::new();
    Made { started: 6, ..Made::new(10, 1) }.write(bed.root(), "");
    let (memory, cpu) = bed.look(&[]);
    assert_eq!((memory.processes, memory.pss, cpu), (0, Some(0), 0));
}

#[test]
fn the_pid_of_a_root_that_has_ended_may_be_in_another_tree() {
    let mut bed = Bed::new();
    let root = bed.root().to_owned();
    Made::new(10, 1).write(&root, "11 ");
    Made::new(11, 10).write(&root, "");
    // It had the pid 11 once, and stands behind the unit that has it now.
    let ended = Identity { pid: 11, started: 3 };
    let unit = |root| Members { root, mark: "GYMRUN_PROCESS=j:a".into(), cgroup: None };
    for _ in 0..3 {
        bed.census.walk(&[unit(ROOT), unit(ended)], &[]).expect("there are descriptors");
        let mut processes = |root| bed.census.memory(root, true).expect("readable").processes;
        assert_eq!([processes(ROOT), processes(ended)], [2, 0]);
    }
}

#[test]
fn daemons_that_were_never_seen_belong_by_mark_or_group() {
    let mut bed = Bed::new();
    let root = bed.root().to_owned();
    Made::new(10, 1).write(&root, "");
    let marked = Made::new(20, 1).write(&root, "21 ");
    fs::write(marked.join("environ"), "A=1\0GYMRUN_PROCESS=j:a\0").expect("a scratch file");
    Made::new(21, 20).write(&root, "");
    let other = Made::new(30, 1).write(&root, "");
    fs::write(other.join("stat"), "30 (x) S 1 30 30 0 0 0 0 0 0 0 9 0 0 0 0 0 1 0 7 0 0\n").expect("a scratch file");
    assert_eq!(bed.look(&[20, 30]).0.processes, 3);
}

#[test]
fn one_refusal_takes_the_pss_of_the_tree_and_leaves_the_rest() {
    let mut bed = Bed::new();
    let root = bed.root().to_owned();
    Made::new(10, 1).write(&root, "11 12 13");
    let refuses = Made::new(11, 10).write(&root, "").join("smaps_rollup");
    // A directory cannot be read, whoever asks: root, too.
    fs::remove_file(&refuses).expect("a scratch file");
    fs::create_dir(&refuses).expect("a scratch directory");
    // It is ending; the other one vanished between the list and the look.
    let ends = Made::new(12, 10).write(&root, "").join("smaps_rollup");
    fs::write(ends, "").expect("a scratch file");
    let (memory, _) = bed.look(&[]);
    assert_eq!((memory.rss, memory.pss, memory.processes), (2048 * 1024 + 3 * page_size(), None, 2));
    assert_eq!(memory.refused, [11]);
}

#[test]
fn a_process_that_is_alive_and_has_no_address_space_counts_as_nothing() {
    let mut bed = Bed::new();
    let root = bed.root().to_owned();
    Made::new(10, 1).write(&root, "11 12");
    Made::new(12, 10).write(&root, "");
    // The kernel answers ESRCH for it, as for a task that is exiting.
    let folder = Made::new(11, 10).write(&root, "");
    let family = Family::start("true");
    let zombie = family.child;
    let stat = format!("/proc/{zombie}/stat");
    while !fs::read_to_string(&stat).expect("it is not reaped").contains(") Z ") {
        std::thread::yield_now();
    }
    for name in ["smaps_rollup", "statm"] {
        fs::remove_file(folder.join(name)).expect("a scratch file");
        std::os::unix::fs::symlink(format!("/proc/{zombie}/{name}"), folder.join(name)).expect("a link");
    }
    for _ in 0..2 {
        let (memory, _) = bed.look(&[]);
        assert_eq!((memory.processes, memory.pss, memory.refused.len()), (2, Some(2 << 20), 0));
    }
}

#[test]
fn threads_live_on_without_the_first_one() {
    let mut bed = Bed::new();
    let root = bed.root().to_owned();
    let folder = Made { threads: 2, ..Made::new(10, 1) }.write(&root, "");
    let other = folder.join("task/11");
    fs::create_dir_all(&other).expect("a scratch directory");
    fs::write(other.join("children"), "").expect("a scratch file");
    assert_eq!(bed.look(&[]).0.pss, Some(1 << 20));
    Made { state: 'Z', threads: 2, ..Made::new(10, 1) }.write(&root, "");
    for (name, text) in [("statm", "900 4 0 0 0 0 0\n"), ("smaps_rollup", "x\nRss: 8 kB\nPss: 4 kB\n")] {
        fs::write(other.join(name), text).expect("a scratch file");
        fs::write(folder.join(name), if name == "statm" { "0 0 0 0 0 0 0\n" } else { "" }).expect("a scratch file");
    }
    let (memory, _) = bed.look(&[]);
    assert_eq!((memory.rss, memory.pss, memory.processes), (8 << 10, Some(4 << 10), 1));
    assert_eq!(bed.census.memory(ROOT, false).expect("readable").rss, 4 * page_size());
}

#[test]
fn a_kernel_without_lists_of_children_is_asked_for_parents() {
    let mut bed = Bed::new();
    let root = bed.root().to_owned();
    Made::new(10, 1).write(&root, "");
    Made::new(11, 10).write(&root, "");
    Made::new(12, 11).write(&root, "");
    for pid in [10, 11, 12] {
        fs::remove_file(root.join(format!("{pid}/task/{pid}/children"))).expect("a scratch file");
    }
    assert_eq!(bed.look(&[]).0.processes, 3);
}

#[test]
fn time_of_children_moves_to_who_waited_and_is_kept_otherwise() {
    for files in [0, 1000] {
        let mut bed = Bed::keeping(files);
        let root = bed.root().to_owned();
        Made::new(10, 1).write(&root, "11 12");
        Made::new(11, 10).write(&root, "");
        Made::new(12, 10).write(&root, "");
        assert_eq!(bed.look(&[]).1, 300);
        // 11 was waited for after 20 more, 12 by nobody.
        Made::end(11, &root);
        Made { waited: 120, ..Made::new(10, 1) }.write(&root, "12");
        assert_eq!(bed.look(&[]).1, 320);
        Made::end(12, &root);
        Made { waited: 120, ..Made::new(10, 1) }.write(&root, "");
        assert_eq!(bed.look(&[]).1, 320);
        Made { waited: 120, own: 130, ..Made::new(10, 1) }.write(&root, "");
        assert_eq!(bed.look(&[]).1, 350);
        Made::end(10, &root);
        let (memory, cpu) = bed.look(&[]);
        assert_eq!((memory.processes, cpu), (0, 350));
    }
}

#[test]
fn a_root_is_looked_at_once_more_as_it_was_at_its_end() {
    for files in [0, 1000] {
        // It may have been seen before, with a child that it has waited for since, or never.
        for seen in [true, false] {
            let mut bed = Bed::keeping(files);
            let root = bed.root().to_owned();
            Made::new(10, 1).write(&root, "11 12");
            Made::new(11, 10).write(&root, "");
            Made::new(12, 10).write(&root, "");
            if seen {
                assert_eq!(bed.look(&[]).1, 300);
            }
            Made::end(11, &root);
            Made { state: 'Z', own: 150, waited: 140, ..Made::new(10, 1) }.write(&root, "");
            bed.ends.note(&Proc::at(&root), 10);
            Made::end(10, &root);
            let (memory, cpu) = bed.look(&[12]);
            // The other child, an orphan by now, is known by its group, or because it was seen.
            assert_eq!((memory.processes, cpu), (1, 390), "{seen}");
            Made { parent: 1, own: 160, ..Made::new(12, 1) }.write(&root, "");
            assert_eq!(bed.look(&[12]).1, 450);
            Made::end(12, &root);
            for _ in 0..2 {
                let (memory, cpu) = bed.look(&[]);
                assert_eq!((memory.processes, cpu), (0, 450));
            }
        }
    }
}

#[test]
fn what_another_process_of_that_pid_showed_is_not_the_roots() {
    let mut bed = Bed::new();
    let root = bed.root().to_owned();
    Made::new(10, 1).write(&root, "");
    assert_eq!(bed.look(&[]).1, 100);
    Made { started: 8, own: 900, ..Made::new(10, 1) }.write(&root, "");
    bed.ends.note(&Proc::at(&root), 10);
    assert_eq!(bed.look(&[]).1, 100);
    Made::end(10, &root);
    assert_eq!(bed.look(&[]).1, 100);
}

#[test]
fn descriptors_go_with_the_processes() {
    let mut bed = Bed::new();
    let root = bed.root().to_owned();
    Made::new(10, 1).write(&root, "11");
    Made::new(11, 10).write(&root, "");
    bed.look(&[]);
    // stat, children and smaps_rollup of each; statm was never needed.
    assert_eq!(bed.census.kept(), 6);
    Made::end(11, &root);
    Made::new(10, 1).write(&root, "");
    bed.look(&[]);
    assert_eq!(bed.census.kept(), 3);
    bed.census.walk(&[], &[]).expect("there are descriptors");
    assert_eq!(bed.census.kept(), 0);
}
