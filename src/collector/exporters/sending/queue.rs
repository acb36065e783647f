//! `sending_queue`.

use std::time::Duration;

use crate::collector::config::section::Section;
use crate::diag::Problem;
use crate::otlp::Payload;

/// What may wait and be under way, and how it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::collector::exporters) struct Queue {
    /// What `size` counts.
    pub sizer: Sizer,
    /// The most that waits or is being sent.
    pub size: u64,
    /// Requests sent at once.
    pub consumers: usize,
    /// Whether a full queue makes its source wait, instead of refusing.
    pub block: bool,
    /// Whether the source waits until its data was sent.
    pub wait_for_result: bool,
    /// Whether requests are joined.
    pub batch: Option<Batch>,
    /// The id of the extension that keeps what cannot be sent.
    pub storage: Option<String>,
}

/// How requests are joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::collector::exporters) struct Batch {
    /// What the sizes count: items or bytes.
    pub sizer: Sizer,
    /// How long data may wait for more.
    pub flush_timeout: Duration,
    /// From this size on it is sent.
    pub least: u64,
    /// The greatest size of one request; 0 is any.
    pub most: u64,
}

/// A measure of payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::collector::exporters) enum Sizer {
    /// Each is one.
    Requests,
    /// Spans, data points, log records.
    Items,
    /// Bytes of protobuf.
    Bytes,
}

impl Sizer {
    fn read(section: &mut Section<'_>) -> Option<Self> {
        section.word("sizer", &["requests", "items", "bytes"]).map(|word| match word {
            "requests" => Self::Requests,
            "items" => Self::Items,
            _ => Self::Bytes,
        })
    }

    /// The size of a payload.
    pub fn measure(self, payload: &Payload) -> u64 {
        match self {
            Self::Requests => 1,
            Self::Items => payload.item_count() as u64,
            Self::Bytes => payload.size() as u64,
        }
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            sizer: Sizer::Requests,
            size: 1000,
            consumers: 10,
            block: false,
            wait_for_result: false,
            batch: None,
            storage: None,
        }
    }
}

impl Queue {
    /// `sending_queue` of a section; `None`: each payload is sent while its source waits.
    pub fn read(section: &mut Section<'_>) -> Option<Self> {
        if !section.has("sending_queue") {
            return Some(Self::default());
        }
        section.section("sending_queue", read).unwrap_or_default()
    }
}

fn read(section: &mut Section<'_>) -> Option<Queue> {
    let defaults = Queue::default();
    let enabled = section.boolean("enabled").unwrap_or(true);
    let given = Sizer::read(section);
    let sizer = given.unwrap_or(defaults.sizer);
    let positive = |value: i64| u64::try_from(value).unwrap_or(1);
    // The values of a queue that there is not are not looked at.
    let least = if enabled { 1 } else { i64::MIN };
    let size = section.integer("queue_size", least).map_or(defaults.size, positive);
    let consumers = section.integer("num_consumers", least).and_then(|count| usize::try_from(count).ok());
    let block = section.boolean("block_on_overflow").unwrap_or(false);
    let wait_for_result = section.boolean("wait_for_result").unwrap_or(false);
    let storage = section.text("storage").filter(|id| !id.is_empty());
    if enabled && storage.is_some() && wait_for_result {
        section.problem("wait_for_result", Problem::new("`wait_for_result` does not go together with `storage`"));
    }
    // A batch without keys of its own counts items, whatever the queue counts.
    let bare = section.node("batch").is_some_and(|node| node.entries().is_some_and(<[_]>::is_empty));
    let inherited = given.filter(|_| !bare).unwrap_or(Sizer::Items);
    let batch = if section.has("batch") {
        section.section("batch", |batch| read_batch(batch, inherited)).flatten()
    } else {
        None
    };
    if let Some(batch) = batch.as_ref().filter(|batch| enabled && batch.sizer == sizer && batch.least > size) {
        let message = format!("`min_size` of `batch` ({}) is greater than `queue_size` ({size})", batch.least);
        section.problem("batch", Problem::new(message));
    }
    let consumers = consumers.unwrap_or(defaults.consumers);
    enabled.then_some(Queue { sizer, size, consumers, block, wait_for_result, batch, storage })
}

fn read_batch(section: &mut Section<'_>, inherited: Sizer) -> Option<Batch> {
    let enabled = section.boolean("enabled").unwrap_or(true);
    let sizer = Sizer::read(section).unwrap_or(inherited);
    if sizer == Sizer::Requests {
        section.problem("sizer", Problem::new("`batch` counts `items` or `bytes`, not `requests`"));
    }
    let flush_timeout = section.duration("flush_timeout").unwrap_or(Duration::from_millis(200));
    if flush_timeout.is_zero() {
        section.problem("flush_timeout", Problem::new("`flush_timeout` must be greater than 0"));
    }
    let mut size = |key| section.integer(key, 0).and_then(|size| u64::try_from(size).ok());
    let (least, most) = (size("min_size").unwrap_or(8192), size("max_size").unwrap_or(0));
    if most > 0 && most < least {
        let message = format!("`max_size` ({most}) is below `min_size` ({least})");
        section.problem("max_size", Problem::new(message));
    }
    section.section("partition", |partition| {
        if partition.texts("metadata_keys").is_some_and(|keys| !keys.is_empty()) {
            let problem = Problem::new("`metadata_keys` is not supported by this collector");
            partition.problem("metadata_keys", problem.hint("it keeps no metadata of its clients"));
        }
    });
    enabled.then_some(Batch { sizer, flush_timeout, least, most })
}
