//! gymrun itself is killed: what dies with it, what the next run says, and what it ends.

mod harness;

use std::path::PathBuf;

use harness::processes::Process;
use harness::{Job, Place, Running, eventually, tell_beforehand};
use nix::sys::signal::Signal;

/// Writes its pid down, and obeys nothing but SIGKILL: a member of its group, a daemon, and one without a mark.
const LEAVES: &str = r#"deaf='trap "" TERM; echo $$ >"$1.new"; mv "$1.new" "$1"; while :; do sleep 1; done'
sh -c "$deaf" x "$GYMRUN_JOB_DIR/artifacts/member" &
setsid sh -c "$deaf" x "$GYMRUN_JOB_DIR/artifacts/daemon" >/dev/null 2>&1 &
env -i setsid sh -c "PATH=$PATH; $deaf" x "$GYMRUN_JOB_DIR/artifacts/bare" >/dev/null 2>&1 &
echo $$ >"$GYMRUN_JOB_DIR/artifacts/own"
echo up
wait"#;

const KINDS: [&str; 3] = ["member", "daemon", "bare"];

fn job_of(shell: &str) -> String {
    format!("name: t\notel: {{enabled: false}}\ndriver:\n  shell: |\n    {}\n", shell.replace('\n', "\n    "))
}

/// Starts a job, kills its gymrun, and gives what it has left behind: the driver, then [`KINDS`].
fn kill(job: &Job, running: Running) -> (Process, [Process; 3]) {
    running.wait_for_stdout("up");
    let find = |name: &str| {
        let file: PathBuf = job.directory().path("artifacts").join(name);
        let pid = eventually(name, || std::fs::read_to_string(&file).ok()?.trim().parse().ok());
        Process::find(pid).unwrap_or_else(|| panic!("{name} does not run"))
    };
    let left = (find("own"), KINDS.map(find));
    running.signal(Signal::SIGKILL);
    assert_eq!(running.end().code, None);
    left
}

fn end(process: &Process) {
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(process.pid.cast_signed()), Signal::SIGKILL);
}

#[test]
fn without_cgroups_the_next_run_ends_what_is_left_and_says_so() {
    let Some(place) = Place::make(false, None) else { return };
    let job = Job::new("job.yaml", &job_of(LEAVES));
    let (own, [member, daemon, bare]) = kill(&job, job.start_in(&place, &[]));
    eventually("its child dies with it", || own.is_gone().then_some(()));
    assert!(!daemon.is_gone() && !member.is_gone(), "what that has started does not");
    job.rewrite(&job_of("echo second"));
    let ended = job.start_in(&place, &[]).end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // By their marks; of the one that has none nobody knows.
    assert!(member.is_gone() && daemon.is_gone() && !bare.is_gone());
    end(&bare);
    let attempt = job.directory().path("attempts/1");
    for words in [
        "the former attempt did not end cleanly",
        &attempt.display().to_string(),
        "its processes still ran, and were killed: ",
        "sh (pid ",
    ] {
        assert!(ended.stderr.contains(words), "{words}\n{}", ended.stderr);
        assert!(job.directory().json("result.json")["warnings"].to_string().contains(words), "{words}");
    }
    assert!(ended.stderr.contains("hint: gymrun itself was killed"), "{}", ended.stderr);
    assert_eq!(job.directory().json("result.json")["containment"]["by"], "walk");
    // Once is enough.
    assert!(!job.start_in(&place, &[]).end().stderr.contains("cleanly"));
}

#[test]
fn with_cgroups_all_die_with_it() {
    let Some(place) = Place::make(true, None) else { return };
    let job = Job::new("job.yaml", &job_of(LEAVES));
    let (own, left) = kill(&job, job.start_in(&place, &[]));
    for process in left.iter().chain([&own]) {
        eventually("it dies with gymrun", || process.is_gone().then_some(()));
    }
    eventually("nobody lives there", || place.inhabitants().is_empty().then_some(()));
    job.rewrite(&job_of("echo second"));
    let ended = job.start_in(&place, &[]).end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("the former attempt did not end cleanly"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("still ran"), "{}", ended.stderr);
    assert_eq!(job.directory().json("result.json")["containment"]["by"], "cgroup");
    assert!(place.below().is_empty(), "{:?}", place.below());
}

#[test]
fn with_cgroups_but_without_the_guard_the_next_run_ends_all() {
    let Some(place) = Place::make(true, None) else { return };
    let job = Job::new("job.yaml", &job_of(LEAVES));
    let running = job.start_in(&place, &[]);
    running.wait_for_stdout("up");
    let is_guard = |process: &Process| {
        std::fs::read_to_string(format!("/proc/{}/comm", process.pid)).is_ok_and(|name| name.trim() == "job-guard")
    };
    // It takes its name when it runs.
    let descendants = || harness::processes::descendants_of(running.pid()).into_iter();
    let guard = eventually("a guard", || descendants().find(is_guard));
    end(&guard);
    let (_, left) = kill(&job, running);
    // A job in another directory leaves them alone.
    let other = Job::new("job.yaml", &job_of("echo other"));
    assert_eq!(other.start_in(&place, &[]).end().code, Some(0));
    assert!(left.iter().all(|process| !process.is_gone()));
    job.rewrite(&job_of("echo second"));
    let ended = job.start_in(&place, &[]).end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(left.iter().all(Process::is_gone));
    assert!(ended.stderr.contains("its processes still ran, and were killed: "), "{}", ended.stderr);
    assert!(place.below().is_empty() && place.inhabitants().is_empty());
}

