//! Shows what a child wrote, on a thread of its own: whoever reads it may be slow, or may not read at all.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Takes one line of output, without its end.
pub type LineSink = Arc<dyn Fn(&str) + Send + Sync>;

/// From so many bytes on that wait to be shown nothing more is read: the child has to wait, too.
const MOST_WAITING: usize = 1024 * 1024;
/// What is written at once, so that the count of what waits says how far it is.
const PIECE: usize = 64 * 1024;
/// A line that is longer is shown in pieces.
const LONGEST_LINE: usize = 16 * 1024;

/// Where bytes are shown besides the file.
pub enum Destination {
    /// Nowhere.
    Nowhere,
    /// As they are, into this descriptor; a reader that is gone only ends the showing.
    Raw(File),
    /// Whole lines, bytes that are no UTF-8 replaced.
    Lines(LineSink),
}

/// A running show. Dropped, it goes on until everything that it was given is shown.
pub(super) struct Showing {
    queue: mpsc::Sender<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
}

impl Showing {
    /// Starts the thread; `caught_up` is rung when more may be given after [`Showing::behind`] was true.
    pub(super) fn start(destination: Destination, caught_up: io::PipeWriter) -> io::Result<Self> {
        let (queue, inbox) = mpsc::channel::<Vec<u8>>();
        let waiting = Arc::new(AtomicUsize::new(0));
        let mut work = Work { destination, line: Vec::new(), waiting: Arc::clone(&waiting), caught_up };
        let thread = thread::Builder::new().name("show".into()).stack_size(256 * 1024).spawn(move || {
            for bytes in inbox {
                work.show(&bytes);
            }
            work.end();
        })?;
        Ok(Self { queue, waiting, thread })
    }

    /// One more piece.
    pub(super) fn show(&self, bytes: &[u8]) {
        self.waiting.fetch_add(bytes.len(), Ordering::SeqCst);
        // The thread ends only after this end of the queue is gone.
        let _ = self.queue.send(bytes.to_vec());
    }

    /// Whether so much waits that no more should be given.
    pub(super) fn behind(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) >= MOST_WAITING
    }

    /// The count of bytes that wait to be shown, for others to look at.
    pub(super) fn waiting(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.waiting)
    }

    /// Nothing more will come: what ends when everything is shown.
    pub(super) fn end(self) -> JoinHandle<()> {
        self.thread
    }
}

struct Work {
    destination: Destination,
    line: Vec<u8>,
    waiting: Arc<AtomicUsize>,
    caught_up: io::PipeWriter,
}

impl Work {
    fn show(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(PIECE) {
            match &mut self.destination {
                Destination::Nowhere => {}
                Destination::Raw(file) => {
                    if write_all(file, piece).is_err() {
                        self.destination = Destination::Nowhere;
                    }
                }
                Destination::Lines(sink) => {
                    for part in piece.split_inclusive(|b| *b == b'\n') {
                        self.line.extend_from_slice(part);
                        if part.ends_with(b"\n") || self.line.len() >= LONGEST_LINE {
                            show_line(sink, &mut self.line);
                        }
                    }
                }
            }
            let before = self.waiting.fetch_sub(piece.len(), Ordering::SeqCst);
            if before >= MOST_WAITING && before - piece.len() < MOST_WAITING {
                // If nobody listens any more, nobody waits for it either.
                let _ = self.caught_up.write_all(b".");
            }
        }
    }

    fn end(&mut self) {
        if let Destination::Lines(sink) = &self.destination
            && !self.line.is_empty()
        {
            show_line(sink, &mut self.line);
        }
    }
}

fn show_line(sink: &LineSink, line: &mut Vec<u8>) {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    sink(&String::from_utf8_lossy(text));
    line.clear();
}

/// Like `write_all`, for a descriptor that may be non-blocking because of whoever shares it.
pub(super) fn write_all(file: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let mut ready = [PollFd::new(file.as_fd(), PollFlags::POLLOUT)];
                poll(&mut ready, PollTimeout::NONE)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
