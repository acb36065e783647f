//! What the command line says itself: results on stdout, problems on stderr.

use std::io::{self, Write as _};

use crate::diag::{Problem, Problems, exit, render};

/// Says problems on stderr, with a line on what follows from them.
pub(super) fn say_problems(problems: &Problems) {
    let mut text: String = problems.iter().map(render).collect();
    if problems.any_error() {
        text.push_str("nothing was started\n");
    }
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Prints to stdout and gives the exit code: a reader that went away is nobody's error, a full disk is.
pub(super) fn print(text: &str) -> i32 {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            say_problems(&Problem::new(format!("cannot write to standard output: {error}")).into());
            exit::FAILED
        }
        _ => exit::OK,
    }
}
