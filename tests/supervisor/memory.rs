//! Memory and CPU time of trees, as the events tell them: nobody forgotten, nothing counted twice, nothing left in the log.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{Gid, Uid, chown, geteuid};
use serde_json::{Value, json};

use crate::cases::Case;
use crate::harness::eventually;
use crate::job::{Ended, Job};
use crate::jobs::{driver, server, with};

pub const CASES: &[Case] = &[
    ("shared_pages_are_counted_once_in_pss", shared_pages_are_counted_once_in_pss),
    ("threads_are_no_processes_but_their_children_are", threads_are_no_processes_but_their_children_are),
    ("a_process_that_hides_its_memory_costs_its_tree_the_pss", a_process_that_hides_its_memory_costs_its_tree_the_pss),
    ("another_program_in_the_same_process_is_read_anew", another_program_in_the_same_process_is_read_anew),
    ("a_fork_that_has_its_parents_memory_counts_no_memory", a_fork_that_has_its_parents_memory_counts_no_memory),
    ("the_first_threads_end_is_not_the_end", the_first_threads_end_is_not_the_end),
    ("who_left_the_tree_without_a_mark_is_still_counted", who_left_the_tree_without_a_mark_is_still_counted),
    ("names_and_reserved_addresses_mislead_nobody", names_and_reserved_addresses_mislead_nobody),
    ("many_regions_are_counted_whole", many_regions_are_counted_whole),
    ("many_processes_and_few_descriptors", many_processes_and_few_descriptors),
];

fn mib(value: &Value) -> u64 {
    value.as_u64().expect("bytes") >> 20
}

/// The trees of a process in all samples.
pub fn trees<'a>(events: &'a [Value], process: &str) -> Vec<&'a Value> {
    let samples = events.iter().filter(|event| event["event"] == "memory_sampled");
    samples.flat_map(|s| s["trees"].as_array().expect("a list")).filter(|tree| tree["process"] == process).collect()
}

/// Those of them whose proportional set was read: a tick that comes late may leave that to the next.
fn exact<'a>(events: &'a [Value], process: &str) -> Vec<&'a Value> {
    trees(events, process).into_iter().filter(|tree| !tree["pss"].is_null()).collect()
}

/// Runs servers until the trees of a sample are as they should be, and to their end.
#[track_caller]
fn until(job: &Value, what: &str, is_so: impl Fn(&dyn Fn(&str) -> Value) -> bool) -> Ended {
    until_with(job, what, |_| {}, is_so)
}

#[track_caller]
fn until_with(
    job: &Value,
    what: &str,
    change: impl FnOnce(&mut Command),
    is_so: impl Fn(&dyn Fn(&str) -> Value) -> bool,
) -> Ended {
    let job = with(with(job.clone(), "driver", driver("wait:@DIR/seen")), "pss", true);
    let running = Job::start_with(&job, change);
    eventually(what, || {
        let events = running.events();
        let last = events.iter().rfind(|event| event["event"] == "memory_sampled")?;
        let tree = |name: &str| {
            let trees = last["trees"].as_array().and_then(|t| t.iter().find(|t| t["process"] == name));
            trees.cloned().unwrap_or_default()
        };
        is_so(&tree).then_some(())
    });
    std::fs::write(running.path("seen"), "").expect("a scratch file");
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    ended
}

/// Bytes from `least` up to `most` MiB.
fn within(value: &Value, least: u64, most: u64) -> bool {
    value.as_u64().is_some_and(|bytes| (least..most).contains(&(bytes >> 20)))
}

