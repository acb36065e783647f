//! The reporter on a thread of its own: a terminal may be stopped (Ctrl-S), or be a pipe that nobody reads, and what else is
//! done with events goes on.
//!
//! What waits to be shown is kept without a limit, since it is little: samples of memory wait only where they are printed,
//! with `--json`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

use super::reporter::{Reporter, Style};
use crate::events::{Event, EventKind};
use crate::jobdir::Summary;

/// At the end, a terminal that takes nothing for so long is given up.
const PATIENCE: Duration = Duration::from_secs(2);

/// So many events are one step of progress.
const SHOWN_AT_ONCE: usize = 64;

enum Message {
    /// With the summary that has taken them in, where it is wanted.
    Events(Vec<Event>, Option<Box<Summary>>),
    Line(String),
}

/// The running thread.
pub struct Terminal {
    style: Style,
    /// What is shown once it is flushed.
    waiting: Vec<Event>,
    queue: Sender<Message>,
    /// How many events and lines were shown.
    shown: Arc<AtomicUsize>,
    /// Never gets anything; its other end goes with the thread.
    over: Receiver<()>,
}

impl Terminal {
    /// Starts the thread.
    ///
    /// # Errors
    /// If there can be no more threads.
    pub fn start(mut reporter: Reporter) -> io::Result<Self> {
        let style = reporter.style();
        let (queue, messages) = channel();
        let (alive, over) = channel();
        let shown = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&shown);
        Builder::new().name("terminal".to_owned()).spawn(move || {
            let _alive: Sender<()> = alive;
            while let Ok(first) = messages.recv() {
                for message in std::iter::once(first).chain(messages.try_iter()) {
                    match message {
                        Message::Events(events, summary) => {
                            for events in events.chunks(SHOWN_AT_ONCE) {
                                reporter.show(events, summary.as_deref());
                                count.fetch_add(events.len(), Ordering::Relaxed);
                            }
                        }
                        Message::Line(line) => {
                            (reporter.line_sink())(format!("{line}\n").as_bytes());
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            }
        })?;
        Ok(Self { style, waiting: Vec::new(), queue, shown, over })
    }

    /// Shows an event, once it is flushed: each message wakes the thread.
    pub fn show(&mut self, event: Event) {
        if self.style == Style::Json || !matches!(event.kind, EventKind::MemorySampled(_)) {
            self.waiting.push(event);
        }
    }

    /// Shows what waits, which `summary` has taken in.
    pub fn flush(&mut self, summary: &Summary) {
        if !self.waiting.is_empty() {
            let events = std::mem::take(&mut self.waiting);
            let last = events.iter().any(|event| matches!(event.kind, EventKind::JobEnded { .. }));
            // A copy of all processes for each event of each process adds up.
            let wanted = self.style == Style::Live || last;
            self.send(Message::Events(events, wanted.then(|| Box::new(summary.clone()))));
        }
    }

    /// Shows a line of gymrun's own.
    pub fn say(&self, line: String) {
        self.send(Message::Line(line));
    }

    fn send(&self, message: Message) {
        // The thread ends only after this end of the queue is gone, or by a panic, which has been shown.
        let _ = self.queue.send(message);
    }

    /// Waits until everything is shown, as long as something is.
    pub fn end(self) {
        drop(self.queue);
        let mut before = self.shown.load(Ordering::Relaxed);
        while self.over.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            let now = self.shown.load(Ordering::Relaxed);
            if now == before {
                return;
            }
            before = now;
        }
    }
}
