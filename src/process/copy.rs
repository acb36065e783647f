//! What a child writes into a pipe, copied into its log file and shown.
//!
//! One thread a child: it blocks in `poll`, so an idle child costs nothing and a busy one costs one copy with a large
//! buffer. It shows nothing itself, so that the file is never held up by a slow reader; only while very much waits to be
//! shown it reads no more, and the child has to wait as it would for the reader itself. The end of the child is not the
//! end of the pipe (a background process may hold it), nor the other way round: whoever wants all that was written so far
//! asks for it with [`Copier::drain`].

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::sync::oneshot;

use super::log::Log;
use super::showing::{Destination, Showing};
use crate::files::LogPlace;

const BUFFER: usize = 256 * 1024;
const PIPE: i32 = 1024 * 1024;
/// A child has no more.
const STREAMS: usize = 2;
/// How long what a former child has written may take to get into the log.
const PATIENCE: Duration = Duration::from_secs(2);

/// One pipe.
pub struct Source {
    /// Its reading end.
    pub pipe: OwnedFd,
    /// Where it is shown.
    pub shown: Destination,
}

/// The work of one copier.
pub struct CopyPlan {
    /// The pipes of one child: one for both streams, or one for each.
    pub sources: Vec<Source>,
    /// Gets every byte.
    pub log: Log,
    /// Nothing is read before what came in front of it is in the log.
    pub turn: Turn,
}

/// When a copier's turn at its log has come.
pub struct Turn {
    /// The copier of the former child of the same unit, as long as it is not [`Finishing::filed`].
    pub after: Option<mpsc::Receiver<()>>,
    /// Called once, with where the child begins in the log, if that is known.
    pub begins: Box<dyn FnOnce(Option<LogPlace>) + Send>,
}

impl Turn {
    /// Waits for it. A former copier whose file system does not answer keeps nobody waiting for ever.
    fn come(self, log: &Log) {
        if let Some(former) = self.after {
            let _ = former.recv_timeout(PATIENCE);
        }
        (self.begins)(log.begin());
    }
}

/// The end of a copier, in two steps.
#[derive(Debug)]
pub struct Finishing {
    /// Done once all that was written up to now is in the file.
    pub filed: oneshot::Receiver<()>,
    /// Done once it is shown, too.
    pub shown: oneshot::Receiver<()>,
}

#[derive(Debug)]
enum Order {
    Drain(oneshot::Sender<()>),
    Finish { filed: oneshot::Sender<()>, shown: oneshot::Sender<()> },
    Leave,
}

/// A running copier.
#[derive(Debug)]
pub struct Copier {
    orders: Arc<Mutex<Vec<Order>>>,
    bell: io::PipeWriter,
    waiting: Vec<Arc<AtomicUsize>>,
}

