//! Counting the spans in a file that is being written.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

/// A file of JSON lines; what has been counted is not read again.
pub struct SpanFile {
    path: PathBuf,
    file: Option<File>,
    /// The end of what was read, where half of the word may be.
    rest: Vec<u8>,
    spans: u64,
}

const WORD: &[u8] = b"\"spanId\":";

impl SpanFile {
    pub fn new(path: PathBuf) -> Self {
        Self { path, file: None, rest: Vec::new(), spans: 0 }
    }

    /// The spans that are in it now.
    pub fn spans(&mut self) -> u64 {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let Some(file) = &mut self.file else { return 0 };
        let mut chunk = vec![0; 1 << 20];
        loop {
            let read = file.read(&mut chunk).expect("reads");
            if read == 0 {
                return self.spans;
            }
            self.rest.extend_from_slice(&chunk[..read]);
            self.spans += count(&self.rest);
            let keep = self.rest.len().min(WORD.len() - 1);
            self.rest.drain(..self.rest.len() - keep);
        }
    }
}

fn count(text: &[u8]) -> u64 {
    let found = text.windows(WORD.len()).filter(|window| *window == WORD).count();
    found as u64
}
