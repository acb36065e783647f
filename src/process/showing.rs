//! Shows what a child wrote, on a thread of its own: whoever reads it may be slow, or may not read at all.
//!
//! The thread of the copier makes lines of it, so that they are copied once; this one only writes.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::lines::Lines;
use super::log::OnFailure;

/// Takes some whole lines of text, each with its end.
pub type LineSink = Arc<dyn Fn(&[u8]) + Send + Sync>;
/// What stands in front of a line that comes now.
pub type Prefix = Box<dyn Fn() -> String + Send>;

/// From so many bytes on that wait to be shown nothing more is read: the child has to wait, too.
const MOST_WAITING: usize = 1024 * 1024;
/// After something was shown the next is waited for this long, or until there is that much: a flood that wakes the thread for
/// each of its pieces costs more than the showing. What comes after a silence is shown at once.
const NAP: Duration = Duration::from_millis(5);
const WORTH_WAKING: usize = MOST_WAITING / 2;
/// What is written at once, so that the count of what waits says how far it is, and others get their turn.
const PIECE: usize = 64 * 1024;

/// Where bytes are shown besides the file.
pub enum Destination {
    /// Nowhere.
    Nowhere,
    /// As they are, into this descriptor; a reader that is gone only ends the showing.
    Raw {
        /// The descriptor.
        file: File,
        /// Hears why it ends, unless that is a reader that is gone.
        failed: OnFailure,
    },
    /// Whole lines, bytes that are no UTF-8 replaced.
    Lines {
        /// In front of each line.
        prefix: Prefix,
        /// Where they go.
        sink: LineSink,
    },
}

/// A running show. Ended, it goes on until everything that it was given is shown.
pub(super) struct Showing {
    queue: Arc<Queue>,
    /// What makes lines of it; `None`: it is shown as it is.
    lines: Option<(Lines, Prefix)>,
    thread: JoinHandle<()>,
}

/// What waits to be shown.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    /// How many bytes are in it, or were taken out and are not shown yet.
    waiting: Arc<AtomicUsize>,
}

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    /// The thread waits for much, or for a while.
    naps: bool,
    ended: bool,
}

impl Showing {
    /// Starts the thread; `caught_up` is rung when more may be given after [`Showing::behind`] was true. `None` if there
    /// is nowhere to show anything.
    pub(super) fn start(destination: Destination, caught_up: io::PipeWriter) -> io::Result<Option<Self>> {
        let (lines, target) = match destination {
            Destination::Nowhere => return Ok(None),
            Destination::Raw { file, failed } => (None, Target::Raw(file, failed)),
            Destination::Lines { prefix, sink } => (Some((Lines::default(), prefix)), Target::Lines(sink)),
        };
        let queue = Arc::new(Queue::default());
        let work = Work { target, queue: Arc::clone(&queue), caught_up };
        let thread = thread::Builder::new().name("show".into()).stack_size(256 * 1024).spawn(move || work.run())?;
        Ok(Some(Self { queue, lines, thread }))
    }

    /// One more piece.
    pub(super) fn show(&mut self, bytes: &[u8]) {
        let lines = &mut self.lines;
        self.queue.put(|queued| match lines {
            None => queued.extend_from_slice(bytes),
            Some((lines, prefix)) => lines.take(bytes, &prefix(), queued),
        });
    }

    /// Whether so much waits that no more should be given.
    pub(super) fn behind(&self) -> bool {
        self.queue.waiting.load(Ordering::SeqCst) >= MOST_WAITING
    }

    /// The count of bytes that wait to be shown, for others to look at.
    pub(super) fn waiting(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.queue.waiting)
    }

    /// Nothing more will come: what ends when everything is shown.
    pub(super) fn end(mut self) -> JoinHandle<()> {
        if let Some((lines, prefix)) = &mut self.lines {
            self.queue.put(|queued| lines.end(&prefix(), queued));
        }
        self.queue.end();
        self.thread
    }
}

impl Queue {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, add: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.lock();
        let before = state.bytes.len();
        add(&mut state.bytes);
        let now = state.bytes.len();
        self.waiting.fetch_add(now - before, Ordering::SeqCst);
        let enough = if state.naps { WORTH_WAKING } else { 1 };
        drop(state);
        if before < enough && now >= enough {
            self.changed.notify_one();
        }
    }

    fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_one();
    }

    /// Waits until there is something, and swaps it for the empty `bytes`; whether there is. `last` is when something was
    /// shown last.
    fn swap(&self, bytes: &mut Vec<u8>, last: Option<Instant>) -> bool {
        let mut state = self.lock();
        if let Some(left) = last.and_then(|last| NAP.checked_sub(last.elapsed())) {
            state.naps = true;
            let little = |state: &mut State| state.bytes.len() < WORTH_WAKING && !state.ended;
            let woken = self.changed.wait_timeout_while(state, left, little);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            state.naps = false;
        }
        while state.bytes.is_empty() && !state.ended {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::swap(&mut state.bytes, bytes);
        !bytes.is_empty()
    }
}

enum Target {
    Raw(File, OnFailure),
    Lines(LineSink),
    Nobody,
}

struct Work {
    target: Target,
    queue: Arc<Queue>,
    caught_up: io::PipeWriter,
}

impl Work {
    fn run(mut self) {
        let mut bytes = Vec::new();
        let mut last = None;
        while self.queue.swap(&mut bytes, last) {
            let mut left = bytes.as_slice();
            while !left.is_empty() {
                let count = self.show(left);
                left = &left[count..];
                let before = self.queue.waiting.fetch_sub(count, Ordering::SeqCst);
                if before >= MOST_WAITING && before - count < MOST_WAITING {
                    // If nobody listens any more, nobody waits for it either.
                    let _ = self.caught_up.write_all(b".");
                }
            }
            bytes.clear();
            last = Some(Instant::now());
        }
    }

    /// Shows the first piece; how long it was.
    fn show(&mut self, bytes: &[u8]) -> usize {
        let most = bytes.len().min(PIECE);
        match &mut self.target {
            Target::Nobody => bytes.len(),
            Target::Raw(file, _) => {
                if let Err(error) = write_all(file, &mut &bytes[..most])
                    && let Target::Raw(_, failed) = std::mem::replace(&mut self.target, Target::Nobody)
                    && error.kind() != io::ErrorKind::BrokenPipe
                {
                    failed(&error);
                }
                most
            }
            Target::Lines(sink) => {
                let end = memchr::memrchr(b'\n', &bytes[..most]).or_else(|| memchr::memchr(b'\n', bytes));
                let count = end.map_or(bytes.len(), |end| end + 1);
                sink(&bytes[..count]);
                count
            }
        }
    }
}

/// Like `write_all`, for a descriptor that may be non-blocking because of whoever shares it. What was written is taken off
/// `bytes`, whatever happens.
pub(super) fn write_all(file: &mut File, bytes: &mut &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => *bytes = &bytes[written..],
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
