//! The live view: one line for each process while processes start and stop.
//!
//! While the driver runs, the terminal is the driver's: the view is taken away then, and warnings are plain lines.

use std::io;
use std::time::Duration;

use console::Term;
use indexmap::IndexMap;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

use crate::events::{Event, EventKind};
use crate::jobdir::{State, Summary};

/// A view of more lines than a screen has helps nobody.
pub(super) const MOST_LINES: usize = 40;

/// Lines on a terminal that are drawn anew.
#[derive(Debug)]
pub(super) struct Live {
    all: MultiProgress,
    bars: IndexMap<String, ProgressBar>,
}

/// A terminal that may go away: what draws on it takes an error for a defect of the program, and panics.
#[derive(Debug)]
struct Leaving(Term);

impl TermLike for Leaving {
    fn width(&self) -> u16 {
        self.0.size().1
    }

    fn height(&self) -> u16 {
        self.0.size().0
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_up(n).or(Ok(()))
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_down(n).or(Ok(()))
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_right(n).or(Ok(()))
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_left(n).or(Ok(()))
    }

    fn write_line(&self, s: &str) -> io::Result<()> {
        self.0.write_line(s).or(Ok(()))
    }

    fn write_str(&self, s: &str) -> io::Result<()> {
        self.0.write_str(s).or(Ok(()))
    }

    fn clear_line(&self) -> io::Result<()> {
        self.0.clear_line().or(Ok(()))
    }

    fn flush(&self) -> io::Result<()> {
        self.0.flush().or(Ok(()))
    }
}

impl Live {
    /// An empty view on stderr.
    pub(super) fn new() -> Self {
        let terminal = Box::new(Leaving(Term::buffered_stderr()));
        let target = ProgressDrawTarget::term_like_with_hz(terminal, 10);
        Self { all: MultiProgress::with_draw_target(target), bars: IndexMap::new() }
    }

    /// The object that draws, for others who write to the same terminal.
    pub(super) fn drawing(&self) -> MultiProgress {
        self.all.clone()
    }

    /// Shows the view, or takes it away, if that is what an event means.
    pub(super) fn apply(&mut self, event: &Event, summary: &Summary) {
        match &event.kind {
            EventKind::JobStarted { .. } | EventKind::Stopping(_) => self.show(summary),
            EventKind::AllReady { .. } | EventKind::JobEnded { .. } => self.hide(),
            _ => {}
        }
    }

    /// Draws how things are.
    pub(super) fn draw(&self, summary: &Summary) {
        for (name, bar) in &self.bars {
            if let Some(process) = summary.processes.get(name) {
                let text = match process.state {
                    State::Waiting => "waiting".to_owned(),
                    State::Starting => "starting".to_owned(),
                    State::Ready => {
                        format!("ready after {:.2} s", process.ready_after_seconds.unwrap_or_default())
                    }
                    State::Stopping => "stopping".to_owned(),
                    State::Stopped => process.exit.map_or_else(|| "stopped".to_owned(), |s| s.to_string()),
                    State::Failed => process.reason.clone().unwrap_or_else(|| "failed".to_owned()),
                    State::Skipped => "skipped".to_owned(),
                };
                bar.set_message(text);
                if matches!(process.state, State::Starting | State::Stopping) {
                    bar.enable_steady_tick(Duration::from_millis(200));
                } else {
                    bar.disable_steady_tick();
                }
            }
        }
    }

    fn show(&mut self, summary: &Summary) {
        self.hide();
        let width = summary.processes.keys().map(String::len).max().unwrap_or_default();
        let style = ProgressStyle::with_template("{spinner} {prefix} {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        for name in summary.processes.keys() {
            let bar = self.all.add(ProgressBar::new_spinner());
            bar.set_style(style.clone());
            bar.set_prefix(format!("{name:<width$}"));
            self.bars.insert(name.clone(), bar);
        }
    }

    fn hide(&mut self) {
        for (_, bar) in self.bars.drain(..) {
            bar.finish_and_clear();
        }
        let _ = self.all.clear();
    }
}