fn shared_pages_are_counted_once_in_pss() {
    let forks = "fork { forever } ".repeat(8);
    let ended = until(
        &json!({"servers": {
            "forks": server(&format!("hold:512 {forks} serve:${{port:self}} forever")),
            "memfd": server(&format!("memfd:64 {forks} serve:${{port:self}} forever")),
        }}),
        "both trees whole",
        |tree| ["forks", "memfd"].iter().all(|name| tree(name)["processes"] == 9 && !tree(name)["pss"].is_null()),
    );
    let last = |name: &str| (*exact(&ended.events, name).last().expect("a sample")).clone();
    let forks = last("forks");
    assert!(mib(&forks["rss"]) >= 9 * 512 && within(&forks["pss"], 512, 650), "{forks}");
    // Pages of a shared mapping count in whoever touched them: nobody but the parent here.
    let memfd = last("memfd");
    assert!(within(&memfd["pss"], 64, 128), "{memfd}");
    // The cgroup that all run in, where this machine shows one.
    let sample = ended.all("memory_sampled").pop().expect("a sample");
    if let Some(cgroup) = sample["cgroup"].as_object() {
        assert!(cgroup["used"].as_u64() >= Some(1) && cgroup["peak"].as_u64() >= cgroup["used"].as_u64(), "{sample}");
    }
}

fn threads_are_no_processes_but_their_children_are() {
    let ended = until(
        &json!({"servers": {
            "threads": server("hold:300 threads:200 serve:${port:self} forever"),
            // Children of threads that are not the first; one thread comes when the other is gone.
            "parents": server("beside { fork { hold:32 forever } forever } beside { run { hold:32 forever } } serve:${port:self} forever"),
        }}),
        "children of threads",
        |tree| tree("parents")["processes"] == 3 && within(&tree("parents")["pss"], 64, 128),
    );
    for tree in trees(&ended.events, "threads") {
        assert!(tree["processes"] == 1 && within(&tree["rss"], 300, 360), "{tree}");
    }
}

/// An executable that everybody can run, for a job of another user.
fn executable_for_all() -> &'static Path {
    static COPY: OnceLock<(PathBuf, Option<tempfile::TempDir>)> = OnceLock::new();
    let (path, _) = COPY.get_or_init(|| {
        let own = std::env::current_exe().expect("a test has a file");
        let open = |at: &Path| std::fs::metadata(at).is_ok_and(|meta| meta.mode() & 0o001 != 0);
        if own.ancestors().all(open) {
            return (own, None);
        }
        let folder = tempfile::tempdir().expect("a scratch directory");
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
        let copy = folder.path().join("supervisor");
        std::fs::copy(own, &copy).expect("there is room");
        (copy, Some(folder))
    });
    path
}

/// Makes the gymrun under test one of a user who may look at nobody else's memory.
fn unprivileged(command: &mut Command) {
    const NOBODY: u32 = 65_534;
    if geteuid().is_root() {
        let folder = command.get_args().last().map(PathBuf::from).expect("the job's directory");
        for path in [folder.join("job.json"), folder] {
            chown(&path, Some(Uid::from_raw(NOBODY)), Some(Gid::from_raw(NOBODY))).expect("root may");
        }
        command.uid(NOBODY).gid(NOBODY);
    }
}

