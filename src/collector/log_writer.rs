//! Writing the lines of a log without ever waiting for whoever reads them.
//!
//! A line goes into a queue, and a thread (begun with the first line) writes what is there. So a pipe that nobody reads, or
//! a disk that hangs, costs lines of the log and nothing else. Where the queue is full, whoever has a line waits a while for
//! room: a reader that is slow loses nothing. Where none comes, the log is stuck: from then on lines are counted instead,
//! without waiting, until something is written again; then their number is said. [`finish`] is for the end of the process.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::log::Sink;
use crate::diag::counted;

/// What may wait, in bytes; one line more, however long it is, where nothing waits.
const ROOM: usize = 1 << 20;
/// Lines are written together up to this size: whole, even where others write to the same pipe.
const BATCH: usize = 4096;
/// How long a line waits for room, and the end of the process for the last lines.
const PATIENCE: Duration = Duration::from_secs(1);

/// Those that there are.
static WRITERS: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// Lines to this process's stderr.
#[must_use]
pub fn stderr() -> Sink {
    static STDERR: OnceLock<Sink> = OnceLock::new();
    STDERR.get_or_init(|| sink(|| Ok(Box::new(io::stderr())))).clone()
}

/// Lines to this process's stdout.
#[must_use]
pub fn stdout() -> Sink {
    static STDOUT: OnceLock<Sink> = OnceLock::new();
    STDOUT.get_or_init(|| sink(|| Ok(Box::new(io::stdout())))).clone()
}

/// Lines to the end of a file.
///
/// # Errors
/// It cannot be opened. For the reader of a pipe the lines wait.
pub fn file(path: &Path) -> io::Result<Sink> {
    let open = |path: &Path| OpenOptions::new().append(true).create(true).open(path);
    if path.metadata().is_ok_and(|metadata| metadata.file_type().is_fifo()) {
        let path = path.to_owned();
        return Ok(sink(move || Ok(Box::new(open(&path)?))));
    }
    let file = open(path)?;
    Ok(sink(move || Ok(Box::new(file))))
}

/// Waits until everything is written, for a short while at most.
pub fn finish() {
    let end = Instant::now() + PATIENCE;
    let writers = lock(&WRITERS).clone();
    for writer in writers.iter().filter_map(Weak::upgrade) {
        let left = end.saturating_duration_since(Instant::now());
        let unwritten = |state: &mut State| state.under_way > 0 || !state.lines.is_empty();
        drop(writer.written.wait_timeout_while(lock(&writer.state), left, unwritten));
    }
}

type Open = Box<dyn FnOnce() -> io::Result<Box<dyn Write + Send>> + Send>;

/// What `open` opens gets lines; it is called by the thread that writes.
fn sink(open: impl FnOnce() -> io::Result<Box<dyn Write + Send>> + Send + 'static) -> Sink {
    let output = Mutex::new(Output { open: Some(Box::new(open)), opened: None, lost: 0 });
    let shared = Arc::new(Shared { state: Mutex::default(), output, waiting: Condvar::new(), written: Condvar::new() });
    let mut writers = lock(&WRITERS);
    writers.retain(|writer| writer.strong_count() > 0);
    writers.push(Arc::downgrade(&shared));
    let writer = Writer(shared);
    Arc::new(move |line: &str| writer.line(line))
}

/// The end of it that lines go in. When it is gone, the thread ends.
struct Writer(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Held by whoever writes.
    output: Mutex<Output>,
    /// A line waits, or there will be no more.
    waiting: Condvar,
    /// Something was written.
    written: Condvar,
}

#[derive(Default)]
struct State {
    lines: VecDeque<String>,
    bytes: usize,
    /// Lines for which there was no room, after those that wait; there are such, then.
    lost: u64,
    /// Bytes that are being written.
    under_way: usize,
    is_stuck: bool,
    has_thread: bool,
    is_closed: bool,
}

struct Output {
    open: Option<Open>,
    opened: Option<Box<dyn Write + Send>>,
    /// Lines that could not be written, and nobody was told.
    lost: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn has_room(&self, line: &str) -> bool {
        self.lost == 0 && (self.lines.is_empty() || self.bytes + line.len() <= ROOM)
    }

    /// The next lines, and how many were lost after them.
    fn take(&mut self) -> (String, u64) {
        let mut batch = self.lines.pop_front().unwrap_or_default();
        while let Some(line) = self.lines.pop_front_if(|line| batch.len() + line.len() <= BATCH) {
            batch.push_str(&line);
        }
        self.bytes -= batch.len();
        let lost = if self.lines.is_empty() { std::mem::take(&mut self.lost) } else { 0 };
        self.under_way = batch.len();
        (batch, lost)
    }
}

