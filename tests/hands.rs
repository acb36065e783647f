//! What others do to a run from outside: limits, disks and devices that are full, and files that somebody takes away or puts
//! in the place of others.

mod harness;

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;

use harness::{Job, eventually, limit_files, skip};
use nix::sys::resource::{Resource, setrlimit};

/// A job without a collector whose driver runs `shell`.
fn driver(shell: &str) -> String {
    format!("name: t\notel: {{enabled: false}}\ndriver:\n  shell: |\n    {}\n", shell.replace('\n', "\n    "))
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_that_is_told() {
    for limit in [0, 100, 1 << 10, 4 << 10, 16 << 10] {
        let job = Job::new("job.yaml", &driver("head -c 100000 /dev/zero; exit 3"));
        let ended = job.start_with(|command| limit_files(command, limit)).end();
        assert!(matches!(ended.code, Some(3 | 125)), "{limit}: {:?} {}", ended.code, ended.stderr);
        assert!(ended.stderr.contains("File too large"), "{limit}: {}", ended.stderr);
    }
}

#[test]
fn an_attempt_that_was_killed_is_not_forgotten_by_one_that_comes_to_nothing() {
    let job = Job::new("job.yaml", &driver("exit 0"));
    assert_eq!(job.run(&[]).code, Some(0));
    // As if it had been killed.
    fs::remove_file(job.directory().path("result.json")).expect("a result");
    for _ in 0..2 {
        // There is no room for the next one.
        let ended = job.start_with(|command| limit_files(command, 0)).end();
        assert_eq!(ended.code, Some(125), "{}", ended.stderr);
    }
    let said = |ended: &harness::Ended| ended.stderr.contains("did not end cleanly");
    let ended = job.run(&[]);
    assert!(said(&ended), "{}", ended.stderr);
    let attempt = job.directory().path("attempts/1");
    assert!(ended.stderr.contains(&attempt.display().to_string()) && attempt.join("plan.json").exists());
    // Once is enough.
    let ended = job.run(&[]);
    assert!(!said(&ended), "{}", ended.stderr);
    assert!(job.directory().path("attempts/2/result.json").exists());
}

#[test]
fn a_working_directory_that_is_no_text_is_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let job = Job::new("job.yaml", &driver("exit 0"));
    let folder = job.folder().join(std::ffi::OsStr::from_bytes(b"bad-\xff"));
    fs::create_dir(&folder).expect("a folder");
    let ended = job
        .start_with(|command| {
            command.current_dir(&folder);
        })
        .end();
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("its name is no UTF-8"), "{}", ended.stderr);
}

#[test]
fn a_stdout_that_takes_nothing_more_is_told() {
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
    let job = Job::new("job.yaml", &driver("echo result; exit 3"));
    let mut program = job.start_into(full());
    let status = eventually("the end", || program.status());
    assert_eq!(status.code(), Some(3));
    let warnings = job.directory().json("result.json")["warnings"].to_string();
    assert!(warnings.contains("its stdout cannot be passed on any more: No space left"), "{warnings}");
    assert_eq!(job.directory().text("logs/driver.log"), "result\n");
}

#[test]
fn events_that_stdout_does_not_take_are_told_once() {
    let job = Job::new("job.yaml", &driver("exit 3"));
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
    let (mut told, stderr) = std::io::pipe().expect("a pipe");
    let mut program = job.start_json(full, stderr);
    let mut said = String::new();
    told.read_to_string(&mut said).expect("text");
    assert_eq!(eventually("the end", || program.status()).code(), Some(3));
    assert_eq!(said.matches("stdout does not have all events: No space left").count(), 1, "{said}");
    assert_eq!(job.directory().events("job_ended").len(), 1);
}

#[test]
#[expect(unsafe_code, reason = "a limit is set between fork and exec")]
fn a_driver_whose_output_nobody_can_read_is_not_started() {
    if !nix::unistd::geteuid().is_root() {
        return skip("root", "only root can be another user, whose processes are counted apart");
    }
    let user = 1_000_000_000 + std::process::id();
    let (mut ran, mut refused) = (0, 0);
    for most in 2..=30 {
        let job = Job::new("job.yaml", &driver("echo told"));
        chown(job.folder(), Some(user), Some(user)).expect("the test is root");
        let limit = move || Ok(setrlimit(Resource::RLIMIT_NPROC, most, most)?);
        let running = job.start_with(|command| {
            // SAFETY: a system call alone.
            unsafe { command.uid(user).gid(user).pre_exec(limit) };
        });
        let ended = running.end();
        let said = format!("{most}: {:?} {}", ended.code, ended.stderr);
        if ended.code == Some(0) {
            ran += 1;
            assert_eq!(ended.stdout, "told\n", "{said}");
            assert_eq!(job.directory().text("logs/driver.log"), "told\n", "{said}");
        } else {
            refused += 1;
            assert!(ended.code == Some(125) && ended.stderr.contains("`ulimit -u`"), "{said}");
        }
    }
    assert!(ran > 0 && refused > 0, "{ran}, {refused}");
}

