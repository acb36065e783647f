//! What becomes of a process's output.

use std::path::{Path, PathBuf};

use serde::Serialize;

/// Who owns the log file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogMode {
    /// The child writes the file itself; gymrun copies nothing.
    File,
    /// gymrun copies what it reads from a pipe into the file, and shows it.
    Pipe,
}

/// When a log becomes an older one, and how many older ones there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rotation {
    /// No file is larger, in bytes.
    pub max_bytes: u64,
    /// That many older files stay; at least 1.
    pub keep: u32,
}

/// The path of the `number`th older file of a log, the newest of them first; 0 is the log itself.
#[must_use]
pub fn older_log(log: &Path, number: u32) -> PathBuf {
    if number == 0 {
        return log.to_owned();
    }
    let mut name = log.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}
