//! Reads a log from its end, over all the files that it is in, however long its lines are.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::PathBuf;

use super::read::open_file;

/// How much is read at once.
const PIECE: usize = 64 * 1024;

/// The files of one log, as long as they were when they were opened.
#[derive(Debug)]
pub struct LogFiles {
    /// Each with its length, the oldest first.
    parts: Vec<(File, u64)>,
}

impl LogFiles {
    /// Opens the files of a log, the newest first; the first that is missing ends them.
    ///
    /// # Errors
    /// The newest is not there, or one cannot be read or is no file.
    pub fn open(newest_first: impl IntoIterator<Item = PathBuf>) -> io::Result<Self> {
        let mut parts: Vec<(File, u64)> = Vec::new();
        let mut before = None;
        for path in newest_first {
            let file = match open_file(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && !parts.is_empty() => break,
                file => file?,
            };
            let found = file.metadata()?;
            let identity = Some((found.dev(), found.ino()));
            // A new one was begun since the one before this was opened.
            if identity == before {
                continue;
            }
            before = identity;
            parts.push((file, found.len()));
        }
        parts.reverse();
        Ok(Self { parts })
    }

    /// All bytes of all files.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.parts.iter().map(|(_, length)| length).sum()
    }

    /// Reads what there is from `at` on, at least one byte unless that is the end.
    ///
    /// # Errors
    /// What the system says.
    pub fn read_at(&self, buffer: &mut [u8], mut at: u64) -> io::Result<usize> {
        for (file, length) in &self.parts {
            if at < *length {
                let most = usize::try_from(length - at).unwrap_or(usize::MAX).min(buffer.len());
                return file.read_at(&mut buffer[..most], at);
            }
            at -= length;
        }
        Ok(0)
    }

    /// Fills the buffer from `at` on; the rest of it stays as it is if there is less.
    fn fill(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read_at(&mut buffer[filled..], at + filled as u64)? {
                0 => break,
                count => filled += count,
            }
        }
        Ok(filled)
    }

    /// The last bytes, `most` of them or all, and whether there are others in front of them.
    ///
    /// # Errors
    /// What the system says.
    pub fn end(&self, most: usize) -> io::Result<(Vec<u8>, bool)> {
        let length = self.length();
        let from = length.saturating_sub(most as u64);
        let mut bytes = vec![0; usize::try_from(length - from).unwrap_or(most)];
        let filled = self.fill(&mut bytes, from)?;
        bytes.truncate(filled);
        Ok((bytes, from > 0))
    }

    /// Where the last `count` lines begin.
    ///
    /// # Errors
    /// What the system says.
    pub fn last_lines(&self, count: usize) -> io::Result<u64> {
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
    use std::path::PathBuf;

    use super::{LogFiles, PIECE};

    fn log(pieces: &[&[u8]]) -> (tempfile::TempDir, LogFiles) {
        let scratch = tempfile::tempdir().expect("a directory");
        let paths: Vec<PathBuf> = (0..=pieces.len()).map(|number| scratch.path().join(number.to_string())).collect();
        for (path, piece) in paths.iter().zip(pieces.iter().rev()) {
            std::fs::write(path, piece).expect("writes");
        }
        let files = LogFiles::open(paths).expect("opens");
        (scratch, files)
    }

    fn from(files: &LogFiles, at: u64) -> Vec<u8> {
        files.end(usize::try_from(files.length() - at).expect("small")).expect("reads").0
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
        assert_eq!(files.end(11).expect("reads"), (b"e\nfour\nfive".to_vec(), true));
    }

    #[test]
    fn a_line_may_be_longer_than_what_is_read_at_once() {
        let long = vec![b'x'; 3 * PIECE];
        let (_scratch, files) = log(&[b"first\n", &long, b"\nlast\n"]);
        assert_eq!(from(&files, files.last_lines(2).expect("reads")).len(), 3 * PIECE + "\nlast\n".len());
        assert_eq!(files.last_lines(3).expect("reads"), 0);
        let (_scratch, empty) = log(&[b""]);
        assert_eq!((empty.last_lines(3).expect("reads"), empty.end(9).expect("reads")), (0, (Vec::new(), false)));
        assert!(LogFiles::open([PathBuf::from("/nowhere/at/all")]).is_err());
    }
}
