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
    /// The last line is torn.
    torn: bool,
}

impl EventLog {
    /// Opens it for appending, 0600.
    pub fn open(job_dir: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(job_dir.join("events.jsonl"))?;
        Ok(Self { file, torn: false })
    }

    /// Appends one event as one write, so that a killed job still has whole lines. What a failure (a full disk) leaves of
    /// a line is cut off; where it cannot be, the next event begins a line of its own.
    pub fn append(&mut self, event: &Event) -> io::Result<()> {
        let mut line = if self.torn { vec![b'\n'] } else { Vec::new() };
        serde_json::to_writer(&mut line, event)?;
        line.push(b'\n');
        let before = self.file.metadata()?.len();
        let written = self.file.write_all(&line);
        if written.is_ok() {
            self.torn = false;
        } else if self.file.set_len(before).is_err() {
            self.torn = true;
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::time::Duration;

    use nix::fcntl::OFlag;

    use super::*;
    use crate::events::EventKind;

    fn warning(message: String) -> Event {
        let kind = EventKind::Warning { process: None, message, hint: None };
        Event { time: 0, elapsed: Duration::ZERO, kind }
    }

    /// A pipe that takes no more is a full disk on which nothing can be cut.
    #[test]
    fn after_a_torn_line_the_next_is_whole() {
        let (read, write) = nix::unistd::pipe2(OFlag::O_NONBLOCK).expect("a pipe");
        let mut read = File::from(read);
        let mut log = EventLog { file: File::from(write), torn: false };
        log.append(&warning("first".into())).expect("writes");
        assert!(log.append(&warning("x".repeat(1 << 20))).is_err());
        let mut text = Vec::new();
        // Ends with an error once the pipe is empty.
        let _ = read.read_to_end(&mut text);
        log.append(&warning("last".into())).expect("writes");
        log.append(&warning("the very last".into())).expect("writes");
        drop(log);
        read.read_to_end(&mut text).expect("reads");
        let text = String::from_utf8(text).expect("text");
        let whole = |line: &&str| serde_json::from_str::<serde_json::Value>(line).is_ok();
        let whole: Vec<bool> = text.lines().map(|line| whole(&line)).collect();
        assert_eq!(whole, [true, false, true, true]);
    }
}
