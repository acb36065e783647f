//! Piped logs: whole lines of any length on the terminal, rotation, last lines.

use std::os::unix::fs::MetadataExt as _;

use serde_json::json;

use crate::cases::Case;
use crate::harness::eventually;
use crate::job::{Ended, Job, job};
use crate::jobs::{child, driver, server, with};

pub const CASES: &[Case] = &[
    ("lines_of_any_length_and_any_bytes_are_shown_whole", lines_of_any_length_and_any_bytes_are_shown_whole),
    ("a_line_without_an_end_costs_no_memory", a_line_without_an_end_costs_no_memory),
    ("a_flood_costs_no_memory_and_no_tick", a_flood_costs_no_memory_and_no_tick),
    ("two_servers_at_once_are_told_apart", two_servers_at_once_are_told_apart),
    ("a_log_is_rotated_at_the_ends_of_lines", a_log_is_rotated_at_the_ends_of_lines),
    ("a_restart_goes_on_in_the_same_log", a_restart_goes_on_in_the_same_log),
    ("last_lines_reach_over_a_rotation", last_lines_reach_over_a_rotation),
    ("last_lines_are_those_of_the_life_that_ended", last_lines_are_those_of_the_life_that_ended),
    ("whoever_holds_the_pipe_keeps_no_last_lines_back", whoever_holds_the_pipe_keeps_no_last_lines_back),
    ("a_terminal_that_goes_away_costs_a_server_nothing", a_terminal_that_goes_away_costs_a_server_nothing),
];

/// The lines of a process on the terminal, without time and name; every one of them has both.
fn shown(ended: &Ended, process: &str) -> Vec<String> {
    let mark = format!(" [{process}] ");
    let own = |line: &str| {
        let (time, text) = line.split_once(&mark)?;
        let (seconds, fraction) = time.trim_start().split_once('.')?;
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        (digits(seconds) && digits(fraction) && fraction.len() == 3).then(|| text.to_owned())
    };
    ended.stderr.lines().filter_map(own).collect()
}

/// The numbers of the lines `word N` of all the files of a log, the oldest first; and how long each file is.
fn numbers(ended: &Ended, log: &str, word: &str) -> (Vec<u32>, Vec<usize>) {
    let mut files: Vec<Vec<u8>> =
        (1..=10).map(|number| ended.file(&format!("{log}.{number}"))).take_while(|file| !file.is_empty()).collect();
    files.reverse();
    files.push(ended.file(log));
    let mut numbers = Vec::new();
    for file in &files {
        let text = std::str::from_utf8(file).expect("text");
        assert!(text.ends_with('\n'), "a file ends with a line");
        let number = |line: &str| line.strip_prefix(word).and_then(|rest| rest.trim().parse::<u32>().ok());
        numbers.extend(text.lines().map(|line| number(line).unwrap_or_else(|| panic!("a torn line: {line}"))));
    }
    (numbers, files.iter().map(Vec::len).collect())
}

fn peak_memory(job: &Job) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", job.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it has memory");
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().expect("a number") << 10
}

fn lines_of_any_length_and_any_bytes_are_shown_whole() {
    let steps = "print:before repeat:{:204800 bytes:0a print:after bytes:88ff0a bytes:6e6f20656e64 forever";
    let ended = job(&json!({
        "servers": {"a": {"command": child(steps), "log": "pipe"}},
        "driver": driver("says:@DIR/logs/a.log:no_end"),
    }));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let whole = ["before", &"{".repeat(204_800), "after", "\u{fffd}\u{fffd}", "no end"];
    assert_eq!(shown(&ended, "a"), whole);
    let mut bytes = b"before\n".to_vec();
    bytes.extend(b"{".repeat(204_800));
    bytes.extend(b"\nafter\n\x88\xff\nno end");
    assert!(ended.file("logs/a.log") == bytes);
}

fn a_line_without_an_end_costs_no_memory() {
    // A terminal that takes everything: who reads a pipe would have to keep up.
    let terminal = tempfile::NamedTempFile::new().expect("a scratch file");
    let running = Job::start_with(
        &json!({
            "servers": {"a": {"command": child("repeat:x:100000000 print:. print:next forever"), "log": "pipe"}},
            "driver": driver("wait:@DIR/seen"),
        }),
        |command| {
            command.stderr(terminal.reopen().expect("a scratch file"));
        },
    );
    running.wait_for_event("process_started", "driver");
    eventually("the line", || {
        (std::fs::metadata(running.path("logs/a.log")).ok()?.len() >= 100_000_002 + 5).then_some(())
    });
    let peak = peak_memory(&running);
    assert!(peak < 100 << 20, "{peak}");
    std::fs::write(running.path("seen"), "").expect("a scratch file");
    let mut ended = running.end();
    ended.stderr = std::fs::read_to_string(terminal.path()).expect("text");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // Of the line as much is shown as is documented, with a word on the rest of it.
    let shown = shown(&ended, "a");
    assert_eq!(shown.len(), 2);
    assert!(shown[0].starts_with(&"x".repeat(1 << 20)) && shown[0].len() < (1 << 20) + 100 && shown[0].contains("cut"));
    assert_eq!(shown[1], "next");
    assert_eq!(ended.file("logs/a.log").len(), 100_000_002 + 5);
}

