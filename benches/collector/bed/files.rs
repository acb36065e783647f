//! Counting the spans in a file that is being written, and giving its blocks back: a long run writes more than there is
//! memory.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::path::PathBuf;

use nix::fcntl::{FallocateFlags, fallocate};
use regex::bytes::Regex;

/// A file of JSON lines; what has been counted is not read again.
pub struct SpanFile {
    path: PathBuf,
    file: Option<File>,
    /// The end of what was read, where half of the word may be.
    rest: Vec<u8>,
    word: Regex,
    spans: u64,
    bytes: i64,
}

const WORD: &str = "\"spanId\":";

impl SpanFile {
    pub fn new(path: PathBuf) -> Self {
        let word = Regex::new(WORD).expect("a pattern");
        Self { path, file: None, rest: Vec::new(), word, spans: 0, bytes: 0 }
    }

    /// The spans that are in it now.
    pub fn spans(&mut self) -> u64 {
        if self.file.is_none() {
            self.file = OpenOptions::new().read(true).write(true).open(&self.path).ok();
        }
        let Some(file) = &mut self.file else { return 0 };
        let mut chunk = vec![0; 1 << 20];
        loop {
            let read = file.read(&mut chunk).expect("reads");
            if read == 0 {
                // Where the file system cannot do it, the file stays as it is.
                let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
                let _ = fallocate(&*file, hole, 0, self.bytes.max(1));
                return self.spans;
            }
            self.bytes += i64::try_from(read).expect("small");
            self.rest.extend_from_slice(&chunk[..read]);
            self.spans += self.word.find_iter(&self.rest).count() as u64;
            let keep = self.rest.len().min(WORD.len() - 1);
            self.rest.drain(..self.rest.len() - keep);
        }
    }
}
