//! The log of a child whose output gymrun copies: every byte as it was written, in files of a limited size.
//!
//! `x.log` is the newest, `x.log.1` the one before it, and so on. A new one is begun where a line begins: the beginning of
//! a line that does not fit any more moves with it, and only a line that is longer than the limit is torn. So the files one
//! after another, the oldest first, are the end of what was written.
//!
//! A disk that is full holds nobody up: what cannot be written is counted and left out, and writing goes on with the next
//! line as soon as there is room. The half line in front of such a gap is taken back, so that the file has whole lines.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use super::program::in_words;
use super::showing::write_all;
use crate::files::{LogPlace, open_log};
use crate::plan::{Rotation, older_log};

/// How much of a line is moved at once.
const PIECE: usize = 64 * 1024;

/// Hears of an error, once.
pub type OnFailure = Box<dyn FnOnce(&io::Error) + Send>;

/// A log, shared by the copiers of one unit: the former one of a child that was started again may still have something.
#[derive(Clone)]
pub struct Log(Arc<Mutex<Files>>);

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").finish_non_exhaustive()
    }
}

/// What became of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// How many older files there are.
    pub older: u32,
    /// How many bytes went with older files that are gone.
    pub rotated_out: u64,
    /// How many bytes could not be written.
    pub lost: u64,
}

impl Log {
    /// The log at `path`, which is opened, and appended to if it is there, by who first begins to write. `failed` is called
    /// when something cannot be written for the first time, or the log cannot be rotated.
    #[must_use]
    pub fn new(path: &Path, rotation: Option<Rotation>, failed: OnFailure) -> Self {
        let files = Files {
            path: path.to_owned(),
            rotation,
            file: None,
            size: 0,
            line: 0,
            skipping: false,
            kept: Kept::default(),
            failed: Some(failed),
        };
        Self(Arc::new(Mutex::new(files)))
    }

    /// A process begins to write: what a former one left unfinished is no beginning of a line of its own. Where that is;
    /// `None` if that is not known, or its file system does not answer.
    #[must_use]
    pub fn begin(&self) -> Option<LogPlace> {
        let mut files = self.0.try_lock().ok()?;
        if let Err(error) = files.open() {
            files.fail(&error);
        }
        files.line = files.size;
        files.skipping = false;
        files.file.as_ref().and_then(LogPlace::end_of)
    }

