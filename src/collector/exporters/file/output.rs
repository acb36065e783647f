//! One file on disk: whole messages in, older files renamed and removed.
//!
//! A file that is rotated grows to a size and is then renamed to `NAME-2026-01-31T12-00-00.000-size.EXT`. The border is
//! always between two messages. Short messages are written together and long ones in parts, so that little memory is
//! needed for them. If a write fails, the file is cut back to the last whole message, unless somebody else has written to it
//! since: a collector that was left behind with a disk that hangs takes nothing away from the next one.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};

/// When a file is put aside, and how long it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rotation {
    /// The greatest size in bytes; a greater message gets a file of its own.
    pub largest: u64,
    /// Days that old files are kept; 0 is forever.
    pub days: i64,
    /// Old files that are kept; 0 is all.
    pub backups: usize,
    /// Whether their names have the local time, instead of UTC.
    pub local_time: bool,
}

/// An open file.
#[derive(Debug)]
pub(super) struct Output {
    path: PathBuf,
    file: File,
    size: u64,
    rotation: Option<Rotation>,
    /// Before that no other try is made to put it aside: the last one failed.
    rotates_again: Option<Instant>,
    /// Where the file must be cut off if nothing more of the message that was begun is written.
    torn_from: Option<u64>,
    buffer: Vec<u8>,
}

/// What became of messages.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// So many, from the first one, are in the file, but for those in `broken`. The others are not.
    pub decided: usize,
    /// Those that have no form, by their places.
    pub broken: BTreeMap<usize, Broken>,
    /// Why not all are decided.
    pub failure: Option<io::Error>,
    /// The bytes of the file that was there before, if somebody removed it: these messages are in a new one.
    pub removed: Option<u64>,
    /// Why the file, which is full, could not be put aside: it grows on.
    pub unrotated: Option<io::Error>,
}

/// Why a message is not in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// An error.
    Failed(String),
    /// A defect of the collector.
    Panicked,
}

/// What was done with a file whose last message was not whole.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mended {
    /// So many bytes were cut off.
    Cut(u64),
    /// No message of it is whole: it has this name now.
    PutAside(PathBuf),
}

/// Between two tries to put a file aside.
const BETWEEN_ROTATIONS: Duration = Duration::from_secs(1);

/// From this size on the buffer is written.
const PART: usize = 256 << 10;

/// Of a file that is made: telemetry may hold prompts.
const MODE: u32 = 0o600;

const TIME: &str = "%Y-%m-%dT%H-%M-%S%.3f";

impl Output {
    /// Opens the file; one without rotation is emptied unless `append`.
    pub fn open(path: &Path, append: bool, rotation: Option<Rotation>) -> io::Result<Self> {
        if !append && rotation.is_none() {
            // Opened for appending below, so that a cut after a failed write needs no seek.
            OpenOptions::new().write(true).create(true).truncate(true).mode(MODE).open(path)?;
        }
        let file = open_to_append(path)?;
        let size = file.metadata()?.len();
        let path = path.to_owned();
        let output = Self { path, file, size, rotation, rotates_again: None, torn_from: None, buffer: Vec::new() };
        output.remove_old();
        Ok(output)
    }

    /// Ends the last line of a regular file if it has no end: whoever wrote it was killed. Gives whether that was so.
    pub fn end_line(&mut self) -> io::Result<bool> {
        if self.size == 0 || !self.file.metadata()?.is_file() {
            return Ok(false);
        }
        let mut last = [0];
        File::open(&self.path)?.read_exact_at(&mut last, self.size - 1)?;
        let torn = last != *b"\n";
        if torn {
            self.append(&mut b"\n".to_vec(), None)?;
        }
        Ok(torn)
    }

    /// Mends the end of a regular file of messages with lengths in front, if the last one is not whole: whoever wrote it was
    /// killed, and nothing behind it could be read. Gives what was done.
    pub fn end_message(&mut self) -> io::Result<Option<Mended>> {
        if !self.file.metadata()?.is_file() {
            return Ok(None);
        }
        let whole = whole_messages(&File::open(&self.path)?, self.size)?;
        if whole == self.size {
            return Ok(None);
        }
        if whole == 0 {
            // It may be something else.
            let aside = free_name(&self.path, &TimeZone::UTC, "torn");
            fs::rename(&self.path, &aside)?;
            (self.file, self.size) = (open_to_append(&self.path)?, 0);
            return Ok(Some(Mended::PutAside(aside)));
        }
        self.file.set_len(whole)?;
        let cut = std::mem::replace(&mut self.size, whole) - whole;
        Ok(Some(Mended::Cut(cut)))
    }

