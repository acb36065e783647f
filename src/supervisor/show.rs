//! How the output of processes is shown besides their log files.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use crate::process::{Destination, LineSink};

/// One of the two streams of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Where the driver's output is shown, byte for byte.
#[derive(Clone, Copy, Debug)]
pub enum DriverOutput {
    /// Its stdout on gymrun's stdout, its stderr on gymrun's stderr.
    Apart,
    /// Both on gymrun's stderr: stdout is for events.
    Stderr,
}

/// How output is shown.
#[derive(Clone)]
pub struct ShowOutput {
    /// The driver's.
    pub driver: DriverOutput,
    /// Gets `[name] line` for each line of a process whose log mode is `pipe`.
    pub lines: LineSink,
}

impl std::fmt::Debug for ShowOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShowOutput").finish_non_exhaustive()
    }
}

impl ShowOutput {
    /// Where a stream of the driver goes.
    pub(super) fn driver_stream(&self, stream: OutputStream) -> Destination {
        let own = |descriptor: std::os::fd::BorrowedFd<'_>| match descriptor.try_clone_to_owned() {
            Ok(twin) => Destination::Raw(File::from(twin)),
            // gymrun was started with that stream closed.
            Err(_) => Destination::Nowhere,
        };
        match (self.driver, stream) {
            (DriverOutput::Apart, OutputStream::Stdout) => own(std::io::stdout().as_fd()),
            (DriverOutput::Apart | DriverOutput::Stderr, _) => own(std::io::stderr().as_fd()),
        }
    }

    /// Where the lines of another process go.
    pub(super) fn lines_of(&self, process: &str) -> Destination {
        let lines = Arc::clone(&self.lines);
        let prefix = format!("[{process}] ");
        Destination::Lines(Arc::new(move |line| lines(&format!("{prefix}{line}"))))
    }
}
