//! The ids of the job's trace, and its spans.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags, TraceId,
    TraceState, Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SdkTracer, SdkTracerProvider, Span};

use crate::events::{Event, EventKind};
use crate::plan::{COLLECTOR, Kind, Plan};

/// Trace id and root span id of a job, made before anything runs.
#[derive(Clone, Copy, Debug)]
pub struct JobTrace {
    trace: TraceId,
    root: SpanId,
}

impl JobTrace {
    /// New random ids.
    #[must_use]
    pub fn new() -> Self {
        let random = RandomIdGenerator::default();
        Self { trace: random.new_trace_id(), root: random.new_span_id() }
    }

    /// W3C `traceparent`, sampled.
    #[must_use]
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-01", self.trace, self.root)
    }

    fn context(&self) -> Context {
        let span = SpanContext::new(self.trace, self.root, TraceFlags::SAMPLED, true, TraceState::default());
        Context::new().with_remote_span_context(span)
    }
}

impl Default for JobTrace {
    fn default() -> Self {
        Self::new()
    }
}

/// Gives the prepared ids to the first span, which is the root, and random ones to the rest.
#[derive(Debug)]
pub(super) struct JobIds {
    job: JobTrace,
    root_given: AtomicBool,
    random: RandomIdGenerator,
}

impl JobIds {
    pub(super) fn new(job: JobTrace) -> Self {
        Self { job, root_given: AtomicBool::new(false), random: RandomIdGenerator::default() }
    }
}

impl IdGenerator for JobIds {
    fn new_trace_id(&self) -> TraceId {
        self.job.trace
    }

    fn new_span_id(&self) -> SpanId {
        if self.root_given.swap(true, Ordering::Relaxed) { self.random.new_span_id() } else { self.job.root }
    }
}

/// The spans of a job, made from its events.
#[derive(Debug)]
pub(super) struct Spans {
    tracer: SdkTracer,
    parent: Context,
    root: Span,
    /// The first event: the only reading of the wall clock. What comes later comes that much later, whatever becomes of
    /// the clock meanwhile.
    origin: (SystemTime, Duration),
    /// The last event, and when it was seen.
    last: (SystemTime, Instant),
    stopping: Option<SystemTime>,
    starts: HashMap<String, (SystemTime, Kind)>,
}

impl Spans {
    /// Opens the root span at the job's start.
    pub(super) fn open(provider: &SdkTracerProvider, job: JobTrace, plan: &Plan, first: Option<&Event>) -> Self {
        let started = first.map_or_else(SystemTime::now, wall);
        let tracer = provider.tracer("gymrun");
        let root = tracer.build_with_context(
            SpanBuilder::from_name("gymrun.job")
                .with_kind(SpanKind::Internal)
                .with_start_time(started)
                .with_attributes([
                    KeyValue::new("gymrun.job.name", plan.name.clone()),
                    KeyValue::new("gymrun.job.id", plan.job_id.clone()),
                ]),
            &Context::new(),
        );
        Self {
            tracer,
            parent: job.context(),
            root,
            origin: (started, first.map_or(Duration::ZERO, |event| event.elapsed)),
            last: (started, Instant::now()),
            stopping: None,
            starts: HashMap::new(),
        }
    }

    /// Makes the spans that end with this event.
    pub(super) fn apply(&mut self, event: &Event) {
        let now = self.origin.0 + event.elapsed.saturating_sub(self.origin.1);
        self.last = (now, Instant::now());
        match &event.kind {
            EventKind::ProcessStarted { process, kind, .. } => {
                self.starts.insert(process.clone(), (now, *kind));
            }
            EventKind::ProcessReady { process, .. } => self.end_start(process, now, None),
            EventKind::ProcessNotReady { process, answer, .. } => {
                self.end_start(process, now, Some(format!("not ready: {answer}")));
            }
            EventKind::ProcessExited { process, status, .. } => {
                if let Some((start, Kind::Driver)) = self.starts.get(process).copied() {
                    self.starts.remove(process);
                    let failure = (!status.success()).then(|| status.to_string());
                    self.span("gymrun.driver", Some(process), start, now, failure);
                } else {
                    self.end_start(process, now, Some(status.to_string()));
                }
            }
            EventKind::LastScrape { seconds, error, .. } => {
                let start = now - Duration::try_from_secs_f64(*seconds).unwrap_or_default();
                self.span("gymrun.last_scrape", None, start, now, error.clone());
            }
            EventKind::Stopping(_) => self.stopping = Some(now),
            _ => {}
        }
    }

    /// Ends what is open; the root last.
    pub(super) fn close(mut self) {
        let now = self.last.0 + self.last.1.elapsed();
        if let Some(start) = self.stopping {
            self.span("gymrun.stop", None, start, now, None);
        }
        self.root.end_with_timestamp(now);
    }

    fn end_start(&mut self, process: &str, now: SystemTime, failure: Option<String>) {
        let Some((start, kind)) = self.starts.get(process).copied() else { return };
        if kind == Kind::Driver {
            return;
        }
        self.starts.remove(process);
        let name = if process == COLLECTOR { "gymrun.collector.start" } else { "gymrun.process.start" };
        self.span(name, Some(process), start, now, failure);
    }

    fn span(
        &self,
        name: &'static str,
        process: Option<&str>,
        start: SystemTime,
        end: SystemTime,
        failure: Option<String>,
    ) {
        let mut builder = SpanBuilder::from_name(name).with_kind(SpanKind::Internal).with_start_time(start);
        if let Some(process) = process {
            builder = builder.with_attributes([KeyValue::new("gymrun.process.name", process.to_owned())]);
        }
        let mut span = self.tracer.build_with_context(builder, &self.parent);
        if let Some(failure) = failure {
            span.set_status(Status::error(failure));
        }
        span.end_with_timestamp(end);
    }
}

/// The wall-clock time of an event.
fn wall(event: &Event) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(u64::try_from(event.time).unwrap_or_default())
}