fn a_process_that_hides_its_memory_costs_its_tree_the_pss() {
    let own = std::env::current_exe().expect("a test has a file").display().to_string();
    let job = json!({"servers": {
        "hides": server("hold:16 fork { hold:32 undumpable forever } serve:${port:self} forever"),
        // After it was looked at.
        "later": server("hold:16 serve:${port:self} wait:@DIR/driver undumpable forever"),
        "open": server("hold:16 fork { hold:32 forever } serve:${port:self} forever"),
    }});
    let copy = executable_for_all().display().to_string();
    let mut job: Value = serde_json::from_str(&job.to_string().replace(&own, &copy)).expect("JSON");
    let steps = "append:@DIR/driver:x wait:@DIR/seen";
    job["driver"] = serde_json::from_str(&driver(steps).to_string().replace(&own, &copy)).expect("JSON");
    job["pss"] = true.into();
    let running = Job::start_with(&job, |command| {
        let arguments: Vec<_> = command.get_args().map(std::ffi::OsStr::to_owned).collect();
        let mut other = Command::new(&copy);
        other.args(arguments).stdin(std::process::Stdio::null());
        other.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        *command = other;
        unprivileged(command);
    });
    let hidden = |events: &[Value], name: &str| {
        trees(events, name).last().is_some_and(|tree| tree["pss"].is_null() && within(&tree["rss"], 16, 200))
    };
    // Whoever forks does not wait until its child holds what it is to hold.
    let last =
        |events: &[Value], name: &str| trees(events, name).last().map(|tree| (*tree).clone()).unwrap_or_default();
    eventually("both hide, and all is held", || {
        let events = running.events();
        let hides = last(&events, "hides");
        let open = exact(&events, "open").last().is_some_and(|tree| within(&tree["pss"], 48, 100));
        let whole = hides["processes"] == 2 && within(&hides["rss"], 64, 200) && open;
        (whole && hidden(&events, "hides") && hidden(&events, "later")).then_some(())
    });
    std::fs::write(running.path("seen"), "").expect("a scratch file");
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let hides = last(&ended.events, "hides");
    assert!(hides["processes"] == 2 && hides["pss"].is_null() && mib(&hides["rss"]) >= 64, "{hides}");
    // Nobody else's is left out.
    let open = (*exact(&ended.events, "open").last().expect("a sample")).clone();
    assert!(open["processes"] == 2 && within(&open["pss"], 48, 100), "{open}");
    for name in ["hides", "later"] {
        let about: Vec<_> = ended.warnings().into_iter().filter(|w| w["process"] == name).collect();
        assert_eq!(about.len(), 1, "{about:?}");
    }
}

fn another_program_in_the_same_process_is_read_anew() {
    let ended = until(
        &json!({"servers": {
            "shrinks": server("fork { hold:96 append:@DIR/held:x sleep:0.5 execute { forever } } serve:${port:self} forever"),
            "grows": server("fork { sleep:0.5 execute { hold:96 forever } } serve:${port:self} forever"),
        }}),
        "both execute another program",
        |tree| within(&tree("shrinks")["pss"], 0, 96) && within(&tree("grows")["pss"], 96, 160),
    );
    assert!(ended.warnings().is_empty(), "{:?}", ended.warnings());
    for name in ["shrinks", "grows"] {
        for tree in trees(&ended.events, name) {
            // Never the old program's, never both.
            assert!(tree["processes"] == 2 && within(&tree["rss"], 0, 200), "{tree}");
            assert!(tree["pss"].as_u64() <= tree["rss"].as_u64(), "{tree}");
        }
    }
}

fn a_fork_that_has_its_parents_memory_counts_no_memory() {
    let ended =
        until(&json!({"servers": {"a": server("hold:96 serve:${port:self} borrow forever")}}), "the fork", |tree| {
            tree("a")["processes"] == 2 && !tree("a")["pss"].is_null()
        });
    for tree in exact(&ended.events, "a") {
        assert!(within(&tree["rss"], 96, 180) && within(&tree["pss"], 96, 180), "{tree}");
    }
}

fn the_first_threads_end_is_not_the_end() {
    let steps = "fork { hold:48 pid:@DIR/pid beside { append:@DIR/up:x forever } wait:@DIR/up leave } serve:${port:self} forever";
    let running =
        Job::start(&json!({"pss": true, "servers": {"a": server(steps)}, "driver": driver("wait:@DIR/seen")}));
    let stat = format!("/proc/{}/stat", running.wait_for("pid").trim());
    eventually("its first thread's end", || std::fs::read_to_string(&stat).ok()?.contains(") Z ").then_some(()));
    let count = trees(&running.events(), "a").len();
    let later = |events: &[Value], of: fn(&Value) -> bool| {
        trees(events, "a").into_iter().skip(count + 1).filter(|tree| of(tree)).count()
    };
    eventually("later samples", || (later(&running.events(), |tree| !tree["pss"].is_null()) >= 2).then_some(()));
    // The others have what it had.
    let events = running.events();
    let whole = |tree: &Value| tree["processes"] == 2 && within(&tree["rss"], 48, 200);
    let exact = |tree: &Value| tree["pss"].is_null() || within(&tree["pss"], 48, 120);
    assert_eq!(later(&events, |_| true), later(&events, whole), "{events:?}");
    assert_eq!(later(&events, |_| true), later(&events, exact), "{events:?}");
    std::fs::write(running.path("seen"), "").expect("a scratch file");
    assert_eq!(running.end().code, Some(0));
}

