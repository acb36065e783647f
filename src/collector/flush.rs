//! Sends what an earlier collector stored because it could not be sent.
//!
//! Of the configuration only the exporters with a storage are started, with the extensions that keep it: nothing is
//! received, and no file of the job is touched.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::component::{Context, Shared};
use super::counters::{Counters, Tally};
use super::deadline::Deadline;
use super::exporters::EXPORTERS;
use super::extensions::EXTENSIONS;
use super::graph::{Named, shut};
use super::log::{Level, Log, Sink};
use super::storage::{Credentials, Spool, Storages};
use super::tasks::until;
use crate::collector::config::duration::about;
use crate::collector::config::load::{Environment, Expanded, read};
use crate::collector::config::node::{Entry, Node, Value};
use crate::collector::config::section::{Findings, Section};
use crate::collector::config::source::Source;
use crate::collector::config::{Declared, declared};
use crate::diag::{Problem, Problems};
use crate::otlp::Signal;

/// What became of what was stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flushed {
    /// Items that the endpoint took.
    pub sent: u64,
    /// Items that it left out of what it took.
    pub rejected: u64,
    /// Items that it will never take.
    pub dropped: u64,
    /// Requests that are still stored.
    pub left: usize,
    /// Why they are.
    pub problems: Vec<String>,
}

/// What the end of each part may take beyond the limit.
const MOMENT: Duration = Duration::from_secs(1);

/// Sends what is stored, within `limit`. A job directory may have been moved: what is stored is looked for in `beside`, the
/// folder of the configuration, under the last part of its configured path, before it is looked for there.
pub async fn flush(
    sources: &[Source],
    beside: &Path,
    environment: Environment<'_>,
    sink: Sink,
    limit: Duration,
) -> Result<Flushed, Problems> {
    let Expanded { root, credentials, unset, findings } = read(sources, environment)?;
    let root = reduced(root, beside);
    let (extensions, exporters) = components(&root, &findings);
    // Warnings are about variables of parts that are not started.
    if findings.problems.borrow().any_error() {
        return Err(findings.problems.into_inner());
    }
    if exporters.is_empty() {
        let problem = Problem::new("no exporter has a storage: there is nothing to send");
        return Err(problem
            .hint(
                "`sending_queue: {storage: file_storage}` of an exporter makes it keep what it cannot send; in a job \
                 `otel.queue = \"disk\"`",
            )
            .into());
    }
    let unset: Problems = unset
        .into_iter()
        .map(|name| Problem::new(format!("the variable `{name}` is not set, and a header needs it")))
        .collect();
    if unset.any_error() {
        return Err(unset);
    }
    let base = Context {
        name: "flush".into(),
        log: Log::new(sink, Level::Info).without(Arc::new(findings.secrets.into_inner())),
        counters: Arc::default(),
        controls: Arc::default(),
        shared: Shared::default(),
    };
    base.shared.get::<Credentials>().set(credentials);
    send(&root, extensions, exporters, &base, limit).await.map_err(Problems::from)
}

type Extensions = Vec<Declared<dyn super::component::Extension>>;
type Exporters = Vec<Declared<dyn super::component::Exporter>>;

/// The sections that are needed, and of the exporters those with a storage.
fn reduced(root: Node, beside: &Path) -> Node {
    let Value::Map(entries) = root.value else { return root };
    let kept = entries.into_iter().filter_map(|entry| match entry.key.as_str() {
        "service" => Some(entry),
        "extensions" => Some(Entry { node: storages(entry.node, beside), ..entry }),
        "exporters" => Some(Entry { node: with_storage(entry.node), ..entry }),
        _ => None,
    });
    Node::new(root.line, Value::Map(kept.collect()))
}

/// The storages alone, each where it is now.
fn storages(extensions: Node, beside: &Path) -> Node {
    let Value::Map(entries) = extensions.value else { return extensions };
    let is_storage = |entry: &Entry| entry.key.split('/').next() == Some("file_storage");
    let mut storages: Vec<Entry> = entries.into_iter().filter(is_storage).collect();
    for storage in &mut storages {
        let Value::Map(keys) = &mut storage.node.value else { continue };
        for directory in keys.iter_mut().filter(|entry| entry.key == "directory") {
            let name = directory.node.as_text().and_then(|path| Path::new(path).file_name());
            if let Some(moved) = name.map(|name| beside.join(name)).filter(|path| path.is_dir()) {
                directory.node = Node::new(directory.line, Value::Text(moved.display().to_string()));
            }
        }
    }
    Node::new(extensions.line, Value::Map(storages))
}

fn with_storage(exporters: Node) -> Node {
    let has = |entry: &Entry| entry.node.get("sending_queue").and_then(|queue| queue.get("storage")).is_some();
    match exporters.value {
        Value::Map(entries) => Node::new(exporters.line, Value::Map(entries.into_iter().filter(has).collect())),
        value => Node::new(exporters.line, value),
    }
}