    /// Writes messages. `encode` appends one of them and calls what it is given between its parts.
    pub fn write<M>(
        &mut self,
        messages: impl IntoIterator<Item = M>,
        encode: impl Fn(M, &mut Vec<u8>, &mut dyn FnMut(&mut Vec<u8>)) -> io::Result<()>,
    ) -> Written {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut written = Written::default();
        if let Err(error) = self.write_messages(messages, encode, &mut buffer, &mut written) {
            written.failure = Some(error);
            self.cut_back();
        }
        buffer.clear();
        buffer.shrink_to(2 * PART);
        self.buffer = buffer;
        written
    }

    fn write_messages<M>(
        &mut self,
        messages: impl IntoIterator<Item = M>,
        encode: impl Fn(M, &mut Vec<u8>, &mut dyn FnMut(&mut Vec<u8>)) -> io::Result<()>,
        buffer: &mut Vec<u8>,
        written: &mut Written,
    ) -> io::Result<()> {
        // A former write may have broken down.
        self.cut_back();
        written.removed = self.look_again()?;
        // Messages whose end is in the buffer.
        let mut gathered = 0;
        for (place, message) in messages.into_iter().enumerate() {
            let begin = buffer.len();
            let begin_in_file = self.size + begin as u64;
            let mut failure = None;
            let between = &mut |buffer: &mut Vec<u8>| {
                // A message that may have to go to the next file is needed as a whole.
                if buffer.len() >= PART && self.rotation.is_none() && failure.is_none() {
                    failure = self.append(buffer, Some(begin_in_file)).err();
                    if failure.is_none() {
                        written.decided += std::mem::take(&mut gathered);
                    }
                }
                if failure.is_some() {
                    // The rest of it goes nowhere.
                    buffer.clear();
                }
            };
            let encoded = catch_unwind(AssertUnwindSafe(|| encode(message, buffer, between)));
            failure.map_or(Ok(()), Err)?;
            let broken = match encoded {
                Ok(result) => result.err().map(|error| Broken::Failed(error.to_string())),
                Err(_) => Some(Broken::Panicked),
            };
            if let Some(broken) = broken {
                if self.torn_from.is_some() {
                    self.cut_back();
                    self.size = self.file.metadata()?.len();
                    buffer.clear();
                } else {
                    buffer.truncate(begin);
                }
                written.broken.insert(place, broken);
                gathered += 1;
                continue;
            }
            if let Some(rotation) = &self.rotation
                && self.size + buffer.len() as u64 > rotation.largest
            {
                let alone = buffer.split_off(begin);
                self.append(buffer, None)?;
                written.decided += std::mem::take(&mut gathered);
                if self.size > 0 && self.rotates_again.is_none_or(|time| time <= Instant::now()) {
                    self.rotates_again = None;
                    if let Err(error) = self.rotate() {
                        self.rotates_again = Some(Instant::now() + BETWEEN_ROTATIONS);
                        written.unrotated = Some(error);
                    }
                }
                *buffer = alone;
            }
            gathered += 1;
            if buffer.len() >= PART {
                self.append(buffer, None)?;
                written.decided += std::mem::take(&mut gathered);
            }
        }
        self.append(buffer, None)?;
        written.decided += gathered;
        Ok(())
    }

    /// Another process may have cut the file, or removed it: then what comes goes to a new one, where it can be found. Gives
    /// the bytes of one that was removed.
    fn look_again(&mut self) -> io::Result<Option<u64>> {
        let mut metadata = self.file.metadata()?;
        let mut removed = None;
        if metadata.is_file() && metadata.nlink() == 0 {
            removed = Some(metadata.len());
            self.file = open_to_append(&self.path)?;
            metadata = self.file.metadata()?;
        }
        self.size = metadata.len();
        Ok(removed)
    }

