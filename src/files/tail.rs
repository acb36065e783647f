//! Reads a log from its end, over all the files that it is in, however long its lines are.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::open::open_file;

/// How much is read at once.
const PIECE: usize = 64 * 1024;

/// A file of a log that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read `{}`: {error}", path.display())]
pub struct Unreadable {
    path: PathBuf,
    error: io::Error,
}

/// The end of a file of a log, as it was at some time: it stays where it is when the file is renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPlace {
    /// Device and inode.
    file: (u64, u64),
    at: u64,
}

impl LogPlace {
    /// The end of an open file; `None` if the system does not say.
    #[must_use]
    pub fn end_of(file: &File) -> Option<Self> {
        let found = file.metadata().ok()?;
        Some(Self { file: (found.dev(), found.ino()), at: found.len() })
    }

    /// Whether its file is at that path, as far as the system says.
    #[must_use]
    pub fn may_be_at(&self, path: &Path) -> bool {
        match path.metadata() {
            Ok(found) => self.file == (found.dev(), found.ino()),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }
}

/// The files of one log, as long as they were when they were opened.
#[derive(Debug, Default)]
pub struct LogFiles {
    /// The oldest first.
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    path: PathBuf,
    file: File,
    /// Device and inode.
    identity: (u64, u64),
    length: u64,
}

impl Part {
    fn open(path: &Path) -> io::Result<Self> {
        let file = open_file(path)?;
        let found = file.metadata()?;
        Ok(Self { path: path.to_owned(), file, identity: (found.dev(), found.ino()), length: found.len() })
    }
}

impl LogFiles {
    /// Opens the files of a log, the newest first; the first that is not there ends them. One that is, and cannot be read or
    /// is no file, is left out and told; so is the newest if there is none at all.
    #[must_use]
    pub fn open(newest_first: impl IntoIterator<Item = PathBuf>) -> (Self, Vec<Unreadable>) {
        let mut parts: Vec<Part> = Vec::new();
        let mut unreadable = Vec::new();
        for (number, path) in newest_first.into_iter().enumerate() {
            match Part::open(&path) {
                // A new one was begun since the one before this was opened.
                Ok(part) if parts.last().is_some_and(|before| before.identity == part.identity) => {}
                Ok(part) => parts.push(part),
                Err(error) => {
                    let is_there = path.symlink_metadata().is_ok();
                    if is_there || number == 0 {
                        unreadable.push(Unreadable { path, error });
                    }
                    if !is_there {
                        break;
                    }
                }
            }
        }
        parts.reverse();
        (Self { parts }, unreadable)
    }

    /// All bytes of all files.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.parts.iter().map(|part| part.length).sum()
    }

    /// Reads what there is from `at` on, at least one byte unless that is the end.
    ///
    /// # Errors
    /// What the system says.
    pub fn read_at(&self, buffer: &mut [u8], mut at: u64) -> Result<usize, Unreadable> {
        for Part { path, file, length, .. } in &self.parts {
            if at < *length {
                let most = usize::try_from(length - at).unwrap_or(usize::MAX).min(buffer.len());
                let read = file.read_at(&mut buffer[..most], at);
                return read.map_err(|error| Unreadable { path: path.clone(), error });
            }
            at -= length;
        }
        Ok(0)
    }