fn a_flood_costs_no_memory_and_no_tick() {
    // Each floods with much more than gymrun may ever have in memory, at the same time, beside one that is asked if it lives.
    // The first may be told to write more; its log keeps the end of it.
    let mebibytes = std::env::var("GYMRUN_TEST_FLOOD").unwrap_or_else(|_| "160".to_owned());
    let steps = format!("serve:${{port:self}} wait:@DIR/go flood:{mebibytes} append:@DIR/flooded:x forever");
    let floods = with(server(&steps), "log", "pipe");
    let running = Job::start_with(
        &json!({
            "interval_seconds": 0.2,
            "services": {"a": with(floods, "log_max_bytes", 1_000_000)},
            "servers": {"quiet": with(server("serve:${port:self} forever"), "liveness", json!({"interval_seconds": 0.05}))},
            "driver": driver("append:@DIR/go:x flood:160 append:@DIR/flooded:x wait:@DIR/seen exit:3"),
        }),
        |command| {
            let nowhere = || std::fs::OpenOptions::new().write(true).open("/dev/null").expect("nowhere");
            command.stdout(nowhere()).stderr(nowhere());
        },
    );
    let flooded = || std::fs::read_to_string(running.path("flooded")).is_ok_and(|text| text.lines().count() == 2);
    let state = || std::fs::metadata(running.path("logs/a.log")).map(|log| (log.ino(), log.len())).ok();
    // As long as the log changes it may take its time: gigabytes, and a machine that has other things to do.
    while !flooded() {
        let before = state();
        eventually("the flood goes on", || (flooded() || state() != before).then_some(()));
    }
    let peak = peak_memory(&running);
    assert!(peak < 100 << 20, "{peak}");
    std::fs::write(running.path("seen"), "").expect("a scratch file");
    let ended = running.end();
    assert_eq!(ended.code, Some(3));
    assert!(ended.file("logs/driver.log").len() > 160 << 20);
    assert!(ended.all("process_hung").is_empty());
    // Not a second more between two samples than there should be, on the average of a machine that has other things to do.
    let times: Vec<f64> = ended.all("memory_sampled").iter().filter_map(|e| e["elapsed_seconds"].as_f64()).collect();
    let gaps = times.len() - 1;
    assert!(gaps > 0 && times[gaps] - times[0] < 1.2 * gaps as f64, "{times:?}");
    let told = ended.the("log_ended", "a");
    let kept: usize = ["", ".1", ".2", ".3"].map(|end| ended.file(&format!("logs/a.log{end}")).len()).iter().sum();
    let written = ended.file("logs/driver.log").len() as u64 / 160 * mebibytes.parse::<u64>().expect("a number");
    assert_eq!(told["rotated_out_bytes"].as_u64().expect("a number") + kept as u64, written);
}

fn two_servers_at_once_are_told_apart() {
    let talking = |name: &str| {
        let steps = format!("wait:@DIR/go numbered:1000:{name} serve:${{port:self}} forever");
        with(server(&steps), "log", "pipe")
    };
    let ended = job(&json!({
        "services": {"go": {"command": child("append:@DIR/go:x forever")}},
        "servers": {"a": talking("a"), "b": talking("b")},
        "driver": driver("exit:0"),
    }));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for name in ["a", "b"] {
        let expected: Vec<String> = (0..1000).map(|number| format!("{name} {number}")).collect();
        assert_eq!(shown(&ended, name), expected);
        assert_eq!(ended.lines(&format!("logs/{name}.log")), expected);
    }
}

