//! The instruments: names, units, descriptions and scopes of the reference collector (v0.161.0), and gymrun's own.

use InstrumentKind::{Counter, Gauge, Histogram, UpDown};

use crate::otlp::Signal;

/// How much is told: `service.telemetry.metrics.level`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Nothing.
    None,
    /// What everybody needs.
    Basic,
    /// Batches too.
    #[default]
    Normal,
    /// Sizes in bytes too.
    Detailed,
}

/// What kind of number it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstrumentKind {
    /// Only grows.
    Counter,
    /// Grows and shrinks, and can be added up.
    UpDown,
    /// A value of this moment.
    Gauge,
    /// Counts in buckets.
    Histogram,
}

/// One instrument.
#[derive(Debug)]
pub struct Instrument {
    /// As OTLP has it.
    pub name: &'static str,
    /// For people.
    pub description: &'static str,
    /// UCUM.
    pub unit: &'static str,
    /// What kind of number it is.
    pub kind: InstrumentKind,
    /// The instrumentation scope.
    pub scope: &'static str,
    /// From this level on.
    pub least: Detail,
}

const SERVICE: &str = "go.opentelemetry.io/collector/service";
const RECEIVER: &str = "go.opentelemetry.io/collector/receiver/receiverhelper";
const EXPORTER: &str = "go.opentelemetry.io/collector/exporter/exporterhelper";
const PROCESSOR: &str = "go.opentelemetry.io/collector/processor/processorhelper";
const BATCH: &str = "go.opentelemetry.io/collector/processor/batchprocessor";
const LIMITER: &str = "go.opentelemetry.io/collector/processor/memorylimiterprocessor";
const FILTER: &str = "github.com/open-telemetry/opentelemetry-collector-contrib/processor/filterprocessor";
const OURS: &str = "gymrun";

const fn new(
    scope: &'static str,
    kind: InstrumentKind,
    name: &'static str,
    unit: &'static str,
    description: &'static str,
) -> Instrument {
    Instrument { name, description, unit, kind, scope, least: Detail::Basic }
}

const fn from(least: Detail, instrument: &Instrument) -> Instrument {
    Instrument { least, ..*instrument }
}

/// One counter for each signal, in the order of [`Signal::ALL`]; the description has the word for the items in it.
macro_rules! by_signal {
    ($scope:expr, $prefix:literal, $before:literal, $after:literal) => {
        [
            new($scope, Counter, concat!($prefix, "spans"), "{span}", concat!($before, "spans", $after)),
            new(
                $scope,
                Counter,
                concat!($prefix, "metric_points"),
                "{datapoint}",
                concat!($before, "metric points", $after),
            ),
            new($scope, Counter, concat!($prefix, "log_records"), "{record}", concat!($before, "log records", $after)),
        ]
    };
}

/// Taken by the pipelines.
pub static ACCEPTED: [Instrument; 3] =
    by_signal!(RECEIVER, "otelcol_receiver_accepted_", "Number of ", " successfully pushed into the pipeline. [Alpha]");
