//! Directories and files of a job, written before the first process starts.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::resolve::Resolver;
use crate::diag::Problem;
use crate::files::write_whole;
use crate::plan::Plan;

const DIRECTORIES: [&str; 4] = ["logs", "otel", "artifacts", "files"];
/// How much of the end of a log is looked at, and what of it is shown.
const TAIL_BYTES: u64 = 32 * 1024;
const TAIL_LINES: usize = 20;
const TAIL_LINE_CHARS: usize = 500;

/// Makes the directories of a job and writes its planned files, references filled in.
pub fn write(plan: &Plan, resolver: &Resolver) -> Result<(), Problem> {
    for name in DIRECTORIES {
        let path = resolver.job_dir.join(name);
        make_directory(&path)
            .map_err(|error| Problem::new(format!("cannot make the directory `{}`: {error}", path.display())))?;
    }
    for file in &plan.files {
        let path = resolver.job_dir.join(&file.path);
        let located = |problem: Problem| problem.at(file.path.clone()).in_file(file.location.clone());
        let contents = resolver.value(&file.contents).map_err(located)?;
        write_whole(&path, contents.as_bytes(), file.mode)
            .map_err(|error| located(Problem::new(format!("cannot write `{}`: {error}", path.display()))))?;
    }
    Ok(())
}

fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Opens a log file: only its owner may read it, and everybody who writes appends.
pub fn open_log(job_dir: &Path, relative: &str) -> Result<(File, PathBuf), (PathBuf, io::Error)> {
    let path = job_dir.join(relative);
    match OpenOptions::new().create(true).append(true).mode(0o600).open(&path) {
        Ok(file) => Ok((file, path)),
        Err(error) => Err((path, error)),
    }
}

/// The last lines of a log, as text for people.
#[must_use]
pub fn last_lines(path: &Path) -> Vec<String> {
    let Ok(bytes) = read_end(path) else { return Vec::new() };
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..]
        .iter()
        .map(|line| match line.char_indices().nth(TAIL_LINE_CHARS) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => (*line).to_owned(),
        })
        .collect()
}

fn read_end(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let start = length.saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    // A line that is cut at its front is none.
    if start > 0
        && let Some(end) = bytes.iter().position(|b| *b == b'\n')
    {
        bytes.drain(..=end);
    }
    Ok(bytes)
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
        let lines = last_lines(file.path());
        assert_eq!(lines.len(), 20);
        assert_eq!(lines[17..], ["line 4999", "bad \u{fffd} byte", "last without end"]);
    }
}
