//! `group_by`: a file for each value of a resource attribute, whose place in the path is a `*`.

use std::collections::VecDeque;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use indexmap::IndexMap;
use tokio::time::Instant;

use super::config::Settings;
use super::writer::{Writer, Writers};
use crate::collector::component::{Built, Consumer, Context, Refusal, Running};
use crate::collector::config::section::Section;
use crate::collector::deadline::Deadline;
use crate::collector::tasks::until;
use crate::diag::Problem;
use crate::otlp::{AnyValue, Payload, Resource};

/// What decides about the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupBy {
    /// The name of the resource attribute; a resource without it, or where it is no text, is not written.
    pub attribute: String,
    /// Files that are open at once; the one that was used longest ago is closed first.
    pub most_open: usize,
}

impl GroupBy {
    /// Records a problem if the path has not one `*`, behind a beginning.
    pub fn check(section: &Section<'_>, path: &Path) {
        let text = path.to_string_lossy();
        if text.matches('*').count() != 1 {
            section.problem("path", Problem::new("with `group_by`, `path` must have exactly one `*`"));
        } else if text.starts_with('*') {
            section.problem("path", Problem::new("with `group_by`, `path` must not begin with `*`"));
        }
    }
}

/// The files in use.
#[derive(Default)]
struct Open {
    /// The one used last is at the end.
    writers: VecDeque<(PathBuf, Arc<Writer>)>,
    /// Those that were closed to make room and may not be written yet; they end by themselves.
    closing: Vec<Weak<Writer>>,
}

/// How long a file is waited for that is closed to make room.
const PATIENCE: Duration = Duration::from_secs(1);

/// The exporter.
pub(super) struct Groups {
    settings: Settings,
    group_by: GroupBy,
    prefix: String,
    suffix: String,
    context: Context,
    open: Mutex<Open>,
}

impl Groups {
    /// Starts without a file; they are opened as their first data comes.
    pub fn start(settings: Settings, group_by: GroupBy, context: Context) -> Result<Built, Problem> {
        let path = settings.path.to_string_lossy().into_owned();
        let Some((prefix, suffix)) = path.split_once('*') else {
            return Err(Problem::new("`path` has no `*`"));
        };
        let (prefix, suffix) = (prefix.to_owned(), suffix.to_owned());
        let groups = Arc::new(Self { settings, group_by, prefix, suffix, context, open: Mutex::default() });
        Ok(Built { consumer: groups.clone(), running: Box::new(Stop { groups }) })
    }

    fn path(&self, segment: &str) -> PathBuf {
        path(&self.prefix, segment, &self.suffix)
    }

    /// The writer of a file, and the one that was closed for it. Nothing is opened here, so that a file that hangs keeps
    /// nobody from the others.
    fn writer(&self, path: PathBuf) -> Result<(Arc<Writer>, Option<Arc<Writer>>), Problem> {
        let mut open = self.open();
        let used = match open.writers.iter().position(|(known, _)| *known == path) {
            Some(place) => open.writers.remove(place),
            None => None,
        };
        let writer = match used {
            Some((_, writer)) => writer,
            // A file that was closed to make room goes on where it was: only its first opening empties it.
            None => self.context.shared.get::<Writers>().get(&self.settings.at(&path), &self.context)?,
        };
        open.writers.push_back((path, writer.clone()));
        if open.writers.len() <= self.group_by.most_open {
            return Ok((writer, None));
        }
        let closed = open.writers.pop_front().map(|(_, writer)| writer);
        open.closing.retain(|writer| writer.strong_count() > 0);
        open.closing.extend(closed.as_ref().map(Arc::downgrade));
        Ok((writer, closed))
    }

