//! One file on disk: whole messages in, older files renamed and removed.
//!
//! A file that is rotated grows to a size and is then renamed to `NAME-2026-01-31T12-00-00.000-size.EXT`. The border is
//! always between two messages. Short messages are written together and long ones in parts, so that little memory is
//! needed for them. If a write fails, the file is cut back to the last whole message.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

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
}

/// Why a message is not in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// An error.
    Failed(String),
    /// A defect of the collector.
    Panicked,
}

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
        let output = Self { path: path.to_owned(), file, size, rotation, torn_from: None, buffer: Vec::new() };
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
        // Another process may have cut the file.
        self.size = self.file.metadata()?.len();
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
                if self.size > 0 {
                    self.rotate()?;
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

    /// Writes the buffer, whose last message is still to be continued if its beginning in the file is given.
    fn append(&mut self, buffer: &mut Vec<u8>, continued: Option<u64>) -> io::Result<()> {
        if !buffer.is_empty() {
            self.torn_from.get_or_insert(self.size);
            self.file.write_all(buffer)?;
            self.size += buffer.len() as u64;
            buffer.clear();
        }
        self.torn_from = continued;
        Ok(())
    }

    /// Removes what there is of a message that was not written as a whole. Best effort: the error that counts is that of
    /// the write.
    fn cut_back(&mut self) {
        let Some(at) = self.torn_from.take() else { return };
        if self.file.metadata().is_ok_and(|metadata| metadata.len() > at) {
            let _ = self.file.set_len(at);
        }
    }

    fn rotate(&mut self) -> io::Result<()> {
        let Some(rotation) = &self.rotation else { return Ok(()) };
        let zone = zone(rotation);
        let mut time = Timestamp::now();
        let backup = loop {
            let (prefix, extension) = name_parts(&self.path);
            let time_text = time.to_zoned(zone.clone()).strftime(TIME).to_string();
            let name = self.path.with_file_name(format!("{prefix}-{time_text}-size{extension}"));
            if !name.exists() {
                break name;
            }
            time += jiff::SignedDuration::from_millis(1);
        };
        fs::rename(&self.path, &backup)?;
        match open_to_append(&self.path) {
            Ok(file) => (self.file, self.size) = (file, 0),
            Err(error) => {
                // The open file has its name back, so the next message tries again.
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
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("reads").map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[expect(clippy::unnecessary_wraps, reason = "as others that may fail")]
    fn plain(message: &str, buffer: &mut Vec<u8>, _between: &mut dyn FnMut(&mut Vec<u8>)) -> io::Result<()> {
        buffer.extend_from_slice(message.as_bytes());
        Ok(())
    }

    /// A message of so many parts of 100 KiB; one of 13 parts cannot be encoded to its end, one of 14 panics.
    fn long(parts: usize, buffer: &mut Vec<u8>, between: &mut dyn FnMut(&mut Vec<u8>)) -> io::Result<()> {
        for part in 0..parts {
            buffer.resize(buffer.len() + (100 << 10), b'a');
            between(buffer);
            assert!(part < 13, "a defect");
        }
        buffer.push(b'\n');
        if parts == 13 { Err(io::Error::other("not encoded")) } else { Ok(()) }
    }

    #[test]
    fn long_messages_are_written_in_parts_and_never_torn() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("x.jsonl");
        let mut output = Output::open(&path, false, None).expect("opens");
        let lengths = || -> Vec<usize> {
            let text = fs::read_to_string(&path).expect("reads");
            assert!(text.is_empty() || text.ends_with('\n'));
            text.lines().map(|line| line.len() / (100 << 10)).collect()
        };
        let all = |written: Written| (written.decided, written.broken, written.failure.is_none());
        assert_eq!(all(output.write([0, 1, 7, 2, 0, 4], long)), (6, BTreeMap::new(), true));
        assert_eq!(lengths(), [0, 1, 7, 2, 0, 4]);
        // Those before and behind it are written.
        let failed = BTreeMap::from([(2, Broken::Failed("not encoded".into()))]);
        assert_eq!(all(output.write([1, 3, 13, 1], long)), (4, failed, true));
        assert_eq!(lengths(), [0, 1, 7, 2, 0, 4, 1, 3, 1]);
        let panicked = BTreeMap::from([(1, Broken::Panicked), (3, Broken::Panicked)]);
        assert_eq!(all(output.write([0, 14, 2, 14], long)), (4, panicked, true));
        assert_eq!(lengths(), [0, 1, 7, 2, 0, 4, 1, 3, 1, 0, 2]);
        assert!(output.buffer.capacity() <= 2 * PART + (200 << 10));
    }

    #[test]
    fn what_a_failed_write_takes_with_it_is_not_counted() {
        let mut output = Output::open(Path::new("/dev/full"), true, None).expect("opens");
        // Whole messages that go with the first part of a long one.
        let written = output.write([0, 1, 1, 7, 1], long);
        assert!(written.failure.is_some() && written.broken.is_empty());
        assert_eq!(written.decided, 0);
    }

    #[test]
    fn files_are_put_aside_between_messages_and_the_oldest_removed() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("x.y.jsonl");
        fs::write(directory.path().join("x.y-2001-01-01T00-00-00.000-size.jsonl"), "old").expect("writes");
        fs::write(directory.path().join("x.y-other.jsonl"), "not ours").expect("writes");
        let rotation = Rotation { largest: 10, days: 0, backups: 2, local_time: false };
        let mut output = Output::open(&path, false, Some(rotation)).expect("opens");
        let messages = ["aaa\n", "bbb\n", "cccc\n", "a very long message\n", "d\n"];
        let written = output.write(messages, plain);
        assert_eq!((written.decided, written.failure.is_none()), (5, true));
        assert_eq!(fs::read_to_string(&path).expect("reads"), "d\n");
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).expect("is there").permissions());
        assert_eq!(mode & 0o777, 0o600);
        let names = names(directory.path());
        assert_eq!(names.len(), 4, "{names:?}");
        let kept: Vec<String> = names.iter().filter(|name| name.ends_with("-size.jsonl")).cloned().collect();
        let texts: Vec<String> =
            kept.iter().map(|n| fs::read_to_string(directory.path().join(n)).expect("reads")).collect();
        assert_eq!(texts, ["cccc\n", "a very long message\n"]);
    }

    #[test]
    fn half_a_line_is_ended_and_nothing_else_touched() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("x");
        for (before, torn) in [("", false), ("one\n", false), ("one\ntw", true), ("tw", true)] {
            fs::write(&path, before).expect("writes");
            let mut output = Output::open(&path, true, None).expect("opens");
            assert_eq!(output.end_line().expect("reads"), torn);
            assert_eq!(output.write(["three\n"], plain).decided, 1);
            let end = if torn { "\n" } else { "" };
            assert_eq!(fs::read_to_string(&path).expect("reads"), format!("{before}{end}three\n"));
        }
        assert!(!Output::open(Path::new("/dev/null"), true, None).expect("opens").end_line().expect("no file"));
    }

    #[test]
    fn old_files_go_by_their_age() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("x");
        for name in ["x-2001-01-01T00-00-00.000-size", "x-2901-01-01T00-00-00.000-size"] {
            fs::write(directory.path().join(name), "").expect("writes");
        }
        let rotation = Rotation { largest: 10, days: 1, backups: 0, local_time: true };
        Output::open(&path, false, Some(rotation)).expect("opens");
        assert_eq!(names(directory.path()), ["x", "x-2901-01-01T00-00-00.000-size"]);
    }

    #[test]
    fn a_file_with_rotation_goes_on_where_it_was() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("x.jsonl");
        fs::write(&path, "before\n").expect("writes");
        let rotation = Rotation { largest: 100, days: 0, backups: 0, local_time: false };
        let mut output = Output::open(&path, false, Some(rotation)).expect("opens");
        assert!(output.write(["after\n"], plain).failure.is_none());
        assert_eq!(fs::read_to_string(&path).expect("reads"), "before\nafter\n");
    }
}
