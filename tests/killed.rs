//! gymrun itself is killed: what dies with it, what the next run says, and what it ends.

mod harness;

use std::path::PathBuf;

use harness::processes::Process;
use harness::{Job, Place, Running, eventually};
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
    let guard = harness::processes::descendants_of(running.pid()).into_iter().find(|process| {
        std::fs::read_to_string(format!("/proc/{}/comm", process.pid)).is_ok_and(|name| name.trim() == "job-guard")
    });
    end(&guard.expect("a guard"));
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
