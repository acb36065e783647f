//! What both programs take, asked of `validate` for many processors at once.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use regex::Regex;

use super::super::bed::programs;
use super::super::side::PATIENCE;
use super::tables::whole;

/// Something that the reference takes or refuses.
pub struct Asked<'a> {
    /// As it is shown.
    pub text: &'a str,
    /// The processor that it makes: its kind and its settings.
    pub processor: (&'a str, String),
    /// The reference takes it, and here it is a start error, as the documentation says.
    pub ours_refuses: bool,
}

/// The places of what both take; panics with all that one program takes and the other one does not, but for what is
/// documented. None without a reference.
pub fn accepted(asked: &[Asked<'_>]) -> Option<Vec<usize>> {
    let [ours, theirs] = programs()?;
    let (ours, mut refused) = std::thread::scope(|scope| {
        let ours = scope.spawn(|| refused_by(&ours, asked, r"processors\.\w+/(\d+)"));
        let theirs = refused_by(&theirs, asked, r#"processors::\w+/(\d+):|reading configuration for "\w+/(\d+)""#);
        (ours.join().expect("asks"), theirs)
    });
    // Some things the reference finds out when it starts, of one processor at a time.
    let left: Vec<usize> = ours.difference(&refused).copied().collect();
    refused.extend(left.into_iter().filter(|number| fails_to_start(&theirs, &asked[*number])));
    let mut text = String::new();
    for (number, asked) in asked.iter().enumerate() {
        let verdict = match (asked.ours_refuses, ours.contains(&number), refused.contains(&number)) {
            (false, true, true) | (false, false, false) | (true, true, false) => continue,
            (false, true, false) => "gymrun alone refuses",
            (false, false, true) => "the reference alone refuses",
            (true, false, false) => "gymrun takes after all",
            (true, _, true) => "the reference refuses, too",
        };
        writeln!(text, "{verdict}: {}", asked.text).expect("memory");
    }
    assert!(text.is_empty(), "\n{text}");
    Some((0..asked.len()).filter(|number| !ours.contains(number)).collect())
}

/// Of settings that have the wrong shape the reference names one each time.
fn refused_by(program: &[String], asked: &[Asked<'_>], named: &str) -> BTreeSet<usize> {
    let named = Regex::new(named).expect("a regex");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("collector.yaml");
    let mut refused = BTreeSet::new();
    loop {
        let left = asked.iter().enumerate().filter(|(number, _)| !refused.contains(number));
        let left = left.map(|(number, Asked { processor: (kind, settings), .. })| {
            let kind = kind.split('@').next().unwrap_or_default();
            (format!("{kind}/{number}"), settings.clone())
        });
        let config = whole(left, "nop: {}", "traces: {receivers: [otlp], exporters: [nop]}");
        fs::write(&file, config.replace("$HTTP", "127.0.0.1:4318").replace("$GRPC", "127.0.0.1:4317")).expect("writes");
        let output = Command::new(&program[0])
            .args(&program[1..])
            .args(["validate", "--config"])
            .arg(&file)
            .env_clear()
            .stdin(Stdio::null())
            .output()
            .expect("runs");
        let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        if output.status.success() {
            return refused;
        }
        let numbers = named.captures_iter(&text).filter_map(|found| found.get(1).or(found.get(2)));
        let new: BTreeSet<usize> = numbers.map(|number| number.as_str().parse().expect("a number")).collect();
        assert!(new.iter().any(|number| !refused.contains(number)), "refused for another reason: {text}");
        refused.extend(new);
    }
}

fn fails_to_start(program: &[String], asked: &Asked<'_>) -> bool {
    let (kind, settings) = &asked.processor;
    let (kind, signal) = kind.split_once('@').unwrap_or((kind, "traces"));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("collector.yaml");
    let pipeline = format!("{signal}: {{receivers: [otlp], processors: [{kind}], exporters: [nop]}}");
    let config = whole([(kind.to_owned(), settings.clone())].into_iter(), "nop: {}", &pipeline);
    fs::write(&file, config.replace("$HTTP", "127.0.0.1:0").replace("$GRPC", "127.0.0.1:0")).expect("writes");
    let log = folder.path().join("stderr.txt");
    let mut child = Command::new(&program[0])
        .args(&program[1..])
        .arg("--config")
        .arg(&file)
        .env_clear()
        .stdin(Stdio::null())
        .stderr(fs::File::create(&log).expect("creates"))
        .spawn()
        .expect("starts");
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("waits") {
            return !status.success();
        }
        assert!(begin.elapsed() < PATIENCE, "neither starts nor ends: {}", asked.text);
        if fs::read_to_string(&log).expect("reads").contains("Everything is ready") {
            child.kill().expect("signals");
            child.wait().expect("waits");
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
