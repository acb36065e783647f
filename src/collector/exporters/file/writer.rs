//! One writer for each path, however many exporters name it.
//!
//! Payloads gather in memory and go to the file as whole messages, one write at a time, on a thread that may block (a
//! shared file system can take seconds); there they take on their form, so that it is never in memory as a whole. The
//! first message that waits wakes the flusher, which sleeps for the interval; without data nothing ticks. What cannot be
//! written is counted, and no message is torn unless the process is killed meanwhile: the next one that appends lines to
//! the file begins a new one.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Notify;

use super::backlog::{Backlog, STEP};
use super::config::Settings;
use super::form::Form;
use super::output::{Broken, Written};
use super::place::Place;
use crate::collector::component::{Context, Refusal};
use crate::collector::counters::Tally;
use crate::collector::owed::Owed;
use crate::diag::{Problem, counted};
use crate::otlp::{Payload, Signal};

/// From this size of payloads on they are written at once.
const LARGE: usize = 128 << 10;

/// From this size on, whoever hands in waits until some was written.
const FULL: usize = 4 * STEP;

/// Below this size the next large payload may be made.
const LITTLE: usize = STEP;

/// The writers of one collector by path.
#[derive(Default)]
pub(super) struct Writers {
    open: Mutex<HashMap<PathBuf, Weak<Writer>>>,
}

impl Writers {
    /// The writer of the path, whose file is opened when it is written to; the one that another exporter has already, if
    /// one has.
    pub fn get(&self, settings: &Settings, context: &Context) -> Result<Arc<Writer>, Problem> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let key = settings.key();
        if let Some(writer) = open.get(&key).and_then(Weak::upgrade) {
            let path = settings.path.display();
            if writer.form != settings.form {
                return Err(Problem::new(format!("another exporter writes {path} in another format or compression")));
            }
            context.log.info(&format!("shares the file {path} with another exporter"));
            return Ok(writer);
        }
        // Those that nobody holds any more.
        open.retain(|_, writer| writer.strong_count() > 0);
        let writer = Arc::new(Writer::new(Place::new(settings, key.clone(), context), settings));
        tokio::spawn(flush_after(Arc::downgrade(&writer), writer.waiting.clone(), settings.flush_interval));
        open.insert(key, Arc::downgrade(&writer));
        Ok(writer)
    }

    /// The same with its file open.
    pub async fn open(&self, settings: &Settings, context: &Context) -> Result<Arc<Writer>, Problem> {
        let writer = self.get(settings, context)?;
        writer.open().await.map_err(|error| {
            let problem = Problem::new(format!("cannot open {}: {error}", settings.path.display()));
            problem.hint("make the directory first, or set `create_directory: true`")
        })?;
        Ok(writer)
    }
}

/// Wakes when a message waits, gives it the interval, writes; ends with the writer.
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

/// Writes messages to one file.
pub(super) struct Writer {
    path: PathBuf,
    form: Form,
    place: Arc<Mutex<Place>>,
    pending: Mutex<Pending>,
    backlog: Arc<Backlog>,
    waiting: Arc<Waiting>,
    /// Held during a write, and while the file is opened, so that messages keep their order.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Waiting {
    some: Notify,
    much: Notify,
}

#[derive(Default)]
struct Pending {
    payloads: Vec<Payload>,
    /// Whose they are.
    messages: Vec<Message>,
    /// About how many bytes the payloads hold.
    size: usize,
    /// The writer itself: it stays until they are written, even if nobody else holds it.
    keeper: Option<Arc<Writer>>,
}

struct Message {
    context: Context,
    signal: Signal,
    items: usize,
    owed: Owed,
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Lets the flusher see that its writer is gone.
        self.waiting.some.notify_one();
        self.waiting.much.notify_one();
    }
}

impl Writer {
    fn new(place: Place, settings: &Settings) -> Self {
        Self {
            path: settings.path.clone(),
            form: settings.form,
            place: Arc::new(Mutex::new(place)),
            pending: Mutex::default(),
            backlog: Arc::default(),
            waiting: Arc::default(),
            writing: tokio::sync::Mutex::default(),
        }
    }

