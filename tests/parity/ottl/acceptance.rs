//! What both programs take, asked of `validate` for many processors at once.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};

use gymrun::otlp::Signal;
use regex::Regex;

use super::super::bed::programs;
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
    let all: Vec<usize> = (0..asked.len()).collect();
    let ours = refused_by(&ours, asked, &all, r"processors\.\w+/(\d+)");
    // What ours refuses is asked apart, since it may take the reference one run for each.
    let (taken, left): (Vec<usize>, Vec<usize>) = all.iter().partition(|number| !ours.contains(number));
    let mut refused = BTreeSet::new();
    for numbers in [taken, left] {
        let named = r#"processors::\w+/(\d+):|(?:reading configuration for|failed to create) "\w+/(\d+)""#;
        refused.extend(refused_by(&theirs, asked, &numbers, named));
    }
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

/// The kind of a processor and what it is for: `KIND@SIGNAL` names one; else what its settings are about, or all.
pub fn signals<'a>((kind, settings): &(&'a str, String)) -> (&'a str, Vec<&'static str>) {
    let all = Signal::ALL.map(Signal::name).into_iter();
    if let Some((kind, signal)) = kind.split_once('@') {
        return (kind, all.filter(|known| *known == signal).collect());
    }
    let words = [["trace", "span"], ["metric", "datapoint"], ["log_", "logs"]];
    let about: Vec<&str> = all
        .clone()
        .zip(words)
        .filter(|(_, words)| words.iter().any(|word| settings.contains(word)))
        .map(|(signal, _)| signal)
        .collect();
    (kind, if about.is_empty() { all.collect() } else { about })
}

/// A configuration with all of these processors, in pipelines where that makes a difference.
fn config<'a>(asked: impl Iterator<Item = (usize, &'a Asked<'a>)>) -> String {
    let mut pipelines = "traces: {receivers: [otlp], exporters: [nop]}\n".to_owned();
    let mut processors = Vec::new();
    for (number, Asked { processor, .. }) in asked {
        let (kind, signals) = signals(processor);
        // Statements are looked at without a pipeline, too.
        for signal in signals.into_iter().filter(|_| kind != "transform") {
            writeln!(
                pipelines,
                "    {signal}/{number}: {{receivers: [otlp], processors: [{kind}/{number}], exporters: [nop]}}"
            )
            .expect("memory");
        }
        processors.push((format!("{kind}/{number}"), processor.1.clone()));
    }
    whole(processors.into_iter(), "nop: {}", pipelines.trim())
}

/// Of settings that have the wrong shape, or that it looks at when it builds pipelines, the reference names one each
/// time.
fn refused_by(program: &[String], asked: &[Asked<'_>], numbers: &[usize], named: &str) -> BTreeSet<usize> {
    let named = Regex::new(named).expect("a regex");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("collector.yaml");
    let mut refused = BTreeSet::new();
    loop {
        let left: Vec<usize> = numbers.iter().copied().filter(|number| !refused.contains(number)).collect();
        let config = config(left.iter().map(|number| (*number, &asked[*number])));
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
