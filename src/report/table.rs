//! The final table: process, ready after, peak RSS and PSS, exit, log file.

use std::path::Path;

use crate::diag::bytes;
use crate::jobdir::{ProcessSummary, State, Summary};
use crate::plan::Kind;

/// The table as text, with a line for each process and the log files relative to `from` where they lie below it.
#[must_use]
pub fn table(summary: &Summary, job_dir: &Path, from: &Path) -> String {
    let head = ["process", "ready after", "peak RSS", "peak PSS", "exit", "log"].map(str::to_owned);
    let mut rows = vec![head];
    for (name, process) in &summary.processes {
        let log = job_dir.join(&process.log);
        let log = log.strip_prefix(from).unwrap_or(&log);
        rows.push([
            name.clone(),
            process
                .ready_after_seconds
                .filter(|_| process.kind != Kind::Driver)
                .map_or_else(|| "-".to_owned(), |s| format!("{s:.2} s")),
            process.peak_rss.map_or_else(|| "-".to_owned(), bytes),
            process.peak_pss.map_or_else(|| "-".to_owned(), bytes),
            exit(process),
            log.display().to_string(),
        ]);
    }
    let mut widths = [0; 6];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in rows {
        let line: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn exit(process: &ProcessSummary) -> String {
    let mut text = match (process.state, process.exit) {
        (State::Skipped, _) => "skipped".to_owned(),
        (State::Waiting, _) => "not started".to_owned(),
        (State::Failed, None) => "failed".to_owned(),
        (State::Failed, Some(status)) => format!("{status}!"),
        (_, Some(status)) => status.to_string(),
        (_, None) => "-".to_owned(),
    };
    if process.killed > 0 {
        text.push_str(", killed");
    }
    text
}