    /// Opens the file now, if it is not open.
    async fn open(&self) -> io::Result<()> {
        let _writing = self.writing.lock().await;
        let place = self.place.clone();
        let opening = tokio::task::spawn_blocking(move || {
            place.lock().unwrap_or_else(PoisonError::into_inner).open().map(|_| ())
        });
        opening.await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    /// Waits until little is unwritten.
    pub async fn ready(&self) {
        self.backlog.below(LITTLE).await;
    }

    /// Takes one payload; waits while too much is unwritten.
    pub async fn write(self: &Arc<Self>, context: &Context, payload: Payload) -> Result<(), Refusal> {
        self.backlog.below(FULL).await;
        let (first, large) = {
            let mut pending = self.pending();
            let first = pending.payloads.is_empty();
            self.backlog.add(pending.add(context, payload));
            pending.keeper.get_or_insert_with(|| self.clone());
            (first, pending.size >= LARGE)
        };
        if first {
            self.waiting.some.notify_one();
        }
        if large {
            self.waiting.much.notify_one();
        }
        Ok(())
    }

    /// Writes what waits. Whoever gives up waiting does not end it: what is written is counted.
    pub async fn flush(self: &Arc<Self>) {
        let writer = self.clone();
        // It fails only if it panicked.
        let _ = tokio::spawn(async move { writer.write_out().await }).await;
    }

    async fn write_out(&self) {
        let writing = self.writing.lock().await;
        let Pending { payloads, messages, size, .. } = std::mem::take(&mut *self.pending());
        if payloads.is_empty() {
            return;
        }
        let (place, form, writing_these) = (self.place.clone(), self.form, self.backlog.begin(size));
        let written = tokio::task::spawn_blocking(move || {
            let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
            let output = match place.open() {
                Ok(output) => output,
                Err(error) => {
                    let failure = Some(io::Error::other(format!("it cannot be opened: {error}")));
                    return Written { failure, ..Written::default() };
                }
            };
            output.write(payloads, |payload, buffer, between| {
                form.write(payload, buffer, &mut |buffer, size| {
                    writing_these.written(size);
                    between(buffer);
                })
            })
        });
        let (written, why) = match written.await {
            Ok(written) => {
                let why = written.failure.as_ref().map(|error| Broken::Failed(error.to_string()));
                (written, why.unwrap_or(Broken::Panicked))
            }
            Err(_) => (Written::default(), Broken::Panicked),
        };
        drop(writing);
        if let (Some(bytes), Some(Message { context, .. })) = (written.removed, messages.first()) {
            let path = self.path.display();
            let gone = counted(bytes, "byte that counts as written is", "bytes that count as written are");
            context.log.warn(&format!(
                "{path} was removed while it was being written, and {gone} gone with it: what comes goes to a new file"
            ));
        }
        if let (Some(error), Some(Message { context, .. })) = (&written.unrotated, messages.first()) {
            context.log.warn(&format!("{} cannot be put aside and grows on: {error}", self.path.display()));
        }
        for (place, Message { context, signal, items, owed }) in messages.into_iter().enumerate() {
            owed.settled();
            match written.broken.get(&place).or((place >= written.decided).then_some(&why)) {
                None => context.count(signal, Tally::Written, items),
                Some(why) => context.count_dropped(signal, items, &self.refusal(why)),
            }
        }
    }

    fn refusal(&self, why: &Broken) -> Refusal {
        let path = self.path.display();
        match why {
            Broken::Failed(why) => Refusal::permanent("write_failed", format!("cannot write {path}: {why}")),
            Broken::Panicked => {
                Refusal::permanent("panic", format!("the collector broke down writing {path} (please report this)"))
            }
        }
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pending {
    /// Gives its size.
    fn add(&mut self, context: &Context, payload: Payload) -> usize {
        let (context, signal, items) = (context.clone(), payload.signal, payload.item_count());
        let (owed, size) = (context.owe(signal, items), payload.size());
        self.messages.push(Message { context, signal, items, owed });
        self.size += size;
        self.payloads.push(payload);
        size
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::collector::testing;

    fn settings(path: &Path) -> Settings {
        let path = path.to_owned();
        let form = Form { protobuf: false, zstd: None };
        let flush_interval = Duration::from_millis(5);
        Settings { path, append: false, flush_interval, create_directory: None, form, rotation: None, group_by: None }
    }

    #[tokio::test]
    async fn two_exporters_of_one_path_write_whole_lines_and_count_apart() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("x.jsonl");
        let one = testing::context("exporters/file/a");
        let two = Context { name: "exporters/file/b".into(), ..one.clone() };
        let first = one.shared.get::<Writers>().open(&settings(&path), &one).await.expect("opens");
        let second = two.shared.get::<Writers>().open(&settings(&path), &two).await.expect("opens");
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
    async fn it_is_ready_when_little_is_unwritten_and_full_before_that() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("x.jsonl");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        // Both ends, so that opening does not wait; what is written does, until it is read.
        let mut pipe = fs::File::options().read(true).write(true).open(&path).expect("opens");
        let context = testing::context("exporters/file");
        let mut settings = settings(&path);
        settings.append = true;
        let writer = context.shared.get::<Writers>().open(&settings, &context).await.expect("opens");
        let spans = 150_000;
        writer.write(&context, testing::spans(spans)).await.expect("takes");
        assert!(writer.backlog.size() >= FULL);
        let soon = Duration::from_millis(20);
        assert!(tokio::time::timeout(soon, writer.ready()).await.is_err());
        assert!(tokio::time::timeout(soon, writer.write(&context, testing::spans(1))).await.is_err());
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 20];
            while std::io::Read::read(&mut pipe, &mut buffer).is_ok_and(|read| read > 0) {}
        });
        writer.ready().await;
        assert!(writer.backlog.size() < LITTLE);
        testing::eventually(|| context.counters.total(Signal::Traces, &Tally::Written) == spans as u64).await;
        assert_eq!(writer.backlog.size(), 0);
    }

