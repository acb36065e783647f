//! The reader of events that talks to people, or to the program on the other side of `--json`.

use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::describe::{describe, undelivered};
use super::live::{Live, MOST_LINES};
use super::table::table;
use crate::events::{Event, EventKind};
use crate::jobdir::Summary;
use crate::plan::Plan;

/// How events are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// One line an event, on stderr.
    Lines,
    /// A live view and a final table, on a terminal; lines where it would have too many.
    Live,
    /// One JSON object an event, on stdout.
    Json,
}

/// Writes whole lines, each with its end, to the terminal without tearing the live view.
pub type LineSink = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// Shows events as they come.
pub struct Reporter {
    style: Style,
    live: Option<Live>,
    job_dir: PathBuf,
    /// Whole lines that wait to be written.
    waiting: Vec<u8>,
    /// It was said that stdout does not take events.
    failed: bool,
}

/// So many bytes do not wait.
const ENOUGH: usize = 64 << 10;

impl Reporter {
    /// A reporter for one job.
    #[must_use]
    pub fn new(style: Style, plan: &Plan) -> Self {
        let style = match style {
            Style::Live if plan.units.len() > MOST_LINES => Style::Lines,
            style => style,
        };
        let live = (style == Style::Live).then(Live::new);
        Self { style, live, job_dir: PathBuf::from(&plan.job_dir), waiting: Vec::new(), failed: false }
    }

    /// How it shows events.
    #[must_use]
    pub fn style(&self) -> Style {
        self.style
    }

    /// Where others may write lines of processes.
    #[must_use]
    pub fn line_sink(&self) -> LineSink {
        match &self.live {
            Some(live) => {
                let drawing = live.drawing();
                Arc::new(move |lines| drawing.suspend(|| say_lines(lines)))
            }
            None => Arc::new(say_lines),
        }
    }

    /// Shows what has happened together; `summary` has taken all of it in already. A live view wants it each time, all want
    /// it with the last event.
    pub fn show(&mut self, events: &[Event], summary: Option<&Summary>) {
        for event in events {
            self.apply(event, summary);
        }
        self.flush();
        if let (Some(live), Some(summary)) = (&self.live, summary) {
            live.draw(summary);
        }
    }

    fn apply(&mut self, event: &Event, summary: Option<&Summary>) {
        if self.style == Style::Json {
            if let Ok(line) = serde_json::to_string(event) {
                self.say(&line);
            }
            return;
        }
        if let (Some(live), Some(summary)) = (&mut self.live, summary) {
            live.apply(event, summary);
        }
        let shown = self.live.is_none()
            || matches!(
                event.kind,
                EventKind::JobStarted { .. }
                    | EventKind::ProcessNotReady { .. }
                    | EventKind::SpawnFailed { .. }
                    | EventKind::ProcessSkipped { .. }
                    | EventKind::ProcessKilled { .. }
                    | EventKind::AllReady { .. }
                    | EventKind::Stopping(_)
                    | EventKind::Warning { .. }
                    | EventKind::Delivered(_)
                    | EventKind::ProcessExited { expected: false, .. }
                    | EventKind::ProcessExited { explanation: Some(_), .. }
            );
        if shown && !matches!(event.kind, EventKind::JobEnded { .. }) {
            self.say_all(&describe(event));
        }
        if matches!(event.kind, EventKind::JobEnded { .. }) {
            if let (Some(_), Some(summary)) = (&self.live, summary) {
                let from = std::env::current_dir().unwrap_or_default();
                self.say_all(&table(summary, &self.job_dir, &from).lines().map(str::to_owned).collect::<Vec<_>>());
            }
            self.say_all(&describe(event));
            let delivery = summary.and_then(|summary| summary.delivery.as_ref());
            self.say_all(&delivery.and_then(undelivered).into_iter().collect::<Vec<_>>());
        }
    }

    fn say_all(&mut self, lines: &[String]) {
        for line in lines {
            self.say(line);
        }
    }

    /// Shows a line, at the latest when it is flushed.
    fn say(&mut self, line: &str) {
        self.waiting.extend_from_slice(line.as_bytes());
        self.waiting.push(b'\n');
        if self.waiting.len() >= ENOUGH {
            self.flush();
        }
    }

    /// Writes what waits.
    pub(super) fn flush(&mut self) {
        let lines = std::mem::take(&mut self.waiting);
        match (&self.live, self.style) {
            _ if lines.is_empty() => {}
            (Some(live), _) => live.drawing().suspend(|| say_lines(&lines)),
            (None, Style::Json) => {
                if let Err(error) = write_lines(io::stdout().lock(), &lines)
                    && !std::mem::replace(&mut self.failed, true)
                {
                    let kept = self.job_dir.join("events.jsonl");
                    let kept = kept.display();
                    say_lines(
                        format!("gymrun: warning: stdout does not have all events: {error}; `{kept}` has them\n")
                            .as_bytes(),
                    );
                }
            }
            (None, _) => say_lines(&lines),
        }
    }
}

/// Lines on stderr, those of others before or after them. A closed stderr is nobody's error.
fn say_lines(lines: &[u8]) {
    let _ = write_lines(io::stderr().lock(), lines);
}

fn write_lines(mut out: impl io::Write + AsFd, mut lines: &[u8]) -> io::Result<()> {
    loop {
        let result = if lines.is_empty() { out.flush().map(|()| 0) } else { out.write(lines) };
        match result {
            Ok(_) if lines.is_empty() => return Ok(()),
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => lines = &lines[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Somebody else has made it non-blocking.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                poll(&mut [PollFd::new(out.as_fd(), PollFlags::POLLOUT)], PollTimeout::NONE)?;
            }
            Err(error) => return Err(error),
        }
    }
}
