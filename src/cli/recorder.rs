//! One thread that reads all events: writes them down, folds the summary, exports them, hands them to the terminal's thread.
//!
//! The supervisor only puts events into a queue, so a slow disk never holds it up, and a slow terminal holds up nobody.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle, Thread, park_timeout};
use std::time::Duration;

use crate::diag::counted;
use crate::events::{Event, EventKind, Sink};
use crate::files::Reserved;
use crate::jobdir::{EventLog, Summary, lens_warnings};
use crate::plan::Plan;
use crate::report::{Reporter, Terminal};
use crate::telemetry::Exporter;

/// How long the last of gymrun's own telemetry may take: one export of each signal.
const TELEMETRY_LIMIT: Duration = Duration::from_secs(5);

/// How long the files may take to be written once all is over.
const FILES_LIMIT: Duration = Duration::from_secs(10);
/// How long a stderr that takes nothing is waited for then.
const LAST_WORD_LIMIT: Duration = Duration::from_secs(1);

/// After what has happened, for so long more is waited for: that is then written at once, and wakes the terminal's thread
/// once.
const MOMENT: Duration = Duration::from_millis(4);

/// How many bytes `result.json` will hardly exceed.
fn room(plan: &Plan) -> u32 {
    u32::try_from(plan.units.len()).unwrap_or(u32::MAX).saturating_mul(2 << 10).saturating_add(16 << 10)
}

enum Message {
    Event(Box<Event>),
    FinishTelemetry(Sender<()>),
    End,
}

/// The reader of events, running.
pub(super) struct Recorder {
    queue: Sender<Message>,
    /// Never gets anything; its other end is gone once all is in the files.
    written: Receiver<()>,
    thread: JoinHandle<Summary>,
}

impl Recorder {
    /// Starts the thread.
    pub(super) fn start(plan: &Arc<Plan>, job_dir: &Path, reporter: Reporter, exporter: Exporter) -> io::Result<Self> {
        let (queue, messages) = channel();
        let log = EventLog::open(job_dir)?;
        let reading = Reading {
            plan: Arc::clone(plan),
            summary: Summary::new(plan),
            result: Some(Reserved::new(&job_dir.join("result.json"), room(plan))),
            job_dir: job_dir.to_owned(),
            log,
            unwritten: 0,
            terminal: Terminal::start(reporter)?,
            exporter,
        };
        let (unwritten, written) = channel();
        let thread = Builder::new().name("events".to_owned()).spawn(move || reading.run(&messages, unwritten))?;
        Ok(Self { queue, written, thread })
    }

    /// Where the supervisor says what happens.
    pub(super) fn sink(&self) -> Sink {
        let queue = self.queue.clone();
        let reader = self.reader().clone();
        Sink::new(move |event| {
            let last = matches!(event.kind, EventKind::JobEnded { .. });
            let _ = queue.send(Message::Event(Box::new(event)));
            if last {
                reader.unpark();
            }
        })
    }

    /// A function that sends all of gymrun's own telemetry off and waits for that, within limits.
    pub(super) fn telemetry_finisher(&self) -> impl FnOnce() + Send + 'static {
        let queue = self.queue.clone();
        let reader = self.reader().clone();
        move || {
            let (done, wait) = channel();
            if queue.send(Message::FinishTelemetry(done)).is_ok() {
                reader.unpark();
                let _ = wait.recv_timeout(TELEMETRY_LIMIT);
            }
        }
    }

    /// Waits until everything is written and shown; `None`, after a line on stderr, if the file system of the job directory
    /// does not answer: nothing runs any more, and nobody is helped by a gymrun that does.
    pub(super) fn end(self) -> Option<Summary> {
        self.end_within(FILES_LIMIT)
    }

    fn end_within(self, limit: Duration) -> Option<Summary> {
        let _ = self.queue.send(Message::End);
        self.reader().unpark();
        if self.written.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            say_at_last(
                "gymrun: warning: the file system of the job directory does not answer: the end is not in events.jsonl, \
                 nor in result.json\n",
            );
            return None;
        }
        self.thread.join().ok()
    }

    fn reader(&self) -> &Thread {
        self.thread.thread()
    }
}

