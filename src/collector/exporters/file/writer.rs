//! One writer for each path, however many exporters name it.
//!
//! Lines gather in memory and go to the file as whole lines, one write at a time, on a thread that may block (a shared
//! file system can take seconds). The first line that waits wakes the flusher, which sleeps for the interval; without
//! data nothing ticks. If a write fails, the file is cut back to where it was, so no line is ever torn, and what was
//! lost is counted.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Notify;

use super::config::Settings;
use crate::collector::component::{Context, Refusal};
use crate::collector::counters::Tally;
use crate::diag::Problem;
use crate::otlp::{Payload, Signal};

/// From this size on lines are written at once.
const LARGE: usize = 256 << 10;

/// From this size on, whoever hands in waits until some was written.
const FULL: usize = 8 << 20;

/// The writers of one collector by path.
#[derive(Default)]
pub(super) struct Writers {
    open: Mutex<HashMap<PathBuf, Weak<Writer>>>,
}

impl Writers {
    /// The writer of the path; opens the file if no other exporter has.
    pub fn open(&self, settings: &Settings, context: &Context) -> Result<Arc<Writer>, Problem> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let key = std::path::absolute(&settings.path).unwrap_or_else(|_| settings.path.clone());
        if let Some(writer) = open.get(&key).and_then(Weak::upgrade) {
            context.log.info(&format!("shares the file {} with another exporter", settings.path.display()));
            return Ok(writer);
        }
        let file = open_file(settings).map_err(|error| {
            let problem = Problem::new(format!("cannot open {}: {error}", settings.path.display()));
            problem.hint("make the directory first, or set `create_directory: true`")
        })?;
        let writer = Arc::new(Writer::new(file, settings.path.clone()));
        tokio::spawn(flush_after(Arc::downgrade(&writer), writer.waiting.clone(), settings.flush_interval));
        open.insert(key, Arc::downgrade(&writer));
        Ok(writer)
    }
}

fn open_file(settings: &Settings) -> std::io::Result<fs::File> {
    if settings.create_directory
        && let Some(directory) = settings.path.parent()
    {
        fs::create_dir_all(directory)?;
    }
    if !settings.append {
        // Opened for appending below, so that a cut after a failed write needs no seek.
        OpenOptions::new().write(true).create(true).truncate(true).open(&settings.path)?;
    }
    OpenOptions::new().append(true).create(true).open(&settings.path)
}

/// Wakes when a line waits, gives it the interval, writes; ends with the writer.
async fn flush_after(writer: Weak<Writer>, waiting: Arc<Waiting>, interval: std::time::Duration) {
    loop {
        waiting.some.notified().await;
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = waiting.much.notified() => {}
        }
        let Some(writer) = writer.upgrade() else { return };
        writer.flush().await;
    }
}

/// Writes lines to one file.
pub(super) struct Writer {
    path: PathBuf,
    file: Arc<fs::File>,
    pending: Mutex<Pending>,
    waiting: Arc<Waiting>,
    /// Held during a write, so that lines keep their order.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Waiting {
    some: Notify,
    much: Notify,
    room: Notify,
}

#[derive(Default)]
struct Pending {
    lines: Vec<u8>,
    counts: Vec<(Context, Signal, usize)>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Lets the flusher see that its writer is gone.
        self.waiting.some.notify_one();
        self.waiting.much.notify_one();
    }
}

impl Writer {
    fn new(file: fs::File, path: PathBuf) -> Self {
        Self {
            path,
            file: Arc::new(file),
            pending: Mutex::default(),
            waiting: Arc::default(),
            writing: tokio::sync::Mutex::default(),
        }
    }

    /// Takes one payload; waits while too much is unwritten.
    pub async fn write(&self, context: &Context, payload: Payload) -> Result<(), Refusal> {
        while self.pending().lines.len() >= FULL {
            let room = self.waiting.room.notified();
            if self.pending().lines.len() >= FULL {
                room.await;
            }
        }
        let (first, large) = {
            let mut pending = self.pending();
            let first = pending.lines.is_empty();
            payload.write_json(&mut pending.lines);
            pending.lines.push(b'\n');
            pending.add(context, payload.signal, payload.item_count());
            (first, pending.lines.len() >= LARGE)
        };
        if first {
            self.waiting.some.notify_one();
        }
        if large {
            self.waiting.much.notify_one();
        }
        Ok(())
    }