    #[tokio::test]
    async fn a_line_reaches_the_file_without_a_flush() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("x.jsonl");
        let context = testing::context("exporters/file");
        let writer = context.shared.get::<Writers>().open(&settings(&path), &context).await.expect("opens");
        writer.write(&context, testing::spans(1)).await.expect("writes");
        testing::eventually(|| context.counters.total(Signal::Traces, &Tally::Written) == 1).await;
    }

    #[tokio::test]
    async fn what_waits_is_written_when_nobody_holds_the_writer() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("x.jsonl");
        let context = testing::context("exporters/file");
        let writer = context.shared.get::<Writers>().open(&settings(&path), &context).await.expect("opens");
        writer.write(&context, testing::spans(2)).await.expect("writes");
        let gone = Arc::downgrade(&writer);
        drop(writer);
        testing::eventually(|| context.counters.total(Signal::Traces, &Tally::Written) == 2).await;
        testing::eventually(|| gone.strong_count() == 0).await;
    }

    #[tokio::test]
    async fn writers_that_nobody_holds_are_forgotten() {
        let directory = tempfile::tempdir().expect("directory");
        let context = testing::context("exporters/file");
        let writers = context.shared.get::<Writers>();
        let kept = writers.open(&settings(&directory.path().join("kept")), &context).await.expect("opens");
        for name in 0..20 {
            writers.open(&settings(&directory.path().join(name.to_string())), &context).await.expect("opens");
        }
        // The one that is held, and the last one.
        assert_eq!(writers.open.lock().expect("lock").len(), 2);
        drop(kept);
    }

    #[tokio::test]
    async fn a_missing_directory_is_named() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("no/such/x.jsonl");
        let context = testing::context("exporters/file");
        let problem = context.shared.get::<Writers>().open(&settings(&path), &context).await.err().expect("fails");
        assert!(problem.message.contains("no/such/x.jsonl"), "{problem}");
    }

    #[tokio::test]
    async fn what_cannot_be_written_is_counted() {
        let context = testing::context("exporters/file");
        let full = settings(Path::new("/dev/full"));
        let writer = context.shared.get::<Writers>().open(&full, &context).await.expect("opens");
        writer.write(&context, testing::spans(4)).await.expect("takes");
        writer.flush().await;
        assert_eq!(context.counters.total(Signal::Traces, &Tally::Dropped("write_failed".into())), 4);
    }
}