fn who_left_the_tree_without_a_mark_is_still_counted() {
    // It is seen as a grandchild first; then its parent ends, and neither environment nor session nor group tell of it.
    let steps =
        "fork { fork { hold:32 session bare { hold:32 forever } } wait:@DIR/go exit:0 } serve:${port:self} forever";
    let job = json!({"pss": true, "servers": {"a": server(steps)}, "driver": driver("wait:@DIR/seen")});
    let running = Job::start(&job);
    let last = || trees(&running.events(), "a").last().map(|tree| (*tree).clone()).unwrap_or_default();
    eventually("the grandchild", || (last()["processes"] == 3 && within(&last()["pss"], 32, 100)).then_some(()));
    std::fs::write(running.path("go"), "").expect("a scratch file");
    eventually("its parent's end", || (last()["processes"] == 2).then_some(()));
    let count = exact(&running.events(), "a").len();
    eventually("more samples", || (exact(&running.events(), "a").len() > count + 3).then_some(()));
    let events = running.events();
    let last = exact(&events, "a").pop().expect("a sample");
    assert!(last["processes"] == 2 && within(&last["pss"], 32, 100), "{last}");
    std::fs::write(running.path("seen"), "").expect("a scratch file");
    assert_eq!(running.end().code, Some(0));
}

fn names_and_reserved_addresses_mislead_nobody() {
    let ended = until(
        &json!({"servers": {
            "named": server("name:a)_Z_1_1_1 fork { name:))_R_(( hold:32 forever } serve:${port:self} forever"),
            "sparse": server("sparse:1024 hold:32 serve:${port:self} forever"),
        }}),
        "both",
        |tree| tree("named")["processes"] == 2 && within(&tree("named")["pss"], 32, 100),
    );
    for tree in exact(&ended.events, "sparse") {
        assert!(within(&tree["rss"], 32, 100) && within(&tree["pss"], 32, 100), "{tree}");
    }
}

fn many_regions_are_counted_whole() {
    // 20,000 of a page each, which a child shares, and has 10,000 more: a process may have 65,530.
    let steps = "regions:20000 fork { regions:10000 forever } serve:${port:self} forever";
    let ended = until(&json!({"servers": {"a": server(steps)}}), "all regions", |tree| {
        tree("a")["processes"] == 2 && within(&tree("a")["pss"], 117, 160)
    });
    let last = (*exact(&ended.events, "a").last().expect("a sample")).clone();
    assert!(within(&last["rss"], 195, 280) && within(&last["pss"], 117, 160), "{last}");
    assert!(ended.warnings().is_empty(), "{:?}", ended.warnings());
}

fn many_processes_and_few_descriptors() {
    let servers: serde_json::Map<String, Value> = (0..9)
        .map(|number| {
            let forks = "fork { forever } ".repeat(29);
            (format!("s{number}"), server(&format!("{forks} serve:${{port:self}} forever")))
        })
        .collect();
    // 270 processes have three or four files each.
    let few = |command: &mut Command| {
        let limit = || setrlimit(Resource::RLIMIT_NOFILE, 256, 256).map_err(std::io::Error::from);
        #[expect(unsafe_code, reason = "the limit is that of the gymrun under test alone")]
        // SAFETY: one system call.
        unsafe {
            command.pre_exec(limit);
        }
    };
    let ended = until_with(&json!({"servers": servers}), "all trees whole", few, |tree| {
        (0..9).map(|number| tree(&format!("s{number}"))).all(|tree| tree["processes"] == 30 && tree["pss"].is_u64())
    });
    assert!(ended.warnings().is_empty(), "{:?}", ended.warnings());
    let last = ended.all("memory_sampled").pop().expect("a sample").clone();
    // gymrun itself is in none of them.
    let all = last["trees"].as_array().expect("a list");
    assert_eq!(all.iter().filter_map(|tree| tree["processes"].as_u64()).sum::<u64>(), 270);
}