impl Writer {
    fn line(&self, line: &str) {
        let line = format!("{line}\n");
        let mut state = lock(&self.0.state);
        if !state.has_room(&line) && !state.is_stuck {
            let full = |state: &mut State| !state.has_room(&line) && !state.is_stuck;
            let waited = self.0.written.wait_timeout_while(state, PATIENCE, full);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.is_stuck = !state.has_room(&line);
        }
        if !state.has_room(&line) {
            state.lost += 1;
            return;
        }
        state.bytes += line.len();
        state.lines.push_back(line);
        if !state.has_thread {
            let shared = self.0.clone();
            let thread = thread::Builder::new().name("log".to_owned()).spawn(move || shared.write_until_closed());
            state.has_thread = thread.is_ok();
        }
        let has_thread = state.has_thread;
        drop(state);
        if has_thread {
            self.0.waiting.notify_one();
        } else {
            // There are too many of them; the next line tries again.
            self.0.write_what_waits();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        lock(&self.0.state).is_closed = true;
        self.0.waiting.notify_one();
    }
}

impl Shared {
    fn write_until_closed(&self) {
        loop {
            let nothing = |state: &mut State| state.lines.is_empty() && !state.is_closed;
            let state = self.waiting.wait_while(lock(&self.state), nothing).unwrap_or_else(PoisonError::into_inner);
            if state.lines.is_empty() {
                return;
            }
            drop(state);
            self.write_what_waits();
        }
    }

    fn write_what_waits(&self) {
        let mut output = lock(&self.output);
        loop {
            let mut state = lock(&self.state);
            if state.lines.is_empty() {
                return;
            }
            let (batch, lost) = state.take();
            drop(state);
            output.write(&batch, lost);
            let mut state = lock(&self.state);
            (state.under_way, state.is_stuck) = (0, false);
            drop(state);
            self.written.notify_all();
        }
    }
}

impl Output {
    /// Writes lines, and how many are missing before and after them. What cannot be written is missing then: a full disk or a
    /// closed pipe must not stop the collector.
    fn write(&mut self, lines: &str, lost_after: u64) {
        if let Some(open) = self.open.take() {
            self.opened = open().ok();
        }
        let Some(output) = &mut self.opened else { return };
        let mut write = |text: &str| output.write_all(text.as_bytes());
        let notice = |lost| {
            let lost = counted(lost, "line of the log was lost", "lines of the log were lost");
            format!("{:.3} warn collector: {lost}: nobody took them\n", jiff::Timestamp::now())
        };
        if self.lost > 0 && write(&notice(self.lost)).is_ok() {
            self.lost = 0;
        }
        if write(lines).is_err() {
            self.lost += lines.lines().count() as u64 + lost_after;
        } else if lost_after > 0 && write(&notice(lost_after)).is_err() {
            self.lost += lost_after;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;

    /// A pipe of the smallest size.
    fn pipe() -> (std::io::PipeReader, Sink) {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        nix::fcntl::fcntl(&writer, nix::fcntl::FcntlArg::F_SETPIPE_SZ(4096)).expect("a small one");
        let file = std::fs::File::from(OwnedFd::from(writer));
        (reader, sink(move || Ok(Box::new(file))))
    }

    fn text(mut reader: impl io::Read) -> String {
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("reads");
        text
    }

    #[test]
    fn lines_that_nobody_takes_are_counted_and_the_others_come_in_order() {
        let (reader, sink) = pipe();
        let line = |number: u32| format!("{number} {}", "x".repeat(1000));
        (0..2000).for_each(|number| sink(&line(number)));
        // It is over in the time that is given to it.
        finish();
        let mut lines = io::BufRead::lines(io::BufReader::new(reader)).map(|line| line.expect("reads"));
        let mut kept = 0;
        let notice = loop {
            let next = lines.next().expect("a line");
            if next != line(kept) {
                break next;
            }
            kept += 1;
        };
        let lost = format!(" warn collector: {} lines of the log were lost: nobody took them", 2000 - kept);
        assert!(kept < 2000 && notice.ends_with(&lost), "{kept}: {notice}");
        sink("the last one");
        drop(sink);
        assert_eq!(lines.collect::<Vec<_>>(), ["the last one"]);
    }

    #[test]
    fn a_slow_reader_gets_everything() {
        let (mut reader, sink) = pipe();
        let reading = thread::spawn(move || {
            let mut bytes = vec![0; 3 << 20];
            io::Read::read_exact(&mut reader, &mut bytes).expect("reads");
            bytes
        });
        let line = "y".repeat(1023);
        (0..3 << 10).for_each(|_| sink(&line));
        drop(sink);
        assert!(reading.join().expect("reads").chunks(1024).all(|chunk| chunk == format!("{line}\n").as_bytes()));
    }

    /// As of a full disk, once.
    #[test]
    fn what_cannot_be_written_is_said_with_the_next_line() {
        struct Full(bool, io::PipeWriter);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                if std::mem::take(&mut self.0) { Err(io::ErrorKind::StorageFull.into()) } else { self.1.write(bytes) }
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (reader, writer) = io::pipe().expect("a pipe");
        let sink = sink(move || Ok(Box::new(Full(true, writer))));
        sink("first");
        finish();
        sink("second");
        drop(sink);
        let text = text(reader);
        let (notice, rest) = text.split_once('\n').expect("a line");
        assert!(notice.ends_with(" warn collector: 1 line of the log was lost: nobody took them"), "{text}");
        assert_eq!(rest, "second\n");
    }

    #[test]
    fn a_pipe_is_opened_when_there_is_a_reader() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pipe");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        let sink = file(&path).expect("opens");
        sink("early");
        let reader = std::fs::File::open(&path).expect("opens");
        drop(sink);
        assert_eq!(text(reader), "early\n");
        assert!(file(&folder.path().join("no/such")).is_err());
    }
}