    /// Writes the buffer, whose last message is still to be continued if its beginning in the file is given.
    fn append(&mut self, buffer: &mut Vec<u8>, continued: Option<u64>) -> io::Result<()> {
        if !buffer.is_empty() {
            self.torn_from.get_or_insert(self.size);
            self.write_all(buffer)?;
            buffer.clear();
        }
        self.torn_from = continued;
        Ok(())
    }

    /// Writes all bytes, or counts those that it could.
    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.file.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.size += count as u64;
                    bytes = &bytes[count..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Removes what there is of a message that was not written as a whole, if the file ends where this writer left it.
    /// Best effort: the error that counts is that of the write.
    fn cut_back(&mut self) {
        let Some(at) = self.torn_from.take() else { return };
        if self.size > at && self.file.metadata().is_ok_and(|metadata| metadata.len() == self.size) {
            let _ = self.file.set_len(at);
        }
    }

    fn rotate(&mut self) -> io::Result<()> {
        let Some(rotation) = &self.rotation else { return Ok(()) };
        let backup = free_name(&self.path, &zone(rotation), "size");
        fs::rename(&self.path, &backup)?;
        match open_to_append(&self.path) {
            Ok(file) => (self.file, self.size) = (file, 0),
            Err(error) => {
                // The open file has its name back, and is written on.
                let _ = fs::rename(&backup, &self.path);
                return Err(error);
            }
        }
        self.remove_old();
        Ok(())
    }

    /// Removes the files that are too many or too old. A file that cannot be removed stays: that loses nothing.
    fn remove_old(&self) {
        let Some(rotation) = &self.rotation else { return };
        let mut old = self.backups(rotation).unwrap_or_default();
        old.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        let kept = if rotation.backups == 0 { old.len() } else { rotation.backups };
        let oldest =
            (rotation.days > 0).then(|| Timestamp::now() - jiff::SignedDuration::from_hours(24 * rotation.days));
        for (place, (time, path)) in old.iter().enumerate() {
            if place >= kept || oldest.is_some_and(|oldest| *time < oldest) {
                let _ = fs::remove_file(path);
            }
        }
    }

    fn backups(&self, rotation: &Rotation) -> io::Result<Vec<(Timestamp, PathBuf)>> {
        let (prefix, extension) = name_parts(&self.path);
        let directory = self.path.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut found = Vec::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let rest = name.strip_prefix(&prefix).and_then(|rest| rest.strip_prefix('-')?.strip_suffix(&extension));
            let time = rest.and_then(|rest| rest.strip_suffix("-size"));
            let time = time.and_then(|text| civil::DateTime::strptime(TIME, text).ok());
            if let Some(time) = time.and_then(|time| time.to_zoned(zone(rotation)).ok()) {
                found.push((time.timestamp(), entry.path()));
            }
        }
        Ok(found)
    }
}

fn zone(rotation: &Rotation) -> TimeZone {
    if rotation.local_time { TimeZone::system() } else { TimeZone::UTC }
}

/// The bytes of the messages that are whole, each with four bytes of length in front.
fn whole_messages(file: &File, size: u64) -> io::Result<u64> {
    let mut end = 0;
    let mut length = [0; 4];
    while end + 4 <= size {
        file.read_exact_at(&mut length, end)?;
        let next = end + 4 + u64::from(u32::from_be_bytes(length));
        if next > size {
            break;
        }
        end = next;
    }
    Ok(end)
}

/// A name with the time that no file has yet.
fn free_name(path: &Path, zone: &TimeZone, word: &str) -> PathBuf {
    let (prefix, extension) = name_parts(path);
    let mut time = Timestamp::now();
    loop {
        let time_text = time.to_zoned(zone.clone()).strftime(TIME).to_string();
        let name = path.with_file_name(format!("{prefix}-{time_text}-{word}{extension}"));
        if !name.exists() {
            return name;
        }
        time += jiff::SignedDuration::from_millis(1);
    }
}

fn open_to_append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(MODE).open(path)
}

/// `traces` and `.jsonl` of `/there/traces.jsonl`.
fn name_parts(path: &Path) -> (String, String) {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let extension = name.rfind('.').map_or(name.len(), |dot| dot);
    (name[..extension].to_owned(), name[extension..].to_owned())
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
