//! How the output of processes is shown besides their log files.

use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use crate::events::Sink;
use crate::plan::DRIVER;
use crate::process::{Destination, LineSink, Source, in_words};

/// One of the two streams of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputStream {
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
    /// Gets `seconds [name] line` for each line of a process whose log mode is `pipe`: whole lines, some at a time.
    pub lines: LineSink,
}

impl std::fmt::Debug for ShowOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShowOutput").finish_non_exhaustive()
    }
}

impl ShowOutput {
    /// Where a child's pipes go; `clock` tells the time of its lines.
    pub(super) fn sources(&self, pipes: Vec<OwnedFd>, process: &str, is_driver: bool, clock: &Sink) -> Vec<Source> {
        let streams = [OutputStream::Stdout, OutputStream::Stderr];
        let shown = |stream| if is_driver { self.driver_stream(stream, clock) } else { self.lines_of(process, clock) };
        pipes.into_iter().zip(streams).map(|(pipe, stream)| Source { pipe, shown: shown(stream) }).collect()
    }

    /// Where a stream of the driver goes.
    fn driver_stream(&self, stream: OutputStream, sink: &Sink) -> Destination {
        let sink = sink.clone();
        let failed = Box::new(move |error: &std::io::Error| {
            let name = match stream {
                OutputStream::Stdout => "stdout",
                OutputStream::Stderr => "stderr",
            };
            let message = format!("its {name} cannot be passed on any more: {}", in_words(error));
            sink.warn(Some(DRIVER), message, Some("its log goes on".to_owned()));
        });
        let own = |descriptor: std::os::fd::BorrowedFd<'_>| match descriptor.try_clone_to_owned() {
            Ok(twin) => Destination::Raw { file: File::from(twin), failed },
            // gymrun was started with that stream closed.
            Err(_) => Destination::Nowhere,
        };
        match (self.driver, stream) {
            (DriverOutput::Apart, OutputStream::Stdout) => own(std::io::stdout().as_fd()),
            (DriverOutput::Apart | DriverOutput::Stderr, _) => own(std::io::stderr().as_fd()),
        }
    }

    /// Where the lines of another process go.
    fn lines_of(&self, process: &str, clock: &Sink) -> Destination {
        let (name, clock) = (process.to_owned(), clock.clone());
        let prefix = Box::new(move || format!("{:>8.3} [{name}] ", clock.elapsed().as_secs_f64()));
        Destination::Lines { prefix, sink: Arc::clone(&self.lines) }
    }
}