/// Not taken by the pipelines.
pub static REFUSED: [Instrument; 3] = by_signal!(
    RECEIVER,
    "otelcol_receiver_refused_",
    "Number of ",
    " that could not be pushed into the pipeline. [Alpha]"
);
/// Always 0, as in the reference unless a feature gate is on: what fails is refused.
pub static FAILED: [Instrument; 3] = by_signal!(
    RECEIVER,
    "otelcol_receiver_failed_",
    "The number of ",
    " that failed to be processed by the receiver due to internal errors. [Alpha]"
);
/// Accepted by an endpoint or file.
pub static SENT: [Instrument; 3] = [
    new(
        EXPORTER,
        Counter,
        "otelcol_exporter_sent_spans",
        "{span}",
        "Number of spans successfully sent to destination. [Alpha]",
    ),
    new(
        EXPORTER,
        Counter,
        "otelcol_exporter_sent_metric_points",
        "{datapoint}",
        "Number of metric points successfully sent to destination. [Alpha]",
    ),
    new(
        EXPORTER,
        Counter,
        "otelcol_exporter_sent_log_records",
        "{record}",
        // Without its `s`, as there.
        "Number of log record successfully sent to destination. [Alpha]",
    ),
];
/// Given up.
pub static SEND_FAILED: [Instrument; 3] = by_signal!(
    EXPORTER,
    "otelcol_exporter_send_failed_",
    "Number of ",
    " in failed attempts to send to destination. At detailed telemetry level, includes attributes: error.type (semantic convention), error.permanent. [Alpha]"
);
/// Not taken by a sending queue.
pub static ENQUEUE_FAILED: [Instrument; 3] = by_signal!(
    EXPORTER,
    "otelcol_exporter_enqueue_failed_",
    "Number of ",
    " failed to be added to the sending queue. [Alpha]"
);
/// Requests under way, pauses between tries included.
pub static IN_FLIGHT: Instrument = new(
    EXPORTER,
    UpDown,
    "otelcol_exporter_in_flight_requests",
    "{request}",
    "Number of export requests currently in-flight (including retry backoff). [Development]",
);
/// What a sending queue holds, as its sizer counts.
pub static QUEUE_SIZE: Instrument = new(
    EXPORTER,
    Gauge,
    "otelcol_exporter_queue_size",
    "{batch}",
    "Current size of the retry queue (in batches). [Alpha]",
);
/// What a sending queue can hold.
pub static QUEUE_CAPACITY: Instrument = new(
    EXPORTER,
    Gauge,
    "otelcol_exporter_queue_capacity",
    "{batch}",
    "Fixed capacity of the retry queue (in batches). [Alpha]",
);
/// Into a processor.
pub static INCOMING: Instrument = new(
    PROCESSOR,
    Counter,
    "otelcol_processor_incoming_items",
    "{item}",
    "Number of items passed to the processor. [Alpha]",
);
/// Out of a processor.
pub static OUTGOING: Instrument = new(
    PROCESSOR,
    Counter,
    "otelcol_processor_outgoing_items",
    "{item}",
    "Number of items emitted from the processor. [Alpha]",
);
/// Let through.
pub static LIMITER_ACCEPTED: [Instrument; 3] = by_signal!(
    LIMITER,
    "otelcol_processor_memory_limiter_accepted_",
    "Number of ",
    " successfully pushed into the next component in the pipeline. [Alpha]"
);
/// Refused for want of memory.
pub static LIMITER_REFUSED: [Instrument; 3] = by_signal!(
    LIMITER,
    "otelcol_processor_memory_limiter_refused_",
    "Number of ",
    " that were rejected by the next component in the pipeline. [Alpha]"
);
/// Dropped because it was asked for.
pub static FILTERED: [Instrument; 3] = [
    new(
        FILTER,
        Counter,
        "otelcol_processor_filter_spans.filtered",
        "1",
        "Number of spans dropped by the filter processor [Development]",
    ),
    new(
        FILTER,
        Counter,
        "otelcol_processor_filter_datapoints.filtered",
        "1",
        "Number of metric data points dropped by the filter processor [Development]",
    ),
    new(
        FILTER,
        Counter,
        "otelcol_processor_filter_logs.filtered",
        "1",
        "Number of logs dropped by the filter processor [Development]",
    ),
];
/// Items of each batch.
pub static BATCH_SIZE: Instrument = from(
    Detail::Normal,
    &new(
        BATCH,
        Histogram,
        "otelcol_processor_batch_batch_send_size",
        "{unit}",
        "Number of units in the batch [Development]",
    ),
);
/// Bytes of each batch.
pub static BATCH_BYTES: Instrument = from(
    Detail::Detailed,
    &new(
        BATCH,
        Histogram,
        "otelcol_processor_batch_batch_send_size_bytes",
        "By",
        "Number of bytes in batch that was sent. Only available on detailed level. [Development]",
    ),
);
/// Batches that were full.
pub static BATCH_BY_SIZE: Instrument = from(
    Detail::Normal,
    &new(
        BATCH,
        Counter,
        "otelcol_processor_batch_batch_size_trigger_send",
        "{time}",
        "Number of times the batch was sent due to a size trigger [Development]",
    ),
);
/// Batches whose time was up.
pub static BATCH_BY_TIME: Instrument = from(
    Detail::Normal,
    &new(
        BATCH,
        Counter,
        "otelcol_processor_batch_timeout_trigger_send",
        "{time}",
        "Number of times the batch was sent due to a timeout trigger [Development]",
    ),
);
/// One for each pipeline with this batch: metadata do not tell batches apart here.
pub static BATCH_CARDINALITY: Instrument = from(
    Detail::Normal,
    &new(
        BATCH,
        UpDown,
        "otelcol_processor_batch_metadata_cardinality",
        "{combination}",
        "Number of distinct metadata value combinations being processed [Development]",
    ),
);
/// Since the process began.
pub static UPTIME: Instrument = new(SERVICE, Counter, "otelcol_process_uptime", "s", "Uptime of the process [Alpha]");
/// User and system time.
pub static CPU: Instrument =
    new(SERVICE, Counter, "otelcol_process_cpu_seconds", "s", "Total CPU user and system time in seconds [Alpha]");
/// Resident memory.
pub static MEMORY: Instrument =
    new(SERVICE, Gauge, "otelcol_process_memory_rss", "By", "Total physical memory (resident set size) [Alpha]");

const fn ours(name: &'static str, kind: InstrumentKind, description: &'static str) -> Instrument {
    new(OURS, kind, name, "{item}", description)
}

/// The counts of `delivery.json`, by component and signal.
pub static RECEIVED_ITEMS: Instrument =
    ours("gym.collector.received", Counter, "Items that a receiver or connector put into the pipelines");
/// The same.
pub static REFUSED_ITEMS: Instrument = ours("gym.collector.refused", Counter, "Items that the pipelines did not take");
/// The same.
pub static WRITTEN_ITEMS: Instrument = ours("gym.collector.written", Counter, "Items written to a file");
/// The same.
pub static SENT_ITEMS: Instrument = ours("gym.collector.sent", Counter, "Items that an endpoint accepted");
/// The same.
pub static REJECTED_ITEMS: Instrument =
    ours("gym.collector.rejected", Counter, "Items that an endpoint left out of what it accepted");
/// The same.
pub static STORED_ITEMS: Instrument = ours("gym.collector.stored", UpDown, "Items kept on disk, to be sent later");
/// The same.
pub static RESUMED_ITEMS: Instrument =
    ours("gym.collector.resumed", Counter, "Items that an earlier collector stored and this one found");
/// The same, by reason too.
pub static DROPPED_ITEMS: Instrument = ours("gym.collector.dropped", Counter, "Items that were lost, by reason");

/// The instrument of this signal.
#[must_use]
pub fn of(all: &'static [Instrument; 3], signal: Signal) -> &'static Instrument {
    &all[signal as usize]
}
