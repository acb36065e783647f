//! The live view: one line for each process while processes start and stop.
//!
//! While the driver runs, the terminal is the driver's: the view is taken away then, and warnings are plain lines.

use std::time::Duration;

use indexmap::IndexMap;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::events::{Event, EventKind};
use crate::jobdir::{State, Summary};

/// Lines on a terminal that are drawn anew.
#[derive(Debug)]
pub(super) struct Live {
    all: MultiProgress,
    bars: IndexMap<String, ProgressBar>,
}

impl Live {
    /// An empty view on stderr.
    pub(super) fn new() -> Self {
        Self { all: MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10)), bars: IndexMap::new() }
    }

    /// The object that draws, for others who write to the same terminal.
    pub(super) fn drawing(&self) -> MultiProgress {
        self.all.clone()
    }

    /// Draws what an event changed.
    pub(super) fn apply(&mut self, event: &Event, summary: &Summary) {
        match &event.kind {
            EventKind::JobStarted { .. } | EventKind::Stopping(_) => self.show(summary),
            EventKind::AllReady { .. } | EventKind::JobEnded { .. } => self.hide(),
            _ => {}
        }
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