fn components(root: &Node, findings: &Findings) -> (Extensions, Exporters) {
    let read = |section: &mut Section<'_>| {
        section.has("service");
        let extensions = declared(section, "extensions", "extension", EXTENSIONS, findings);
        (extensions, declared(section, "exporters", "exporter", EXPORTERS, findings))
    };
    Section::read(findings, root, "", 1, read).unwrap_or_default()
}

/// What runs, and until when.
struct Started {
    extensions: Vec<Named>,
    exporters: Vec<Named>,
    deadline: Instant,
}

impl Started {
    async fn start(
        &mut self,
        root: &Node,
        extensions: Extensions,
        exporters: Exporters,
        base: &Context,
    ) -> Result<(), Problem> {
        let context = |name: String| {
            let name: Arc<str> = name.into();
            Context { log: base.log.named(name.clone()), name, ..base.clone() }
        };
        for Declared { id, component, .. } in extensions {
            let Some(extension) = component else { continue };
            let context = context(format!("extensions/{id}"));
            let name = context.name.clone();
            let running = self.in_time(&name, async move { extension.start(context).await }).await?;
            self.extensions.push(Named { name, running });
        }
        for Declared { id, component, .. } in exporters {
            let signals = signals(root, &id);
            let Some(exporter) = component.filter(|_| !signals.is_empty()) else { continue };
            let context = context(format!("exporters/{id}"));
            let name = context.name.clone();
            let built = self.in_time(&name, async move { exporter.start(context, &signals).await }).await?;
            self.exporters.push(Named { name, running: built.running });
        }
        Ok(())
    }

    /// What a start gives; it may wait for a disk that does not answer.
    async fn in_time<T: Send + 'static>(
        &self,
        name: &str,
        start: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Result<T, Problem> {
        let runtime = Handle::current();
        match until(self.deadline, spawn_blocking(move || runtime.block_on(start))).await {
            Some(Ok(started)) => started,
            Some(Err(error)) => Err(Problem::new(format!("{name}: {error} (please report this)"))),
            None => Err(Problem::new(format!("{name} did not start in time: the disk may not answer"))),
        }
    }
}

async fn send(
    root: &Node,
    extensions: Extensions,
    exporters: Exporters,
    base: &Context,
    limit: Duration,
) -> Result<Flushed, Problem> {
    let deadline = Instant::now() + limit;
    let mut started = Started { extensions: Vec::new(), exporters: Vec::new(), deadline };
    let start = started.start(root, extensions, exporters, base).await;
    let Started { extensions, exporters, .. } = started;
    let storages = base.shared.get::<Storages>();
    let mut ends = Vec::new();
    for (name, spool) in if start.is_ok() { storages.opened() } else { Vec::new() } {
        let problem = match until(deadline, spool.settled()).await {
            Some(settled) => settled.problem,
            None => Some(format!("not done within {}", about(limit))),
        };
        ends.push((name, spool, problem));
    }
    shut(exporters, &Deadline::fixed(Instant::now() + MOMENT), base).await;
    let list = spawn_blocking(move || storages.unclaimed());
    let unclaimed = until(Instant::now() + MOMENT, list).await.and_then(Result::ok);
    shut(extensions, &Deadline::fixed(Instant::now()), base).await;
    start?;
    let left: usize = ends.iter().map(|(_, spool, _)| spool.len()).sum();
    // The last try may have brought what the first ones did not.
    let said = |(name, spool, problem): (String, Arc<Spool>, Option<String>)| {
        problem.filter(|_| !spool.is_empty()).map(|problem| format!("{name}: {problem}"))
    };
    let mut problems: Vec<String> = ends.into_iter().filter_map(said).collect();
    if unclaimed.is_none() {
        problems.push("what else is stored could not be listed in time".to_owned());
    }
    let unclaimed = unclaimed.unwrap_or_default();
    problems.extend(unclaimed.iter().map(ToString::to_string));
    let left = left + unclaimed.iter().map(|folder| folder.requests).sum::<usize>();
    Ok(Flushed { left, problems, ..counts(&base.counters) })
}

/// The signals of the pipelines that name the exporter.
fn signals(root: &Node, id: &str) -> Vec<Signal> {
    let pipelines = root.get("service").and_then(|service| service.get("pipelines")).and_then(Node::entries);
    let names = |entry: &&Entry| match entry.node.get("exporters").map(|node| &node.value) {
        Some(Value::List(items)) => items.iter().any(|item| item.as_text() == Some(id)),
        _ => false,
    };
    let of = |entry: &Entry| {
        let word = entry.key.split('/').next().unwrap_or_default();
        Signal::ALL.into_iter().find(|signal| signal.name() == word)
    };
    let found: BTreeSet<Signal> = pipelines.unwrap_or_default().iter().filter(names).filter_map(of).collect();
    found.into_iter().collect()
}

fn counts(counters: &Counters) -> Flushed {
    let mut flushed = Flushed::default();
    for (_, _, tally, count) in counters.all() {
        match tally {
            Tally::Sent => flushed.sent += count,
            Tally::Rejected => flushed.rejected += count,
            Tally::Dropped(_) => flushed.dropped += count,
            _ => {}
        }
    }
    flushed
}