    /// Writes as much of it as can be written.
    pub fn write(&self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes);
    }

    /// What became of it up to now; `None` if its file system does not answer.
    #[must_use]
    pub fn kept(&self) -> Option<Kept> {
        match self.0.try_lock() {
            Ok(mut files) => {
                files.look();
                Some(files.kept)
            }
            Err(TryLockError::Poisoned(files)) => Some(files.into_inner().kept),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

struct Files {
    path: PathBuf,
    rotation: Option<Rotation>,
    /// `None` while it cannot be opened.
    file: Option<File>,
    /// Bytes in it.
    size: u64,
    /// Where the line begins that is being written.
    line: u64,
    /// The beginning of the line is lost, and so is the rest of it.
    skipping: bool,
    kept: Kept,
    failed: Option<OnFailure>,
}

impl Files {
    /// Opens it if it is not open.
    fn open(&mut self) -> io::Result<()> {
        if self.file.is_some() {
            return Ok(());
        }
        let file = open_log(&self.path)?;
        self.size = file.metadata()?.len();
        // What a former process left begins no line of the new one.
        self.line = self.size;
        self.file = Some(file);
        Ok(())
    }

    fn fail(&mut self, error: &io::Error) {
        if let Some(failed) = self.failed.take() {
            failed(error);
        }
    }

    /// Goes on in a new file if somebody has removed this one, and counts what is lost with it.
    fn look(&mut self) {
        let gone = |file: &File| file.metadata().is_ok_and(|found| found.nlink() == 0);
        if self.file.as_ref().is_some_and(gone) {
            self.file = None;
            self.line = 0;
            let lost = std::mem::take(&mut self.size);
            if lost > 0 {
                self.kept.lost += lost;
                self.fail(&io::Error::other("somebody has removed it while it was written"));
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.look();
        let mut left = bytes;
        if self.skipping {
            let rest = memchr::memchr(b'\n', left).map_or(left.len(), |end| end + 1);
            self.skipping = left[..rest].last() != Some(&b'\n');
            self.kept.lost += rest as u64;
            left = &left[rest..];
        }
        while !left.is_empty() {
            // How much there is room for depends on what it has already.
            let appended = self.open().and_then(|()| {
                let fitting = self.make_room(left);
                self.append(&mut left, fitting)
            });
            if let Err(error) = appended {
                self.give_up(left);
                self.fail(&error);
                return;
            }
        }
    }

    /// Writes the first `count` bytes; what was written is taken off `left`, whatever happens.
    fn append(&mut self, left: &mut &[u8], count: usize) -> io::Result<()> {
        self.open()?;
        let Some(file) = &mut self.file else { return Err(io::ErrorKind::NotFound.into()) };
        let mut piece = &left[..count];
        let result = write_all(file, &mut piece);
        let written = &left[..count - piece.len()];
        if let Some(end) = memchr::memrchr(b'\n', written) {
            self.line = self.size + end as u64 + 1;
        }
        self.size += written.len() as u64;
        *left = &left[written.len()..];
        result
    }

    /// Counts what is not written. The beginning of its line goes with it, if nobody else has changed the file.
    fn give_up(&mut self, left: &[u8]) {
        self.kept.lost += left.len() as u64;
        self.skipping = left.last() != Some(&b'\n');
        let Some(file) = &self.file else { return };
        let is_ours = file.metadata().is_ok_and(|now| now.len() == self.size);
        if is_ours && self.line < self.size && file.set_len(self.line).is_ok() {
            self.kept.lost += self.size - self.line;
            self.size = self.line;
        }
    }

    /// How many of these bytes go into the file that is open now, after a new one was begun where that is due. At least 1.
    fn make_room(&mut self, bytes: &[u8]) -> usize {
        while let Some(Rotation { max_bytes, .. }) = self.rotation {
            let room = usize::try_from(max_bytes.saturating_sub(self.size)).unwrap_or(usize::MAX);
            if bytes.len() <= room {
                break;
            }
            if let Some(end) = memchr::memrchr(b'\n', &bytes[..room]) {
                return end + 1;
            }
            if self.line == 0 && room > 0 {
                // The whole file is the beginning of one line, which is longer than a file may be.
                return room;
            }
            if let Err(error) = self.rotate() {
                // Too large is better than not there.
                self.rotation = None;
                self.fail(&io::Error::new(error.kind(), format!("no new one can be begun: {}", in_words(&error))));
            }
        }
        bytes.len()
    }

    /// Begins a new file with the line that is being written.
    fn rotate(&mut self) -> io::Result<()> {
        let Some(rotation) = self.rotation else { return Ok(()) };
        let oldest = older_log(&self.path, rotation.keep);
        let going = fs::metadata(&oldest).map_or(0, |found| found.len());
        for number in (0..rotation.keep).rev() {
            match fs::rename(older_log(&self.path, number), older_log(&self.path, number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound || number == 0 => return Err(error),
                _ => {}
            }
        }
        self.kept.rotated_out += going;
        self.kept.older = rotation.keep.min(self.kept.older + 1);
        let former = self.file.take();
        let (from, to) = (std::mem::take(&mut self.line), std::mem::take(&mut self.size));
        // If it cannot be opened now, it is tried again, and what comes until then is counted.
        if self.open().is_ok()
            && let Some(former) = former
            && from > 0
        {
            self.take_line_along(&former, from, to);
        }
        Ok(())
    }

    /// Moves the beginning of the line from the end of the former file; if there is no room for it, it stays there.
    fn take_line_along(&mut self, former: &File, from: u64, to: u64) {
        let Some(file) = &mut self.file else { return };
        let mut buffer = vec![0; PIECE.min(usize::try_from(to - from).unwrap_or(PIECE))];
        let mut at = from;
        while at < to {
            let most = buffer.len().min(usize::try_from(to - at).unwrap_or(usize::MAX));
            let moved = former.read_at(&mut buffer[..most], at).and_then(|count| match count {
                0 => Err(io::ErrorKind::UnexpectedEof.into()),
                count => write_all(file, &mut &buffer[..count]).map(|()| count),
            });
            let Ok(count) = moved else {
                let _ = file.set_len(0);
                return;
            };
            at += count as u64;
        }
        if former.set_len(from).is_ok() {
            self.size = to - from;
        } else {
            let _ = file.set_len(0);
        }
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