/// Starts a run that was told to stop before it could hear that.
fn start_told(job: &Job, place: &Place) -> Running {
    job.start_with(|command| {
        place.put(command);
        tell_beforehand(command, Signal::SIGTERM);
    })
}

#[test]
fn a_run_that_is_told_to_stop_ends_what_is_left_all_the_same() {
    let Some(place) = Place::make(false, None) else { return };
    let job = Job::new("job.yaml", &job_of(LEAVES));
    let (_, [member, daemon, bare]) = kill(&job, job.start_in(&place, &[]));
    job.rewrite(&job_of("echo second"));
    let ended = start_told(&job, &place).end();
    end(&bare);
    assert_eq!(ended.code, Some(143), "{}", ended.stderr);
    assert!(job.directory().events("process_started").is_empty(), "it was told before");
    // A moment may pass until they have, which nobody waits for here.
    for process in [&member, &daemon] {
        eventually("it has ended", || process.is_gone().then_some(()));
    }
    assert!(ended.stderr.contains("its processes still ran, and were killed: "), "{}", ended.stderr);
    assert_eq!(job.directory().json("result.json")["class"], "told_to_stop");
}

#[test]
fn what_cannot_be_killed_is_waited_for_within_a_limit_and_not_by_who_is_told_to_stop() {
    let Some(place) = Place::make(false, None) else { return };
    for told in [true, false] {
        let job = Job::new("job.yaml", &job_of(LEAVES));
        let (_, [member, daemon, bare]) = kill(&job, job.start_in(&place, &[]));
        let Some(frozen) = Frozen::freeze(&daemon) else {
            return [member, daemon, bare].iter().for_each(end);
        };
        job.rewrite(&job_of("echo second"));
        let ended = if told { start_told(&job, &place) } else { job.start_in(&place, &[]) }.end();
        end(&bare);
        assert_eq!(ended.code, Some(if told { 143 } else { 0 }), "{}", ended.stderr);
        let why = if told { "not waited for, since gymrun was told to stop" } else { "could not be killed" };
        assert!(ended.stderr.contains(&format!("; {why}: pid {}", daemon.pid)), "{}", ended.stderr);
        assert!(!daemon.is_gone());
        // It was killed, and dies as soon as it can.
        drop(frozen);
        for process in [&member, &daemon] {
            eventually("it has ended", || process.is_gone().then_some(()));
        }
    }
}

/// A process that nothing can end: it is in a frozen cgroup of the first version.
struct Frozen(PathBuf);

impl Frozen {
    fn freeze(process: &Process) -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("Linux");
        let freezer = mounts.lines().find_map(|line| {
            let (place, kind) = line.split_once(" - cgroup ")?;
            let has = kind.rsplit(' ').next()?.split(',').any(|controller| controller == "freezer");
            has.then(|| PathBuf::from(place.split(' ').nth(4).unwrap_or_default()))
        });
        let Some(freezer) = freezer else {
            harness::skip(
                "freezer",
                "no freezer of version 1 is mounted, and in one of version 2 processes can be killed",
            );
            return None;
        };
        let own = freezer.join(format!("gymrun-test-{}-{}", std::process::id(), process.pid));
        if let Err(error) = std::fs::create_dir(&own) {
            harness::skip("freezer", &format!("{}: {error}", own.display()));
            return None;
        }
        let frozen = Self(own);
        std::fs::write(frozen.0.join("cgroup.procs"), process.pid.to_string()).expect("a cgroup of the test's");
        std::fs::write(frozen.0.join("freezer.state"), "FROZEN").expect("a cgroup of the test's");
        let state = || std::fs::read_to_string(frozen.0.join("freezer.state")).unwrap_or_default();
        eventually("it is frozen", || (state().trim() == "FROZEN").then_some(()));
        Some(frozen)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = std::fs::write(self.0.join("freezer.state"), "THAWED");
        let end = std::time::Instant::now() + harness::DEADLINE;
        while std::fs::remove_dir(&self.0).is_err() && std::time::Instant::now() < end {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

#[test]
fn another_job_of_the_same_name_is_left_alone() {
    // The same job id in another directory: its processes carry almost the same marks.
    let Some(place) = Place::make(false, None) else { return };
    let other = Job::new("job.yaml", &job_of("echo up; sleep 300"));
    let lives = other.start_in(&place, &[]);
    lives.wait_for_stdout("up");
    let job = Job::new("job.yaml", &job_of(LEAVES));
    let (_, left) = kill(&job, job.start_in(&place, &[]));
    job.rewrite(&job_of("echo second"));
    assert_eq!(job.start_in(&place, &[]).end().code, Some(0));
    end(&left[2]);
    lives.signal(Signal::SIGTERM);
    assert_eq!(lives.end().code, Some(143));
}