fn a_log_is_rotated_at_the_ends_of_lines() {
    let ended = job(&json!({
        "servers": {"a": {"command": child("numbered:20000:line bytes:656e640a forever"), "log": "pipe", "log_max_bytes": 50_000, "log_keep": 2}},
        "driver": driver("says:@DIR/logs/a.log:end"),
    }));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.file("logs/a.log").ends_with(b"end\n"));
    let last = ended.dir.path().join("logs/a.log");
    let text = std::fs::read_to_string(&last).expect("a log");
    std::fs::write(&last, text.strip_suffix("end\n").expect("its end")).expect("writes");
    let (numbers, lengths) = numbers(&ended, "logs/a.log", "line");
    assert_eq!(lengths.len(), 3);
    assert!(lengths.iter().all(|length| *length <= 50_000), "{lengths:?}");
    // The older ones are full to the last line.
    assert!(lengths[..2].iter().all(|length| *length > 50_000 - 12), "{lengths:?}");
    assert_eq!(numbers, (numbers[0]..20_000).collect::<Vec<_>>());
    let told = ended.the("log_ended", "a").clone();
    assert_eq!(told["older"], json!(["logs/a.log.1", "logs/a.log.2"]));
    let written: usize = (0..20_000).map(|number| format!("line {number}\n").len()).sum();
    let kept: usize = lengths.iter().sum();
    assert_eq!(
        (told["rotated_out_bytes"].as_u64(), told["lost_bytes"].as_u64()),
        (Some((written - kept) as u64), Some(0))
    );
}

fn a_restart_goes_on_in_the_same_log() {
    let server = with(server("numbered:300:line exit:1"), "on_exit", "restart");
    let server = with(with(with(server, "log", "pipe"), "log_max_bytes", 4_000), "log_keep", 9);
    let ended = job(&json!({
        "servers": {"a": with(server, "restart", json!({"limit": 2, "exhausted": "ignore"}))},
        "driver": driver("exit:0"),
    }));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let (numbers, lengths) = numbers(&ended, "logs/a.log", "line");
    assert_eq!(numbers, (0..3).flat_map(|_| 0..300).collect::<Vec<u32>>());
    assert!(lengths.iter().all(|length| *length <= 4_000), "{lengths:?}");
    assert_eq!(shown(&ended, "a").len(), 900);
}

fn last_lines_reach_over_a_rotation() {
    let ended = job(&json!({
        "servers": {"a": {"command": child("numbered:500:line exit:4"), "log": "pipe", "log_max_bytes": 1000, "log_keep": 3}},
        "driver": driver("forever"),
    }));
    assert_eq!(ended.code, Some(125), "{}", ended.stderr);
    let lines: Vec<String> = (480..500).map(|number| format!("line {number}")).collect();
    assert_eq!(ended.the("process_exited", "a")["last_lines"], json!(lines));
}

fn last_lines_are_those_of_the_life_that_ended() {
    // The first life leaves half a line, and one in between says nothing; rotated or not.
    let script = "printf x >>@DIR/lives; case $(wc -c <@DIR/lives) in \
                  1) printf 'first\nhalf';; 2) ;; 3) seq -f 'third %g' 30;; 4) echo fourth; echo end >&2;; esac; exit 4";
    for (log, most) in [("file", json!(null)), ("pipe", json!(null)), ("pipe", json!(40))] {
        let server = json!({
            "command": ["sh", "-c", script], "log": log, "log_max_bytes": most, "log_keep": 9, "on_exit": "restart",
            "restart": {"limit": 3, "backoff_seconds": 0.01},
        });
        let ended = job(&json!({"servers": {"a": server}, "driver": driver("forever")}));
        assert_eq!(ended.code, Some(125), "{}", ended.stderr);
        let exits: Vec<_> = ended.all("process_exited").into_iter().filter(|e| e["process"] == "a").collect();
        let third: Vec<String> = (11..=30).map(|number| format!("third {number}")).collect();
        let expected = [json!(["first", "half"]), json!(null), json!(third), json!(["fourth", "end"])];
        assert_eq!(exits.iter().map(|e| e["last_lines"].clone()).collect::<Vec<_>>(), expected, "{log} {most}");
    }
}

fn whoever_holds_the_pipe_keeps_no_last_lines_back() {
    let ended = job(&json!({
        "servers": {"a": {"command": child("print:said daemon { ignore:TERM forever } exit:4"), "log": "pipe", "grace_seconds": 0.1}},
        "driver": driver("forever"),
    }));
    assert_eq!(ended.code, Some(125), "{}", ended.stderr);
    assert_eq!(ended.the("process_exited", "a")["last_lines"], json!(["said"]));
}

fn a_terminal_that_goes_away_costs_a_server_nothing() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let running = Job::start_with(
        &json!({
            "servers": {"a": with(server("wait:@DIR/go flood:4 print:end serve:${port:self} forever"), "log", "pipe")},
            "driver": driver("exit:3"),
        }),
        |command| {
            command.stderr(writer);
        },
    );
    running.wait_for_event("process_started", "a");
    drop(reader);
    std::fs::write(running.path("go"), "").expect("a scratch file");
    let ended = running.end();
    assert_eq!(ended.code, Some(3));
    assert!(ended.file("logs/a.log").ends_with(b"x\nend\n") && ended.file("logs/a.log").len() > 4 << 20);
    assert!(ended.all("process_killed").is_empty(), "{:?}", ended.events);
}
