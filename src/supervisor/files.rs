//! Directories and files of a job, written before the first process starts.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use super::resolve::Resolver;
use crate::diag::Problem;
use crate::files::{LogFiles, LogPlace, write_whole};
use crate::plan::{Plan, older_log};
use crate::process::in_words;

const DIRECTORIES: [&str; 4] = ["logs", "otel", "artifacts", "files"];
/// How much of the end of a log is looked at, and what of it is shown.
const TAIL_BYTES: usize = 32 * 1024;
const TAIL_LINES: usize = 20;
const TAIL_LINE_CHARS: usize = 500;

/// Makes the directories of a job and writes its planned files, references filled in.
pub fn write(plan: &Plan, resolver: &Resolver) -> Result<(), Problem> {
    for name in DIRECTORIES {
        let path = resolver.job_dir.join(name);
        make_directory(&path).map_err(|error| {
            Problem::new(format!("cannot make the directory `{}`: {}", path.display(), in_words(&error)))
        })?;
    }
    for file in &plan.files {
        let path = resolver.job_dir.join(&file.path);
        let located = |problem: Problem| problem.at(file.path.clone()).in_file(file.location.clone());
        let contents = resolver.value(&file.contents).map_err(located)?;
        write_whole(&path, contents.as_bytes(), file.mode).map_err(|error| {
            located(Problem::new(format!("cannot write `{}`: {}", path.display(), in_words(&error))))
        })?;
    }
    Ok(())
}

fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The last lines of a log, as text for people: of what was written between two places of it, which are its begin and its end
/// where there is none. What begins in a file that is gone is there from the begin on, and of what ends in one nothing is.
#[must_use]
pub fn last_lines(log: &Path, begin: Option<LogPlace>, end: Option<LogPlace>) -> Vec<String> {
    // What cannot be read is not shown.
    let (files, _) = LogFiles::open((0..).map(|number| older_log(log, number)));
    let begin = begin.and_then(|place| files.find(place)).unwrap_or(0);
    let end = end.map_or_else(|| files.length(), |place| files.find(place).unwrap_or(begin));
    let Ok((bytes, cut)) = files.end_of(begin..end, TAIL_BYTES) else { return Vec::new() };
    let text = String::from_utf8_lossy(&bytes);
    let mut lines: Vec<String> = text.lines().map(beginning).collect();
    if cut && let (Some(first), Some(line)) = (lines.first_mut(), text.lines().next()) {
        *first = ending(line);
    }
    lines.split_off(lines.len().saturating_sub(TAIL_LINES))
}

fn beginning(line: &str) -> String {
    match line.char_indices().nth(TAIL_LINE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// Of a line whose beginning was not read.
fn ending(line: &str) -> String {
    let skipped = line.chars().count().saturating_sub(TAIL_LINE_CHARS);
    format!("…{}", line.chars().skip(skipped).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::last_lines;

    #[test]
    fn the_end_of_a_log_is_whole_lines_of_text() {
        let file = tempfile::NamedTempFile::new().expect("a scratch file");
        let mut text: Vec<u8> = (0..5000).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
        text.extend(b"bad \xff byte\nlast without end");
        std::fs::write(file.path(), text).expect("a scratch file");
        let lines = last_lines(file.path(), None, None);
        assert_eq!(lines.len(), 20);
        assert_eq!(lines[17..], ["line 4999", "bad \u{fffd} byte", "last without end"]);
    }
    #[test]
    fn the_end_of_a_log_reaches_into_older_files_and_shows_of_one_line_its_end() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let log = scratch.path().join("x.log");
        let put = |name: &str, text: &str| std::fs::write(scratch.path().join(name), text).expect("a scratch file");
        put("x.log.2", &"old\n".repeat(30));
        put("x.log.1", "one\ntw");
        put("x.log", "o\nthree\n");
        let lines = last_lines(&log, None, None);
        assert_eq!(lines.len(), 20);
        assert_eq!(lines[16..], ["old", "one", "two", "three"]);
        put("x.log", &format!("{}the end\n}}\n", "x".repeat(200_000)));
        let lines = last_lines(&log, None, None);
        assert!(lines[0].starts_with("…xxx") && lines[0].ends_with("xthe end"), "{lines:?}");
        assert_eq!(lines[1..], ["}"]);
        assert_eq!(last_lines(&scratch.path().join("none.log"), None, None), [""; 0]);
    }
}
