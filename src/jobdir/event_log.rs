//! `events.jsonl`: one event a line, written as it happens; what happens at once is one write.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::events::Event;

/// The open `events.jsonl` of a job.
#[derive(Debug)]
pub struct EventLog {
    file: File,
    /// The last line is torn.
    torn: bool,
    /// What is written; kept for its room.
    lines: Vec<u8>,
}

impl EventLog {
    /// Opens it for appending, 0600.
    pub fn open(job_dir: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(job_dir.join("events.jsonl"))?;
        Ok(Self { file, torn: false, lines: Vec::new() })
    }

    /// Appends events as one write, so that a killed job still has whole lines. What a failure (a full disk) leaves of a
    /// line is cut off; where it cannot be, the next event begins a line of its own. Then each that is not in the file is
    /// tried once more by itself. How many are not in the file, and why the last of them is not.
    pub fn append(&mut self, events: &[Event]) -> Result<(), (u64, io::Error)> {
        let (mut at, mut together) = (0, true);
        let mut lost: Option<(u64, io::Error)> = None;
        while at < events.len() {
            let until = if together { events.len() } else { at + 1 };
            let (written, result) = self.write(&events[at..until]);
            at += written;
            match result {
                Err(error) if !together || until == at + 1 => {
                    lost = Some((lost.map_or(0, |(count, _)| count) + 1, error));
                    at += 1;
                }
                _ => {}
            }
            together = false;
        }
        lost.map_or(Ok(()), Err)
    }

    /// Whether somebody has removed the file: what was written is nowhere.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.file.metadata().is_ok_and(|found| found.nlink() == 0)
    }

    /// How many of the events are in the file now, and what kept the others from it.
    fn write(&mut self, events: &[Event]) -> (usize, io::Result<()>) {
        let mut lines = std::mem::take(&mut self.lines);
        lines.clear();
        lines.extend(self.torn.then_some(b'\n'));
        let begin = lines.len();
        for event in events {
            if let Err(error) = serde_json::to_writer(&mut lines, event) {
                return (0, Err(error.into()));
            }
            lines.push(b'\n');
        }
        let mut left = lines.as_slice();
        let result = write_all(&mut self.file, &mut left);
        let written = &lines[..lines.len() - left.len()];
        let whole = memchr::memrchr(b'\n', written).map_or(0, |end| end + 1);
        let surplus = (written.len() - whole) as u64;
        let cut = |file: &File| file.set_len(file.metadata()?.len().saturating_sub(surplus));
        if !written.is_empty() {
            self.torn = surplus > 0 && cut(&self.file).is_err();
        }
        let count = memchr::memchr_iter(b'\n', written.get(begin..whole).unwrap_or_default()).count();
        self.lines = lines;
        (count, result)
    }
}

/// What was written is taken off `left`, whatever happens.
fn write_all(file: &mut File, left: &mut &[u8]) -> io::Result<()> {
    while !left.is_empty() {
        match file.write(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => *left = &left[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
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
        let (read, write) = nix::unistd::pipe2(OFlag::O_NONBLOCK | OFlag::O_CLOEXEC).expect("a pipe");
        let mut read = File::from(read);
        let mut log = EventLog { file: File::from(write), torn: false, lines: Vec::new() };
        log.append(&[warning("first".into())]).expect("writes");
        let torn = [warning("second".into()), warning("x".repeat(1 << 20)), warning("no room".into())];
        assert_eq!(log.append(&torn).map_err(|(lost, _)| lost), Err(2));
        let mut text = Vec::new();
        // Ends with an error once the pipe is empty.
        let _ = read.read_to_end(&mut text);
        log.append(&[warning("last".into()), warning("the very last".into())]).expect("writes");
        drop(log);
        read.read_to_end(&mut text).expect("reads");
        let text = String::from_utf8(text).expect("text");
        let whole = |line: &&str| serde_json::from_str::<serde_json::Value>(line).is_ok();
        let whole: Vec<bool> = text.lines().map(|line| whole(&line)).collect();
        assert_eq!(whole, [true, true, false, true, true]);
    }
}