/// Says it on stderr, unless nobody takes it there.
fn say_at_last(text: &'static str) {
    let (said, is_said) = channel::<()>();
    let say = move || {
        let _ = io::stderr().write_all(text.as_bytes());
        drop(said);
    };
    if Builder::new().spawn(say).is_ok() {
        let _ = is_said.recv_timeout(LAST_WORD_LIMIT);
    }
}

struct Reading {
    plan: Arc<Plan>,
    summary: Summary,
    job_dir: PathBuf,
    /// Room for `result.json`, until it is written.
    result: Option<Reserved>,
    log: EventLog,
    /// How many events could not be written.
    unwritten: u64,
    terminal: Terminal,
    exporter: Exporter,
}

impl Reading {
    fn run(mut self, messages: &Receiver<Message>, unwritten: Sender<()>) -> Summary {
        let mut batch = Vec::new();
        'reading: while let Ok(first) = messages.recv() {
            for message in std::iter::once(first).chain(messages.try_iter()) {
                match message {
                    Message::Event(event) => self.read(*event, &mut batch),
                    Message::FinishTelemetry(done) => {
                        self.take(&mut batch);
                        self.exporter.finish();
                        let _ = done.send(());
                    }
                    Message::End => break 'reading,
                }
            }
            self.take(&mut batch);
            park_timeout(MOMENT);
        }
        self.take(&mut batch);
        if self.unwritten > 0 {
            let unwritten = counted(self.unwritten, "event is", "events are");
            self.terminal.say(format!("gymrun: warning: {unwritten} not in events.jsonl"));
        }
        if self.log.is_gone() {
            let message = "gymrun: warning: somebody has removed events.jsonl while the job ran: it is lost";
            self.terminal.say(message.to_owned());
        }
        drop(unwritten);
        // Without a collector to stop, or after it died, nobody has asked for this yet.
        self.exporter.finish();
        self.terminal.end();
        self.summary
    }

    fn read(&self, event: Event, batch: &mut Vec<Event>) {
        let lens = match event.kind {
            EventKind::AllReady { .. } => lens_warnings(&self.job_dir, &self.plan),
            _ => Vec::new(),
        };
        let (time, elapsed) = (event.time, event.elapsed);
        batch.push(event);
        batch.extend(lens.into_iter().map(|kind| Event { time, elapsed, kind }));
    }

    fn take(&mut self, batch: &mut Vec<Event>) {
        if let Err((count, error)) = self.log.append(batch) {
            if self.unwritten == 0 {
                self.terminal.say(format!("gymrun: warning: cannot write events.jsonl: {error}"));
            }
            self.unwritten += count;
        }
        for event in batch.drain(..) {
            self.summary.apply(&event);
            if matches!(event.kind, EventKind::JobEnded { .. }) {
                // result.json stands before the last line says that the job is over.
                self.write_result();
            }
            self.exporter.apply(&event);
            if self.exporter.take_failure() {
                let message = "gymrun: warning: there can be no more threads: gymrun's own telemetry is not sent, look \
                               at `ulimit -u`";
                self.terminal.say(message.to_owned());
            }
            self.terminal.show(event);
        }
        self.terminal.flush(&self.summary);
    }

    fn write_result(&mut self) {
        let Some(mut reserved) = self.result.take() else { return };
        let result = serde_json::to_vec_pretty(&self.summary).map_err(io::Error::other);
        let written = result.and_then(|result| reserved.write(&result));
        let written = written.or_else(|error| match self.summary.shortened(reserved.bytes()) {
            Some(shorter) => reserved.write(&shorter),
            None => Err(error),
        });
        if let Err(error) = written {
            self.terminal.say(format!("gymrun: warning: cannot write result.json: {error}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use super::{Recorder, Summary};

    #[test]
    fn files_that_cannot_be_written_do_not_hold_up_the_end() {
        let (queue, _messages) = channel();
        let (_unwritten, written) = channel();
        let stuck = thread::spawn(|| -> Summary {
            loop {
                thread::park();
            }
        });
        let recorder = Recorder { queue, written, thread: stuck };
        assert!(recorder.end_within(Duration::from_millis(20)).is_none());
    }
}