#[test]
fn files_that_somebody_takes_away_are_told() {
    let shell = "echo one; until test -s \"$GYMRUN_JOB_DIR/logs/driver.log\"; do sleep 0.05; done\n\
                 rm \"$GYMRUN_JOB_DIR/logs/driver.log\" \"$GYMRUN_JOB_DIR/events.jsonl\"; echo two";
    let job = Job::new("job.yaml", &driver(shell));
    let ended = job.run(&[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for words in ["somebody has removed it while it was written", "4 bytes of its output", "removed events.jsonl"] {
        assert!(ended.stderr.contains(words), "{words}\n{}", ended.stderr);
    }
    assert_eq!(job.directory().text("logs/driver.log"), "two\n");
    assert_eq!(job.directory().json("result.json")["processes"]["driver"]["log_lost_bytes"], 4);
}

#[test]
fn a_log_that_is_taken_away_from_its_process_is_told_once() {
    // Removed; with another in its place; moved; and one that nobody touches, though it is written like the others.
    let script = "cd \"$GYMRUN_JOB_DIR\"; rm logs/a.log; mv logs/b.log b.old; echo >logs/b.log; mv logs/c.log c.old\n                    until [ $(grep -c 'removed its log' events.jsonl) = 3 ]; do sleep 0.05; done; touch logs/other";
    let service = "{shell: 'echo one; while sleep 0.1; do echo more; done'}";
    let job = Job::new(
        "job.yaml",
        &format!(
            "name: t\notel: {{enabled: false}}\nservices: {{a: {service}, b: {service}, c: {service}, d: {service}}}\n\
             driver:\n  shell: |\n    {}\n",
            script.replace('\n', "\n  ")
        ),
    );
    let ended = job.run(&[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("somebody has removed its log").count(), 3, "{}", ended.stderr);
    for name in ["a", "b", "c"] {
        let log = job.directory().path(&format!("logs/{name}.log"));
        let said = format!("warning: {name}: somebody has removed its log `{}` while it was written", log.display());
        assert!(ended.stderr.contains(&said), "{said}\n{}", ended.stderr);
    }
}

#[test]
fn what_was_put_in_the_place_of_a_log_is_not_waited_for() {
    for log in ["file", "pipe"] {
        let text = format!(
            "name: t\notel: {{enabled: false}}\nservices:\n  pipes:\n    type: task\n    \
             shell: 'mkfifo \"$GYMRUN_JOB_DIR/logs/late.log\"'\n  \
             late: {{command: [head, -c, '300000', /dev/zero], log: {log}, type: task, depends_on: [pipes]}}\n\
             driver: {{shell: 'exit 3'}}\n"
        );
        let job = Job::new("job.yaml", &text);
        let ended = job.run(&[]);
        // A process that has no log is not started; what gymrun copies is shown all the same.
        assert_eq!(ended.code, Some(if log == "file" { 125 } else { 3 }), "{}", ended.stderr);
        assert!(ended.stderr.contains("late.log") && ended.stderr.contains("it is no file"), "{}", ended.stderr);
    }
}

#[test]
fn a_terminal_that_goes_away_changes_nothing_for_the_job() {
    let job = Job::new(
        "job.yaml",
        "name: t\notel: {enabled: false}\nservices:\n  a: {type: task, log: pipe, shell: 'echo one; exec sleep 0.2'}\n\
         driver:\n  shell: |\n    touch begun; until test -e go; do sleep 0.02; done; echo two; exit 3\n",
    );
    let terminal = nix::pty::openpty(None, None).expect("a terminal");
    let mut program = job.start_into(fs::File::from(terminal.slave));
    let begun = job.folder().join("begun");
    eventually("the driver runs", || begun.exists().then_some(()));
    // From now on whoever writes there gets an error.
    drop(terminal.master);
    fs::write(job.folder().join("go"), "").expect("a scratch file");
    assert_eq!(eventually("the end", || program.status()).code(), Some(3));
    let result = job.directory().json("result.json");
    assert_eq!(result["code"], 3, "{result}");
    assert_eq!(job.directory().text("logs/driver.log"), "two\n");
}