    fn writers(&self) -> Vec<Arc<Writer>> {
        let open = self.open();
        let closing = open.closing.iter().filter_map(Weak::upgrade);
        open.writers.iter().map(|(_, writer)| writer.clone()).chain(closing).collect()
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write(&self, payload: Payload) -> Result<(), Refusal> {
        let signal = payload.signal;
        let mut groups: IndexMap<String, Payload> = IndexMap::new();
        let mut unnamed = Payload::new(signal);
        for entry in payload.resources {
            let Some(segment) = segment(&entry.resource, &self.group_by.attribute) else {
                unnamed.resources.push(entry);
                continue;
            };
            groups.entry(segment).or_insert_with(|| Payload::new(signal)).resources.push(entry);
        }
        if unnamed.item_count() > 0 {
            let message = format!("their resource has no text `{}`", self.group_by.attribute);
            self.context.count_dropped(signal, unnamed.item_count(), &Refusal::permanent("no_group", message));
        }
        for (segment, group) in groups {
            let items = group.item_count();
            let path = self.path(&segment);
            match self.writer(path.clone()) {
                Ok((writer, closed)) => {
                    if let Some(closed) = closed {
                        until(Instant::now() + PATIENCE, closed.flush()).await;
                    }
                    writer.write(&self.context, group).await?;
                }
                Err(problem) => {
                    let message = format!("cannot write {}: {}", path.display(), problem.message);
                    self.context.count_dropped(signal, items, &Refusal::permanent("write_failed", message));
                }
            }
        }
        Ok(())
    }
}

fn segment(resource: &Resource, attribute: &str) -> Option<String> {
    match resource.get(attribute)? {
        AnyValue::String(text) => Some(String::from_utf8_lossy(text.as_bytes()).into_owned()),
        _ => None,
    }
}

/// The path for a value: it begins as the configuration says, whatever `..` the value has.
fn path(prefix: &str, segment: &str, suffix: &str) -> PathBuf {
    let (folder, stem) = prefix.split_at(prefix.rfind('/').map_or(0, |slash| slash + 1));
    let folder = clean(folder);
    let joined = clean(&format!("{prefix}{segment}{suffix}"));
    // By the names of folders: `/data-other` begins as `/data` does, and is another place.
    let inside = joined.strip_prefix(&folder).ok().filter(|rest| {
        matches!(rest.components().next(), Some(Component::Normal(name)) if name.as_bytes().starts_with(stem.as_bytes()))
    });
    if inside.is_some() {
        return joined;
    }
    let inner = clean(&format!("/{segment}{suffix}"));
    clean(prefix).join(inner.strip_prefix("/").unwrap_or(&inner))
}

/// Without `.` and `..`, which cannot lead above the root.
fn clean(path: &str) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if clean.file_name().is_some() => drop(clean.pop()),
            Component::ParentDir if clean.has_root() => {}
            part => clean.push(part),
        }
    }
    clean
}

impl Consumer for Groups {
    fn consume(&self, payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(self.write(payload))
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let writers = self.writers();
            join_all(writers.iter().map(|writer| writer.ready())).await;
        })
    }
}

struct Stop {
    groups: Arc<Groups>,
}

impl Running for Stop {
    fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let writers = self.groups.writers();
            join_all(writers.iter().map(Writer::flush)).await;
        })
    }

    fn shutdown(self: Box<Self>, _deadline: Deadline) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.flush().await })
    }
}

#[cfg(test)]
mod tests {
    use super::super::form::Form;
    use super::*;
    use crate::collector::counters::Tally;
    use crate::collector::testing;
    use crate::otlp::Signal;

    fn groups(directory: &Path, create_directory: Option<u32>) -> Groups {
        let settings = Settings {
            path: directory.join("*.jsonl"),
            append: false,
            flush_interval: Duration::from_hours(1),
            create_directory,
            form: Form { protobuf: false, zstd: None },
            rotation: None,
            group_by: None,
        };
        let group_by = GroupBy { attribute: "a".into(), most_open: 1 };
        let prefix = directory.join("").display().to_string();
        let (suffix, context) = (".jsonl".to_owned(), testing::context("exporters/file"));
        Groups { settings, group_by, prefix, suffix, context, open: Mutex::default() }
    }

    /// Spans of these groups.
    fn of_groups(names: &[&str]) -> Payload {
        let mut payload = Payload::new(Signal::Traces);
        for name in names {
            let mut entry = testing::spans(3).resources.remove(0);
            entry.resource = Arc::new(Resource::new([("a", *name)]));
            payload.resources.push(entry);
        }
        payload
    }

    #[tokio::test]
    async fn directories_are_made_with_the_permissions_that_are_told() {
        let directory = tempfile::tempdir().expect("directory");
        for (name, mode, wanted) in [("told", Some(0o700), 0o700), ("not told", None, 0o755)] {
            let groups = groups(directory.path(), mode);
            groups.write(of_groups(&[&format!("{name}/b/x")])).await.expect("takes");
            Stop { groups: Arc::new(groups) }.flush().await;
            for made in [name.to_owned(), format!("{name}/b")] {
                let made = std::fs::metadata(directory.path().join(made)).expect("is there");
                // What the umask leaves of them.
                assert_eq!(std::os::unix::fs::PermissionsExt::mode(&made.permissions()) & 0o777 & !wanted, 0, "{name}");
            }
            assert!(directory.path().join(name).join("b/x.jsonl").is_file());
        }
    }

