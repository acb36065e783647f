//! What a child writes into a pipe, copied into its log file and shown.
//!
//! One thread a child: it blocks in `poll`, so an idle child costs nothing and a busy one costs one copy with a large
//! buffer. The end of the child is not the end of the pipe (a background process may hold it), nor the other way round:
//! whoever wants all that was written so far asks for it with [`Copier::drain`].

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::sync::oneshot;

/// Takes one line of output, without its end.
pub type LineSink = Arc<dyn Fn(&str) + Send + Sync>;

/// Takes bytes as they come.
pub type ByteSink = Box<dyn FnMut(&[u8]) + Send>;

const BUFFER: usize = 256 * 1024;
const PIPE: i32 = 1024 * 1024;
/// A line that is longer is shown in pieces; the file has it as it was.
const LONGEST_LINE: usize = 16 * 1024;

/// Where bytes are shown besides the file.
pub enum Destination {
    /// Nowhere.
    Nowhere,
    /// As they are, into this descriptor; a reader that is gone only ends the showing.
    Raw(File),
    /// As they are, to whoever draws them.
    Bytes(ByteSink),
    /// Whole lines, bytes that are no UTF-8 replaced.
    Lines(LineSink),
}

/// One pipe.
pub struct Source {
    /// Its reading end.
    pub pipe: OwnedFd,
    /// Where it is shown.
    pub shown: Destination,
}

/// Hears of an error, once.
pub type OnFailure = Box<dyn FnOnce(io::Error) + Send>;

/// The work of one copier.
pub struct CopyPlan {
    /// The pipes of one child.
    pub sources: Vec<Source>,
    /// Gets every byte.
    pub file: File,
    /// Called at most once, if the file cannot be written any more.
    pub failed: OnFailure,
}

enum Order {
    Drain(oneshot::Sender<()>),
    Finish(oneshot::Sender<()>),
}

/// A running copier.
#[derive(Debug)]
pub struct Copier {
    orders: Arc<Mutex<Vec<Order>>>,
    bell: io::PipeWriter,
}

impl std::fmt::Debug for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Drain(_) => "Drain",
            Self::Finish(_) => "Finish",
        })
    }
}

impl Copier {
    /// Starts the thread.
    pub fn start(plan: CopyPlan) -> io::Result<Self> {
        let (ring, bell) = io::pipe()?;
        for source in &plan.sources {
            let _ = fcntl(&source.pipe, FcntlArg::F_SETPIPE_SZ(PIPE));
            fcntl(&source.pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        let orders = Arc::new(Mutex::new(Vec::new()));
        let mut work = Work {
            sources: plan.sources.into_iter().map(Reader::new).collect(),
            file: Some(plan.file),
            failed: Some(plan.failed),
            buffer: vec![0; BUFFER],
        };
        let inbox = Arc::clone(&orders);
        thread::Builder::new().name("copier".into()).stack_size(256 * 1024).spawn(move || work.run(ring, &inbox))?;
        Ok(Self { orders, bell })
    }

    /// Done once all that was written up to now is in the file.
    pub fn drain(&self) -> oneshot::Receiver<()> {
        self.order(Order::Drain)
    }

    /// The same, and nothing is read afterwards, whoever still holds the pipe.
    pub fn finish(&self) -> oneshot::Receiver<()> {
        self.order(Order::Finish)
    }

    fn order(&self, order: fn(oneshot::Sender<()>) -> Order) -> oneshot::Receiver<()> {
        let (done, wait) = oneshot::channel();
        self.orders.lock().unwrap_or_else(PoisonError::into_inner).push(order(done));
        // If the thread is gone there is nothing to wait for, and the sender is dropped with the orders.
        if (&self.bell).write_all(b"!").is_err() {
            self.orders.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
        wait
    }
}

struct Reader {
    pipe: File,
    shown: Destination,
    line: Vec<u8>,
}

impl Reader {
    fn new(source: Source) -> Self {
        Self { pipe: File::from(source.pipe), shown: source.shown, line: Vec::new() }
    }

    fn show(&mut self, bytes: &[u8]) {
        match &mut self.shown {
            Destination::Nowhere => {}
            Destination::Raw(file) => {
                if write_all(file, bytes).is_err() {
                    self.shown = Destination::Nowhere;
                }
            }
            Destination::Bytes(sink) => sink(bytes),
            Destination::Lines(sink) => {
                for piece in bytes.split_inclusive(|b| *b == b'\n') {
                    self.line.extend_from_slice(piece);
                    if piece.ends_with(b"\n") || self.line.len() >= LONGEST_LINE {
                        show_line(sink, &mut self.line);
                    }
                }
            }
        }
    }

    fn end(&mut self) {
        if let Destination::Lines(sink) = &self.shown
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
fn write_all(file: &mut File, mut bytes: &[u8]) -> io::Result<()> {
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

struct Work {
    sources: Vec<Reader>,
    file: Option<File>,
    failed: Option<OnFailure>,
    buffer: Vec<u8>,
}

impl Work {
    fn run(&mut self, mut ring: io::PipeReader, orders: &Mutex<Vec<Order>>) {
        loop {
            let mut ready = vec![PollFd::new(ring.as_fd(), PollFlags::POLLIN)];
            ready.extend(self.sources.iter().map(|s| PollFd::new(s.pipe.as_fd(), PollFlags::POLLIN)));
            // Interrupted: look again.
            if poll(&mut ready, PollTimeout::NONE).is_err() {
                continue;
            }
            let happened: Vec<bool> = ready.iter().map(|fd| fd.any().unwrap_or(true)).collect();
            for index in (0..self.sources.len()).rev() {
                if happened[index + 1] {
                    self.read_once(index);
                }
            }
            if happened[0] {
                let mut strokes = [0; 64];
                if matches!(ring.read(&mut strokes), Ok(0)) {
                    // Nobody can order anything any more.
                    self.read_all();
                    return self.end();
                }
                let taken = std::mem::take(&mut *orders.lock().unwrap_or_else(PoisonError::into_inner));
                for order in taken {
                    self.read_all();
                    match order {
                        Order::Drain(done) => {
                            let _ = done.send(());
                        }
                        Order::Finish(done) => {
                            self.end();
                            let _ = done.send(());
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Reads what is there, at most one buffer; a source that has ended is taken away. Whether there may be more.
    fn read_once(&mut self, index: usize) -> bool {
        let source = &mut self.sources[index];
        match source.pipe.read(&mut self.buffer) {
            Ok(0) => {
                source.end();
                self.sources.remove(index);
                false
            }
            Ok(count) => {
                let bytes = &self.buffer[..count];
                // The file first: showing may have to wait for a slow reader.
                if let Some(file) = &mut self.file
                    && let Err(error) = write_all(file, bytes)
                {
                    self.file = None;
                    if let Some(failed) = self.failed.take() {
                        failed(error);
                    }
                }
                source.show(bytes);
                true
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(_) => {
                source.end();
                self.sources.remove(index);
                false
            }
        }
    }

    /// Reads all that was written up to now. Bounded by what fits into the pipes, so that a child that floods on cannot
    /// keep it here for ever.
    fn read_all(&mut self) {
        let most = 4 * PIPE.unsigned_abs() as usize / BUFFER;
        for index in (0..self.sources.len()).rev() {
            for _ in 0..most {
                if !self.read_once(index) {
                    break;
                }
            }
        }
    }

    fn end(&mut self) {
        for source in &mut self.sources {
            source.end();
        }
        self.sources.clear();
    }
}