    /// Writes what waits.
    pub async fn flush(&self) {
        let writing = self.writing.lock().await;
        let Pending { lines, counts } = std::mem::take(&mut *self.pending());
        if lines.is_empty() {
            return;
        }
        let file = self.file.clone();
        let written = tokio::task::spawn_blocking(move || write_whole(&file, &lines)).await;
        drop(writing);
        self.waiting.room.notify_waiters();
        let failure = match written {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        for (context, signal, items) in counts {
            match &failure {
                None => context.count(signal, Tally::Written, items),
                Some(why) => {
                    let message = format!("cannot write {}: {why}", self.path.display());
                    context.count_dropped(signal, items, &Refusal::permanent("write_failed", message));
                }
            }
        }
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pending {
    fn add(&mut self, context: &Context, signal: Signal, items: usize) {
        let known = self.counts.iter_mut().find(|(other, of, _)| other.name == context.name && *of == signal);
        match known {
            Some((.., n)) => *n += items,
            None => self.counts.push((context.clone(), signal, items)),
        }
    }
}

fn write_whole(mut file: &fs::File, lines: &[u8]) -> std::io::Result<()> {
    let before = file.metadata()?.len();
    file.write_all(lines).inspect_err(|_| {
        // Best effort: the error that counts is the first one.
        let _ = file.set_len(before);
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::collector::testing;

    fn settings(path: &Path) -> Settings {
        let path = path.to_owned();
        Settings { path, append: false, flush_interval: Duration::from_millis(5), create_directory: false }
    }

    #[tokio::test]
    async fn two_exporters_of_one_path_write_whole_lines_and_count_apart() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("x.jsonl");
        let one = testing::context("exporters/file/a");
        let two = Context { name: "exporters/file/b".into(), ..one.clone() };
        let first = one.shared.get::<Writers>().open(&settings(&path), &one).expect("opens");
        let second = two.shared.get::<Writers>().open(&settings(&path), &two).expect("opens");
        for _ in 0..3 {
            first.write(&one, testing::spans(2)).await.expect("writes");
            second.write(&two, testing::spans(1)).await.expect("writes");
        }
        first.flush().await;
        let text = fs::read_to_string(&path).expect("reads");
        assert_eq!(text.lines().count(), 6);
        assert!(text.ends_with('\n'));
        assert!(text.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
        assert_eq!(one.counters.total(Signal::Traces, &Tally::Written), 9);
    }

    #[tokio::test]
    async fn a_line_reaches_the_file_without_a_flush() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("x.jsonl");
        let context = testing::context("exporters/file");
        let writer = context.shared.get::<Writers>().open(&settings(&path), &context).expect("opens");
        writer.write(&context, testing::spans(1)).await.expect("writes");
        testing::eventually(|| context.counters.total(Signal::Traces, &Tally::Written) == 1).await;
    }

    #[tokio::test]
    async fn a_missing_directory_is_named() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("no/such/x.jsonl");
        let context = testing::context("exporters/file");
        let problem = context.shared.get::<Writers>().open(&settings(&path), &context).err().expect("fails");
        assert!(problem.message.contains("no/such/x.jsonl"), "{problem}");
    }

    #[tokio::test]
    async fn what_cannot_be_written_is_counted() {
        let context = testing::context("exporters/file");
        let full = settings(Path::new("/dev/full"));
        let writer = context.shared.get::<Writers>().open(&full, &context).expect("opens");
        writer.write(&context, testing::spans(4)).await.expect("takes");
        writer.flush().await;
        assert_eq!(context.counters.total(Signal::Traces, &Tally::Dropped("write_failed".into())), 4);
    }
}
