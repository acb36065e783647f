//! Logs seen through the binary: `gymrun logs`, and a job whose disk is full.

mod harness;

use std::process::Command;

use harness::{Ended, Job, Running, gymrun, json_lines, small_disk};

fn logs(arguments: &[&str]) -> Ended {
    Running::start(gymrun(&["logs"]).args(arguments)).end()
}

#[test]
fn the_last_lines_of_a_job_are_printed_whoever_wrote_them() {
    let job = Job::new(
        "job.yaml",
        r#"
name: t
otel: {enabled: false}
services:
  one: {shell: 'seq -f "line %g" 500; exec sleep 300', log: pipe, log_max_bytes: 1000}
  two: {shell: 'printf "a\nb\nno end"; exec sleep 300'}
driver:
  shell: |
    until grep -qs 'line 500' $GYMRUN_JOB_DIR/logs/one.log && grep -qs 'no end' $GYMRUN_JOB_DIR/logs/two.log; do sleep 0.01; done
"#,
    );
    job.run(&[]).assert_code(0);
    let (output, directory) = (job.output().display().to_string(), job.directory().path("").display().to_string());
    let ended = logs(&["--output-path", &output, "-n", "2"]);
    assert_eq!(ended.stdout, "[one] line 499\n[one] line 500\n[two] b\n[two] no end\n", "{}", ended.stderr);
    // One alone is as it is; its lines are found in older files, too.
    let ended = logs(&[&directory, "one", "--lines", "200"]);
    assert_eq!(ended.stdout.lines().count(), 200);
    assert!(ended.stdout.starts_with("line 301\n") && ended.stdout.ends_with("line 500\n"), "{}", ended.stdout);
    assert_eq!(logs(&[&directory, "two"]).stdout, "a\nb\nno end");
    assert_eq!(logs(&[&directory, "two", "-n", "0"]).stdout, "");
    // What is no file is no log.
    let in_logs = |name: &str| std::path::Path::new(&directory).join("logs").join(name);
    std::os::unix::fs::symlink("/etc/passwd", in_logs("link.log")).expect("a link");
    nix::unistd::mkfifo(&in_logs("pipe.log"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let ended = logs(&["--output-path", &output, "-n", "1"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "[one] line 500\n[two] no end\n"), "{}", ended.stderr);
    let ended = logs(&[&directory, "on"]);
    assert_eq!((ended.code, ended.stderr.contains("did you mean `one`?")), (Some(2), true), "{}", ended.stderr);
    let ended = logs(&[&output]);
    assert_eq!((ended.code, ended.stderr.contains("no directory of a job")), (Some(2), true), "{}", ended.stderr);
}

#[test]
fn what_cannot_be_read_of_logs_keeps_nothing_else_from_being_shown() {
    let scratch = tempfile::tempdir().expect("a directory");
    let at = |name: &str| scratch.path().join("logs").join(name);
    for (name, text) in [("a.log", "a\n"), ("p.log", "new\n"), ("p.log.1", "older\n"), ("z.log", "z\n")] {
        std::fs::create_dir_all(at("p.log.2")).expect("a directory");
        std::fs::write(at(name), text).expect("writes");
    }
    // Of a log of its own name a link to nowhere is left.
    std::os::unix::fs::symlink("nowhere", at("a.log.1")).expect("a link");
    let directory = scratch.path().display().to_string();
    let ended = logs(&[&directory]);
    assert_eq!((ended.code, &*ended.stdout), (Some(125), "[a] a\n[p] older\n[p] new\n[z] z\n"), "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("error: cannot read `").count(), 2, "{}", ended.stderr);
    for name in ["a.log.1", "p.log.2"] {
        assert!(ended.stderr.contains(&format!("cannot read `{}`: ", at(name).display())), "{}", ended.stderr);
    }
    let ended = logs(&[&directory, "p"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(125), "older\nnew\n"), "{}", ended.stderr);
    assert_eq!(logs(&[&directory, "z"]).code, Some(0));
}

#[test]
fn a_log_that_cannot_be_rotated_is_refused_before_anything_starts() {
    let job = Job::new(
        "job.lua",
        "local gym = require 'gymrun'\nreturn gym.job { name = 't', services = { a = {\n  command = { 'x' },\n  log_max_bytes = 5000 } } }\n",
    );
    let ended = job.run(&[]);
    ended.assert_code(2);
    for part in
        ["services.a.log_max_bytes: `log_max_bytes` needs `log = \"pipe\"`", "job.lua:", "hint: write `log = \"pipe\"`"]
    {
        assert!(ended.stderr.contains(part), "no {part} in {}", ended.stderr);
    }
}

#[test]
fn a_job_goes_on_though_its_disk_is_full() {
    let job = Job::new(
        "job.yaml",
        "name: t\nservices:\n  flood: {shell: 'head -c 3000000 /dev/zero; exec sleep 300'}\n\
         driver: {shell: 'until [ -e go ]; do sleep 0.01; done; echo said; exit 3'}\n",
    );
    let kept = job.folder().join("kept");
    let (at, kept_at) = (job.output().display().to_string(), kept.display().to_string());
    let Some(disk) = small_disk(&at, &kept_at, 1024) else { return };
    let file = job.folder().join("job.yaml").display().to_string();
    let own = gymrun(&["run", &file, "--output-path", &at, "--job-id", "j1"]);
    #[expect(clippy::disallowed_methods, reason = "the gymrun under test is no child of a gymrun")]
    let mut command = Command::new(&disk[0]);
    command.args(&disk[1..]).arg(own.get_program()).args(own.get_args()).current_dir(job.folder());
    for (name, value) in own.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let running = Running::start(&mut command);
    // The process itself cannot say it any more.
    running.wait_for_stderr(&format!("the file system at `{at}` is full, 0 B of 1.00 MiB left"));
    std::fs::write(job.folder().join("go"), "").expect("writes");
    let ended = running.end();
    ended.assert_code(3);
    assert_eq!(ended.stdout, "said\n");
    for part in [
        "cannot write events.jsonl: No space left",
        "events are not in events.jsonl",
        "bytes of its output are not in its log",
        // Why the driver failed is asked, too.
        "is full, 0 B of 1.00 MiB left: make room, or choose another `--output-path`",
    ] {
        assert!(ended.stderr.contains(part), "no {part} in {}", ended.stderr);
    }
    // What is there is whole; the result has had its room since the start.
    assert!(!json_lines(&kept.join("j1/t/events.jsonl")).is_empty());
    let result = std::fs::read(kept.join("j1/t/result.json")).expect("a result");
    let result: serde_json::Value = serde_json::from_slice(&result).expect("JSON");
    assert_eq!(result["code"], 3);
}