    #[tokio::test]
    async fn what_comes_to_a_file_that_another_closed_is_written() {
        let directory = tempfile::tempdir().expect("directory");
        let groups = groups(directory.path(), None);
        let context = groups.context.clone();
        let (first, _) = groups.writer(groups.path("one")).expect("a writer");
        let (_, closed) = groups.writer(groups.path("two")).expect("a writer");
        closed.expect("the first").flush().await;
        first.write(&context, testing::spans(3)).await.expect("takes");
        drop(first);
        Stop { groups: Arc::new(groups) }.flush().await;
        assert_eq!(context.counters.total(Signal::Traces, &Tally::Written), 3);
        assert!(std::fs::read_to_string(directory.path().join("one.jsonl")).expect("reads").ends_with('\n'));
    }

    /// A pipe that nobody reads yet stands for a folder on a server that is gone.
    #[tokio::test]
    async fn a_file_that_hangs_as_it_is_opened_keeps_no_other_from_being_written() {
        let directory = tempfile::tempdir().expect("directory");
        for most_open in [1, 10] {
            let folder = directory.path().join(most_open.to_string());
            std::fs::create_dir(&folder).expect("makes");
            nix::unistd::mkfifo(&folder.join("hangs.jsonl"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
            let mut groups = groups(&folder, None);
            groups.group_by.most_open = most_open;
            let counters = groups.context.counters.clone();
            let written = |count| {
                let counters = counters.clone();
                testing::eventually(move || counters.total(Signal::Traces, &Tally::Written) == count)
            };
            for _ in 0..2 {
                groups.write(of_groups(&["hangs", "well"])).await.expect("takes");
            }
            let stop = Stop { groups: Arc::new(groups) };
            let flushed = tokio::spawn(async move { stop.flush().await });
            written(6).await;
            assert_eq!(std::fs::read_to_string(folder.join("well.jsonl")).expect("reads").lines().count(), 2);
            assert!(!flushed.is_finished());
            // What hung is written when it can be.
            // One that stays: whoever opens the pipe when its only reader has gone waits again.
            let mut pipe =
                std::fs::File::options().read(true).write(true).open(folder.join("hangs.jsonl")).expect("opens");
            written(12).await;
            flushed.await.expect("ends");
            assert!(std::io::Read::read(&mut pipe, &mut [0; 64]).expect("reads") > 0);
        }
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_opened_costs_what_was_for_it() {
        let directory = tempfile::tempdir().expect("directory");
        std::fs::write(directory.path().join("file"), "").expect("writes");
        let groups = groups(directory.path(), None);
        let counters = groups.context.counters.clone();
        groups.write(of_groups(&["file/x", "well"])).await.expect("takes");
        Stop { groups: Arc::new(groups) }.flush().await;
        assert_eq!(counters.total(Signal::Traces, &Tally::Dropped("write_failed".into())), 3);
        assert_eq!(counters.total(Signal::Traces, &Tally::Written), 3);
        assert!(counters.last_error().expect("an error").contains("file/x.jsonl: it cannot be opened"));
    }

    #[test]
    fn no_value_leads_out_of_the_folder() {
        for (prefix, segment, expected) in [
            ("/x/data/", "a", "/x/data/a.jsonl"),
            ("/x/data/", "a/b", "/x/data/a/b.jsonl"),
            ("/x/data/", "a/../b", "/x/data/b.jsonl"),
            ("/x/data/", "/abs", "/x/data/abs.jsonl"),
            ("/x/data/", "../data-evil/y", "/x/data/data-evil/y.jsonl"),
            ("/x/data/", "../../etc/y", "/x/data/etc/y.jsonl"),
            ("/x/data/", "..", "/x/data/...jsonl"),
            ("/x/data/", "../data/y", "/x/data/y.jsonl"),
            ("/x/pre-", "y", "/x/pre-y.jsonl"),
            ("/x/pre-", "a/../pre-b", "/x/pre-b.jsonl"),
            ("/x/pre-", "a/../../pre-b", "/x/pre-/pre-b.jsonl"),
            ("/x/pre-", "a/../../evil", "/x/pre-/evil.jsonl"),
            ("/", "../y", "/y.jsonl"),
            ("", "y", "y.jsonl"),
            ("", "../y", "y.jsonl"),
            ("", "/etc/y", "etc/y.jsonl"),
            ("out/", "../../y", "out/y.jsonl"),
            ("../out/", "../y", "../out/y.jsonl"),
            ("../", "../../y", "../y.jsonl"),
        ] {
            assert_eq!(path(prefix, segment, ".jsonl"), Path::new(expected), "{prefix}*.jsonl with {segment}");
        }
        assert_eq!(clean("/a/./b/../c"), Path::new("/a/c"));
        assert_eq!(clean("/../a"), Path::new("/a"));
        assert_eq!(clean("../a"), Path::new("../a"));
    }
}
