//! `events.jsonl`: one event a line, written as it happens.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::events::Event;

/// The open `events.jsonl` of a job.
#[derive(Debug)]
pub struct EventLog {
    file: File,
}

impl EventLog {
    /// Opens it for appending, 0600.
    pub fn open(job_dir: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(job_dir.join("events.jsonl"))?;
        Ok(Self { file })
    }

    /// Appends one event as one write, so that a killed job still has whole lines.
    pub fn append(&mut self, event: &Event) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        self.file.write_all(&line)
    }
}
