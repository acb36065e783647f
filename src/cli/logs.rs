//! `gymrun logs`: the last lines of the logs of a job, whoever wrote them.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::arguments::LogsArguments;
use crate::diag::{Problem, exit, render};
use crate::files::{LogFiles, Unreadable};
use crate::plan::older_log;

/// The word for the newest job directory.
const LATEST: &str = "latest";
/// How much is printed at once.
const PIECE: usize = 64 * 1024;

/// Prints what can be read of them; 2 if there is no such job or process, 125 if something could not be read or written.
pub(super) fn run(arguments: &LogsArguments) -> i32 {
    let logs = match find(arguments) {
        Ok(logs) => logs,
        Err(problem) => return say(&problem, exit::INVALID),
    };
    let several = logs.len() > 1;
    let mut out = io::stdout().lock();
    let mut code = exit::OK;
    for (name, path) in &logs {
        let prefix = several.then(|| format!("[{name}] "));
        let (files, unreadable) = LogFiles::open((0..).map(|number| older_log(path, number)));
        for unreadable in unreadable {
            code = say(&Problem::new(unreadable.to_string()), exit::FAILED);
        }
        match show(&files, arguments.lines, prefix.as_deref(), &mut out) {
            Ok(()) => {}
            Err(Failure::Read(unreadable)) => code = say(&Problem::new(unreadable.to_string()), exit::FAILED),
            // A reader that went away is nobody's error.
            Err(Failure::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => return code,
            Err(Failure::Write(error)) => {
                return say(&Problem::new(format!("cannot write to standard output: {error}")), exit::FAILED);
            }
        }
    }
    code
}

/// Why a log is not shown to its end.
enum Failure {
    Read(Unreadable),
    Write(io::Error),
}

fn show(files: &LogFiles, lines: usize, prefix: Option<&str>, out: &mut impl Write) -> Result<(), Failure> {
    let mut at = files.last_lines(lines).map_err(Failure::Read)?;
    let mut line = prefix.map(|prefix| Prefixed { prefix, in_line: false });
    let mut buffer = vec![0; PIECE];
    loop {
        let read = files.read_at(&mut buffer, at);
        // What could not be read ends what is shown.
        let count = *read.as_ref().unwrap_or(&0);
        at += count as u64;
        let written = match &mut line {
            None => out.write_all(&buffer[..count]),
            Some(line) => line.write(&buffer[..count], out),
        };
        written.and_then(|()| out.flush()).map_err(Failure::Write)?;
        if read.map_err(Failure::Read)? == 0 {
            return Ok(());
        }
    }
}

fn say(problem: &Problem, code: i32) -> i32 {
    let _ = io::stderr().lock().write_all(render(problem).as_bytes());
    code
}

/// Bytes with the name of their process in front of each line.
struct Prefixed<'a> {
    prefix: &'a str,
    in_line: bool,
}

impl Prefixed<'_> {
    /// Writes more of a log; nothing is its end, and ends the last line if nobody else has.
    fn write(&mut self, bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
        if bytes.is_empty() && std::mem::take(&mut self.in_line) {
            out.write_all(b"\n")?;
        }
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if !self.in_line {
                out.write_all(self.prefix.as_bytes())?;
            }
            out.write_all(part)?;
            self.in_line = !part.ends_with(b"\n");
        }
        Ok(())
    }
}

/// The logs that were asked for, with the names of their processes.
fn find(arguments: &LogsArguments) -> Result<Vec<(String, PathBuf)>, Problem> {
    let directory = match &arguments.directory {
        latest if latest == Path::new(LATEST) => arguments.output_path.join(LATEST),
        directory => directory.clone(),
    };
    let logs = directory.join("logs");
    let entries = std::fs::read_dir(&logs).map_err(|error| {
        Problem::new(format!(
            "`{}` is no directory of a job: cannot read `{}`: {error}",
            directory.display(),
            logs.display()
        ))
        .hint("name one (`<output path>/<job id>/<job name>`), or `latest` with --output-path DIR")
    })?;
    let mut known: Vec<String> = entries
        .flatten()
        // A link may lead out of the job, and a pipe has no end.
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter_map(|entry| entry.file_name().to_str().and_then(|name| name.strip_suffix(".log")).map(str::to_owned))
        .collect();
    known.sort_unstable();
    if let Some(unknown) = arguments.processes.iter().find(|name| !known.contains(name)) {
        let problem = Problem::new(format!("there is no log of `{unknown}` in `{}`", logs.display()));
        return Err(problem.suggest(unknown, known.iter().map(String::as_str)));
    }
    let wanted = if arguments.processes.is_empty() { &known } else { &arguments.processes };
    Ok(wanted.iter().map(|name| (name.clone(), logs.join(format!("{name}.log")))).collect())
}