impl Copier {
    /// Starts the threads.
    pub fn start(plan: CopyPlan) -> io::Result<Self> {
        let (ring, bell) = io::pipe()?;
        let mut sources = Vec::new();
        for source in plan.sources {
            let _ = fcntl(&source.pipe, FcntlArg::F_SETPIPE_SZ(PIPE));
            fcntl(&source.pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
            let showing = Showing::start(source.shown, bell.try_clone()?)?;
            sources.push(Reader { pipe: File::from(source.pipe), showing });
        }
        let waiting = sources.iter().filter_map(|s| s.showing.as_ref()).map(Showing::waiting).collect();
        let orders = Arc::new(Mutex::new(Vec::new()));
        let mut work = Work { sources, ended: Vec::new(), log: plan.log, buffer: vec![0; BUFFER] };
        let inbox = Arc::clone(&orders);
        let turn = plan.turn;
        let copy = move || {
            turn.come(&work.log);
            work.run(ring, &inbox);
        };
        thread::Builder::new().name("copier".into()).stack_size(256 * 1024).spawn(copy)?;
        Ok(Self { orders, bell, waiting })
    }

    /// Done once all that was written up to now is in the file.
    #[must_use]
    pub fn drain(&self) -> oneshot::Receiver<()> {
        let (done, wait) = oneshot::channel();
        self.order(Order::Drain(done));
        wait
    }

    /// The same, and nothing is read afterwards, whoever still holds the pipe.
    #[must_use]
    pub fn finish(&self) -> Finishing {
        let (filed, wait_for_file) = oneshot::channel();
        let (shown, wait_for_show) = oneshot::channel();
        self.order(Order::Finish { filed, shown });
        Finishing { filed: wait_for_file, shown: wait_for_show }
    }

    /// How many bytes wait to be shown.
    #[must_use]
    pub fn unshown(&self) -> usize {
        self.waiting.iter().map(|waiting| waiting.load(Ordering::SeqCst)).sum()
    }

    fn order(&self, order: Order) {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner).push(order);
        // If the thread is gone there is nothing to wait for, and the sender is dropped with the orders.
        if (&self.bell).write_all(b"!").is_err() {
            self.orders.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        self.order(Order::Leave);
    }
}

struct Reader {
    pipe: File,
    showing: Option<Showing>,
}

impl Reader {
    fn behind(&self) -> bool {
        self.showing.as_ref().is_some_and(Showing::behind)
    }
}

struct Work {
    sources: Vec<Reader>,
    /// The shows of those that have ended.
    ended: Vec<JoinHandle<()>>,
    log: Log,
    buffer: Vec<u8>,
}

impl Work {
    fn run(&mut self, mut ring: io::PipeReader, orders: &Mutex<Vec<Order>>) {
        loop {
            // On the stack: a child that writes each line by itself comes by here for each.
            let mut ready: [PollFd<'_>; STREAMS + 1] =
                std::array::from_fn(|_| PollFd::new(ring.as_fd(), PollFlags::POLLIN));
            let mut heard = [0; STREAMS];
            let mut count = 0;
            for (index, source) in self.sources.iter().enumerate().filter(|(_, source)| !source.behind()).take(STREAMS)
            {
                heard[count] = index;
                count += 1;
                ready[count] = PollFd::new(source.pipe.as_fd(), PollFlags::POLLIN);
            }
            // Interrupted: look again.
            if poll(&mut ready[..=count], PollTimeout::NONE).is_err() {
                continue;
            }
            let happened = ready.map(|fd| fd.any().unwrap_or(true));
            // The last first: one that has ended is taken away.
            for (index, happened) in heard[..count].iter().zip(&happened[1..]).rev() {
                if *happened {
                    self.read_once(*index);
                }
            }
            if happened[0] {
                let mut strokes = [0; 64];
                let _ = ring.read(&mut strokes);
                let taken = std::mem::take(&mut *orders.lock().unwrap_or_else(PoisonError::into_inner));
                for order in taken {
                    self.read_all();
                    match order {
                        Order::Drain(done) => {
                            let _ = done.send(());
                        }
                        Order::Finish { filed, shown } => {
                            let _ = filed.send(());
                            self.show_all();
                            let _ = shown.send(());
                            return;
                        }
                        Order::Leave => return,
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
                self.end(index);
                false
            }
            Ok(count) => {
                let bytes = &self.buffer[..count];
                self.log.write(bytes);
                if let Some(showing) = &mut source.showing {
                    showing.show(bytes);
                }
                true
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(_) => {
                self.end(index);
                false
            }
        }
    }

    /// Reads all that was written up to now, however much waits to be shown. Bounded by what fits into the pipes, so
    /// that a child that floods on cannot keep it here for ever.
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

    fn end(&mut self, index: usize) {
        self.ended.extend(self.sources.remove(index).showing.map(Showing::end));
    }

    /// Waits until everything is shown.
    fn show_all(&mut self) {
        while !self.sources.is_empty() {
            self.end(0);
        }
        for show in self.ended.drain(..) {
            // If it panicked, there is nothing to wait for.
            let _ = show.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{self, Read as _, Write as _};
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use super::{Copier, CopyPlan, LogPlace, Source, Turn, mpsc};
    use crate::process::{Destination, Log};

    const SIZE: usize = 600_004;

    #[tokio::test]
    async fn the_file_has_everything_though_nobody_reads_what_is_shown() {
        let log = tempfile::NamedTempFile::new().expect("a scratch file");
        let (pipe, mut child) = io::pipe().expect("a pipe");
        let (mut reader, shown) = io::pipe().expect("a pipe");
        let copier = Copier::start(CopyPlan {
            sources: vec![Source {
                pipe: OwnedFd::from(pipe),
                shown: Destination::Raw { file: File::from(OwnedFd::from(shown)), failed: Box::new(|_| ()) },
            }],
            log: Log::new(log.path(), None, Box::new(|error| panic!("{error}"))),
            turn: Turn { after: None, begins: Box::new(|_| ()) },
        })
        .expect("it starts");
        let text: Vec<u8> = (0..SIZE).map(|n| b"abcdefg\n"[n % 8]).collect();
        child.write_all(&text).expect("the pipe takes it");
        let finishing = copier.finish();
        let limit = Duration::from_secs(30);
        tokio::time::timeout(limit, finishing.filed).await.expect("in time").expect("it is filed");
        assert_eq!(std::fs::read(log.path()).expect("a log"), text);
        assert!(copier.unshown() > SIZE / 2);
        // The reader wakes up, and gets the rest.
        let mut seen = vec![0; SIZE];
        let seen = tokio::task::spawn_blocking(move || reader.read_exact(&mut seen).map(|()| seen)).await;
        assert_eq!(seen.expect("it is read").expect("all of it is shown"), text);
        tokio::time::timeout(limit, finishing.shown).await.expect("in time").expect("it is shown");
        assert_eq!(copier.unshown(), 0);
    }

    #[tokio::test]
    async fn a_flood_waits_for_who_reads_it_and_loses_nothing() {
        let log = tempfile::NamedTempFile::new().expect("a scratch file");
        let (pipe, mut child) = io::pipe().expect("a pipe");
        let (reader, shown) = io::pipe().expect("a pipe");
        let copier = Copier::start(CopyPlan {
            sources: vec![Source {
                pipe: OwnedFd::from(pipe),
                shown: Destination::Raw { file: File::from(OwnedFd::from(shown)), failed: Box::new(|_| ()) },
            }],
            log: Log::new(log.path(), None, Box::new(|error| panic!("{error}"))),
            turn: Turn { after: None, begins: Box::new(|_| ()) },
        })
        .expect("it starts");
        let flood =
            tokio::task::spawn_blocking(move || (0..32).try_for_each(|n| child.write_all(&vec![b'a' + n; 256 * 1024])));
        // Eight mebibytes through a queue of one: it stops, and goes on each time the reader has caught up.
        let count = tokio::task::spawn_blocking(move || io::copy(&mut { reader }, &mut io::sink()));
        flood.await.expect("it ends").expect("all is written");
        copier.finish().shown.await.expect("it is shown");
        drop(copier);
        assert_eq!(count.await.expect("it ends").expect("it is read"), 8 << 20);
        assert_eq!(log.as_file().metadata().expect("a log").len(), 8 << 20);
    }

    #[tokio::test]
    async fn nothing_is_read_before_what_a_former_child_wrote_is_in_the_log() {
        let file = tempfile::NamedTempFile::new().expect("a scratch file");
        let log = Log::new(file.path(), None, Box::new(|error| panic!("{error}")));
        let (pipe, mut child) = io::pipe().expect("a pipe");
        let (to_file, filed) = mpsc::channel();
        let (tell, begin) = mpsc::channel();
        let shown = Destination::Raw { file: tempfile::tempfile().expect("a scratch file"), failed: Box::new(|_| ()) };
        let copier = Copier::start(CopyPlan {
            sources: vec![Source { pipe: OwnedFd::from(pipe), shown }],
            log: log.clone(),
            turn: Turn { after: Some(filed), begins: Box::new(move |at| tell.send(at).expect("somebody waits")) },
        })
        .expect("it starts");
        child.write_all(b"new\n").expect("the pipe takes it");
        log.write(b"former\n");
        let place = LogPlace::end_of(file.as_file());
        assert!(begin.try_recv().is_err(), "it does not begin yet");
        drop(to_file);
        copier.drain().await.expect("it is filed");
        assert_eq!(std::fs::read(file.path()).expect("a log"), b"former\nnew\n");
        assert_eq!(begin.recv().expect("it has begun"), place);
    }
}