    /// Fills the buffer from `at` on; the rest of it stays as it is if there is less.
    fn fill(&self, buffer: &mut [u8], at: u64) -> Result<usize, Unreadable> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read_at(&mut buffer[filled..], at + filled as u64)? {
                0 => break,
                count => filled += count,
            }
        }
        Ok(filled)
    }

    /// Where a place is in all of them; `None` if its file is none of them any more, or has been cut off in front of it.
    #[must_use]
    pub fn find(&self, place: LogPlace) -> Option<u64> {
        let number = self.parts.iter().position(|part| part.identity == place.file && part.length >= place.at)?;
        Some(self.parts[..number].iter().map(|part| part.length).sum::<u64>() + place.at)
    }

    /// The last bytes of a part, `most` of them or all, and whether there are others of it in front of them.
    ///
    /// # Errors
    /// What the system says.
    pub fn end_of(&self, part: Range<u64>, most: usize) -> Result<(Vec<u8>, bool), Unreadable> {
        let from = part.start.max(part.end.saturating_sub(most as u64));
        let mut bytes = vec![0; usize::try_from(part.end.saturating_sub(from)).unwrap_or(most)];
        let filled = self.fill(&mut bytes, from)?;
        bytes.truncate(filled);
        Ok((bytes, from > part.start))
    }

    /// Where the last `count` lines begin.
    ///
    /// # Errors
    /// What the system says.
    pub fn last_lines(&self, count: usize) -> Result<u64, Unreadable> {
        let length = self.length();
        let mut at = length;
        let mut buffer = vec![0; PIECE];
        let mut left = count;
        while at > 0 && count > 0 {
            let from = at.saturating_sub(PIECE as u64);
            let most = usize::try_from(at - from).unwrap_or(PIECE);
            let filled = self.fill(&mut buffer[..most], from)?;
            for end in memchr::memrchr_iter(b'\n', &buffer[..filled]) {
                let next = from + end as u64 + 1;
                // The very last end has no line behind it.
                if next == length {
                    continue;
                }
                left -= 1;
                if left == 0 {
                    return Ok(next);
                }
            }
            at = from;
        }
        Ok(if count == 0 { length } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::PathBuf;

    use super::{LogFiles, LogPlace, PIECE};

    fn log(pieces: &[&[u8]]) -> (tempfile::TempDir, LogFiles) {
        let scratch = tempfile::tempdir().expect("a directory");
        let paths: Vec<PathBuf> = (0..=pieces.len()).map(|number| scratch.path().join(number.to_string())).collect();
        for (path, piece) in paths.iter().zip(pieces.iter().rev()) {
            std::fs::write(path, piece).expect("writes");
        }
        let (files, unreadable) = LogFiles::open(paths);
        assert!(unreadable.is_empty(), "{unreadable:?}");
        (scratch, files)
    }

    fn from(files: &LogFiles, at: u64) -> Vec<u8> {
        files.end_of(at..files.length(), usize::MAX).expect("reads").0
    }

    #[test]
    fn lines_are_found_over_all_files() {
        let (_scratch, files) = log(&[b"one\ntwo\nthr", b"ee\n", b"", b"four\nfive"]);
        for (count, expected) in [
            (0, ""),
            (1, "five"),
            (2, "four\nfive"),
            (3, "three\nfour\nfive"),
            (5, "one\ntwo\nthree\nfour\nfive"),
            (9, "one\ntwo\nthree\nfour\nfive"),
        ] {
            let at = files.last_lines(count).expect("reads");
            assert_eq!(String::from_utf8_lossy(&from(&files, at)), expected, "{count}");
        }
        assert_eq!(files.end_of(0..files.length(), 11).expect("reads"), (b"e\nfour\nfive".to_vec(), true));
        assert_eq!(files.end_of(4..7, 2).expect("reads"), (b"wo".to_vec(), true));
        assert_eq!(files.end_of(4..7, 9).expect("reads"), (b"two".to_vec(), false));
    }

    #[test]
    fn a_line_may_be_longer_than_what_is_read_at_once() {
        let long = vec![b'x'; 3 * PIECE];
        let (_scratch, files) = log(&[b"first\n", &long, b"\nlast\n"]);
        assert_eq!(from(&files, files.last_lines(2).expect("reads")).len(), 3 * PIECE + "\nlast\n".len());
        assert_eq!(files.last_lines(3).expect("reads"), 0);
        let (_scratch, empty) = log(&[b""]);
        assert_eq!(
            (empty.last_lines(3).expect("reads"), empty.end_of(0..0, 9).expect("reads")),
            (0, (Vec::new(), false))
        );
    }

    #[test]
    fn a_place_is_found_under_whatever_name_its_file_has() {
        let scratch = tempfile::tempdir().expect("a directory");
        let at = |number: u32| scratch.path().join(number.to_string());
        let open = || LogFiles::open((0..).map(at)).0;
        std::fs::write(at(0), "first").expect("writes");
        let place = LogPlace::end_of(&std::fs::File::open(at(0)).expect("opens")).expect("is known");
        assert_eq!(open().find(place), Some(5));
        assert!(place.may_be_at(&at(0)) && !place.may_be_at(&at(1)) && !place.may_be_at(scratch.path()));
        std::fs::OpenOptions::new()
            .append(true)
            .open(at(0))
            .and_then(|mut file| file.write_all(b", second"))
            .expect("writes");
        std::fs::rename(at(0), at(2)).expect("renames");
        for (number, text) in [(3, "oldest"), (1, "newer"), (0, "newest")] {
            std::fs::write(at(number), text).expect("writes");
        }
        assert_eq!(open().find(place), Some(6 + 5));
        std::fs::write(at(2), "cut").expect("writes");
        assert_eq!(open().find(place), None);
        std::fs::remove_file(at(2)).expect("removes");
        assert_eq!(open().find(place), None);
    }

    #[test]
    fn what_cannot_be_read_is_told_and_left_out() {
        let scratch = tempfile::tempdir().expect("a directory");
        let at = |number: u32| scratch.path().join(number.to_string());
        let open = || {
            let (files, unreadable) = LogFiles::open((0..).map(at));
            let text = String::from_utf8(from(&files, 0)).expect("text");
            (text, unreadable.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(open().1.len(), 1);
        std::fs::write(at(0), "newest").expect("writes");
        std::fs::create_dir(at(1)).expect("a directory");
        std::fs::write(at(2), "oldest, ").expect("writes");
        std::os::unix::fs::symlink(at(9), at(3)).expect("a link to nowhere");
        std::fs::write(at(5), "of nobody").expect("writes");
        let (text, told) = open();
        assert_eq!(text, "oldest, newest");
        assert_eq!(told.len(), 2, "{told:?}");
        for (told, number) in told.iter().zip([1, 3]) {
            assert!(told.starts_with(&format!("cannot read `{}`: ", at(number).display())), "{told}");
        }
        // Where nothing is to be had, that is said once.
        for nowhere in ["/nowhere/at/all", "/dev/null/0"] {
            let (files, unreadable) = LogFiles::open((0..).map(|_| PathBuf::from(nowhere)));
            assert_eq!((files.length(), unreadable.len()), (0, 1));
        }
    }
}
