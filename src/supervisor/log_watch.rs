//! Names logs that somebody removes while the processes that own them write: they never learn of it.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::logs::Lives;
use crate::events::Sink;
use crate::files::LogPlace;

/// Watches the logs that processes own.
#[derive(Debug)]
pub(super) struct LogWatch {
    directory: PathBuf,
    sink: Sink,
    logs: Vec<Arc<Lives>>,
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    /// When the directory was changed last, at the last two looks. Two, since all that happens within a tick of the
    /// kernel's clock has one time.
    changed: [Option<(i64, i64)>; 2],
    /// Of each log, of which life it was said.
    said: Vec<Option<LogPlace>>,
}

impl LogWatch {
    /// All of these logs are in that directory.
    pub(super) fn new(directory: PathBuf, sink: Sink, logs: Vec<Arc<Lives>>) -> Self {
        let seen = Mutex::new(Seen { changed: [None; 2], said: vec![None; logs.len()] });
        Self { directory, sink, logs, seen }
    }

    /// Says which are gone, once each. One system call, unless files came or went.
    pub(super) fn look(&self) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = std::fs::metadata(&self.directory).ok().map(|found| (found.mtime(), found.mtime_nsec()));
        let is_quiet = changed.is_some() && seen.changed == [changed; 2];
        seen.changed = [seen.changed[1], changed];
        if is_quiet {
            return;
        }
        for (log, said) in self.logs.iter().zip(&mut seen.said) {
            let Some(begin) = log.latest() else { continue };
            if *said != Some(begin) && !begin.may_be_at(&log.path) {
                *said = Some(begin);
                let message = format!(
                    "somebody has removed its log `{}` while it was written: what it has written is gone with it, and so \
                     will be what it still writes",
                    log.path.display()
                );
                let hint = "with `log = \"pipe\"` gymrun writes the log, and begins it again";
                self.sink.warn(Some(&log.name), message, Some(hint.to_owned()));
            }
        }
    }
}
