//! Configurations that cannot be wired, and the order in which those that can are started and stopped.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::component::{
    Built, Connector, Consumer, Context, Exporter, Extension, Next, Outputs, Processor, Receiver, Refusal, Running,
    Signals, Stateless,
};
use super::deadline::Deadline;
use super::fuzzing::load_config;
use super::graph::Graph;
use super::own::Meters;
use super::testing::{context, eventually, spans};
use crate::collector::config::load::read_text;
use crate::collector::config::pipelines::Pipeline;
use crate::collector::config::section::Findings;
use crate::collector::config::{Components, Config, Declared};
use crate::diag::{Problem, Problems};
use crate::otlp::{Payload, Signal};

fn problems(yaml: &str) -> Vec<String> {
    let findings = Findings::new("c.yaml");
    let root = read_text(yaml, &|_| None, &findings).expect("YAML");
    match Config::from_node(&root, Vec::new(), findings) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(|p| format!("{} {}", p.location, p.message)).collect(),
    }
}

const PARTS: &str =
    "receivers: {otlp: {protocols: {http: }}}\nexporters: {nop: }\nconnectors: {forward: , span_metrics: }\n";

#[test]
fn what_cannot_be_wired() {
    for (pipelines, words) in [
        ("{traces: {receivers: [otlp, forward], exporters: [nop, forward]}}", "form a cycle"),
        (
            "{traces/a: {receivers: [otlp, forward], exporters: [nop, forward]}, \
             traces/b: {receivers: [forward], exporters: [forward]}}",
            "traces/a, traces/b form a cycle",
        ),
        ("{traces: {receivers: [otlp], exporters: [forward]}}", "`forward` is an exporter of `traces`"),
        ("{logs: {receivers: [forward], exporters: [nop]}}", "`forward` is a receiver of `logs`"),
        (
            "{metrics: {receivers: [otlp, span_metrics], exporters: [nop]}, \
             logs: {receivers: [otlp], exporters: [span_metrics]}}",
            "from which it can give metrics",
        ),
        ("{traces: {receivers: [otlp]}}", "`traces` has no exporter"),
        ("{traces: {exporters: [nop]}}", "`traces` has no receiver"),
        ("{traces: {receivers: [otpl], exporters: [nop]}}", "`otpl` is not declared"),
        ("{}", "no pipeline"),
    ] {
        let found = problems(&format!("{PARTS}service:\n  pipelines: {pipelines}\n"));
        assert!(found.iter().any(|problem| problem.contains(words)), "{words}: {found:?}");
        assert!(found.iter().all(|problem| problem.starts_with("c.yaml:")), "{found:?}");
    }
}

#[test]
fn ids_are_checked_and_ambiguous_ones_refused() {
    let found = problems(
        "receivers: {otlp/: {protocols: {http: }}, 1x: }\nexporters: {nop: , forward: }\nconnectors: {forward: }\n\
         service: {pipelines: {traces: {receivers: [otlp/], exporters: [nop]}}, extensions: [health_check]}\n",
    );
    for words in ["`otlp/` is no id", "`1x` is no id", "`forward` is ambiguous", "`health_check` is not declared"] {
        assert!(found.iter().any(|problem| problem.contains(words)), "{words}: {found:?}");
    }
}

/// Notes what happens to it; passes payloads on if it has a next part.
#[derive(Clone)]
struct Part {
    name: &'static str,
    events: Arc<Mutex<Vec<String>>>,
    next: Option<Next>,
}

impl Part {
    fn new(name: &'static str, events: &Arc<Mutex<Vec<String>>>) -> Self {
        Self { name, events: events.clone(), next: None }
    }

    fn note(&self, what: &str) {
        self.events.lock().expect("lock").push(format!("{what} {}", self.name));
    }

    fn built(&self, next: Option<Next>) -> Built {
        self.note("start");
        let part = Self { next, ..self.clone() };
        Built { consumer: Arc::new(part.clone()), running: Box::new(part) }
    }
}

impl Consumer for Part {
    fn consume(&self, payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move {
            self.note(&format!("{} items to", payload.item_count()));
            match &self.next {
                Some(next) => next.consume(payload).await,
                None => Ok(()),
            }
        })
    }
}

impl Running for Part {
    fn shutdown(self: Box<Self>, deadline: Deadline) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.note("stop");
            if self.name == "stuck" {
                tokio::time::sleep_until(deadline.at() + std::time::Duration::from_mins(1)).await;
            }
            if let Some(next) = self.next {
                // What it held.
                let _ = next.consume(spans(1)).await;
            }
        })
    }
}

impl Extension for Part {
    fn start(self: Box<Self>, _context: Context) -> BoxFuture<'static, Result<Box<dyn Running>, Problem>> {
        self.note("start");
        Box::pin(std::future::ready(Ok(self as Box<dyn Running>)))
    }
}

impl Exporter for Part {
    fn start(self: Box<Self>, _context: Context, signals: &[Signal]) -> BoxFuture<'static, Result<Built, Problem>> {
        assert_eq!(signals, [Signal::Traces]);
        Box::pin(std::future::ready(Ok(self.built(None))))
    }
}

impl Processor for Part {
    fn build(&self, _context: Context, _signal: Signal, next: Next) -> Result<Built, Problem> {
        Ok(self.built(Some(next)))
    }
}

impl Connector for Part {
    fn build(&self, _context: Context, _from: Signal, _to: Signal, next: Next) -> Result<Built, Problem> {
        Ok(self.built(Some(next)))
    }
}

impl Receiver for Part {
    fn start(
        mut self: Box<Self>,
        _context: Context,
        outputs: Outputs,
    ) -> BoxFuture<'static, Result<Box<dyn Running>, Problem>> {
        self.note("start");
        assert!(outputs.get(Signal::Metrics).is_none());
        self.next = outputs.get(Signal::Traces).cloned();
        Box::pin(std::future::ready(Ok(self as Box<dyn Running>)))
    }
}

fn declared<C: ?Sized>(id: &str, component: Box<C>) -> Declared<C> {
    let signals = Signals::Between(&[(Signal::Traces, Signal::Traces)]);
    Declared { id: id.to_owned(), line: 1, signals, component: Some(component) }
}

fn pipeline(id: &str, lists: [&[&str]; 5]) -> Pipeline {
    let [receivers, fed_by, processors, exporters, feeds] =
        lists.map(|list| list.iter().map(|id| (*id).to_owned()).collect());
    Pipeline { id: id.to_owned(), signal: Signal::Traces, receivers, fed_by, processors, exporters, feeds }
}

/// One receiver into two pipelines, one of which feeds a third through a connector.
fn wired(exporter: &'static str, events: &Arc<Mutex<Vec<String>>>) -> Config {
    let components = Components {
        receivers: vec![declared("receiver", Box::new(Part::new("receiver", events)) as Box<dyn Receiver>)],
        processors: vec![declared("processor", Box::new(Part::new("processor", events)) as Box<dyn Processor>)],
        exporters: vec![
            declared("exporter", Box::new(Part::new(exporter, events)) as Box<dyn Exporter>),
            declared("unused", Box::new(Part::new("unused", events)) as Box<dyn Exporter>),
        ],
        connectors: vec![declared("connector", Box::new(Part::new("connector", events)) as Box<dyn Connector>)],
        extensions: vec![declared("extension", Box::new(Part::new("extension", events)) as Box<dyn Extension>)],
    };
    Config {
        components,
        extensions: vec!["extension".to_owned()],
        pipelines: vec![
            pipeline("traces/plain", [&["receiver"], &[], &[], &["exporter"], &[]]),
            pipeline("traces/first", [&["receiver"], &[], &["processor"], &[], &["connector"]]),
            pipeline("traces/second", [&[], &["connector"], &[], &["exporter"], &[]]),
        ],
        telemetry: super::own::Telemetry::default(),
        credentials: Vec::new(),
        warnings: Problems::new(),
        secrets: crate::collector::config::secrets::Secrets::default(),
    }
}

fn no_report() -> Payload {
    Payload::new(Signal::Metrics)
}

#[tokio::test]
async fn started_from_the_end_stopped_from_the_beginning_and_drained_on_the_way() {
    let events = Arc::default();
    let base = context("collector");
    let mut graph = Graph::start(wired("exporter", &events), base.clone(), pending()).await.ok().expect("starts");
    let deadline = Deadline::fixed(Instant::now() + std::time::Duration::from_secs(5));
    graph.stop(&deadline, &base, &no_report).await;
    graph.stop_extensions(&deadline, &base).await;
    assert_eq!(
        *events.lock().expect("lock"),
        [
            "start extension",
            "start exporter",
            "start connector",
            "start processor",
            "start receiver",
            "stop receiver",
            // One payload into both pipelines, side by side; what the exporter gets comes once by each way.
            "1 items to exporter",
            "1 items to processor",
            "1 items to connector",
            "1 items to exporter",
            "stop processor",
            "1 items to connector",
            "1 items to exporter",
            "stop connector",
            "1 items to exporter",
            "stop exporter",
            "stop extension",
        ]
    );
    let counters = &base.counters;
    assert_eq!(counters.total(Signal::Traces, &super::counters::Tally::Received), 4);
}

#[tokio::test]
async fn who_does_not_stop_is_named_and_left_behind() {
    let events = Arc::default();
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = lines.clone();
    let mut base = context("collector");
    base.log = super::log::Log::new(
        Arc::new(move |line: &str| sink.lock().expect("lock").push(line.to_owned())),
        super::log::Level::Info,
    );
    let mut graph = Graph::start(wired("stuck", &events), base.clone(), pending()).await.ok().expect("starts");
    graph.stop(&Deadline::fixed(Instant::now() + std::time::Duration::from_millis(20)), &base, &no_report).await;
    let lines = lines.lock().expect("lock");
    assert!(lines.iter().any(|line| line.contains("exporters/exporter did not stop in time")), "{lines:?}");
}

/// Gives a test what a receiver hands in to.
struct Door(Arc<Mutex<Outputs>>);

impl Receiver for Door {
    fn start(
        self: Box<Self>,
        _context: Context,
        outputs: Outputs,
    ) -> BoxFuture<'static, Result<Box<dyn Running>, Problem>> {
        *self.0.lock().expect("lock") = outputs;
        Box::pin(std::future::ready(Ok(Box::new(Stateless) as Box<dyn Running>)))
    }
}

/// An exporter that takes all and has dealt with none of it; it keeps whether it was asked.
#[derive(Clone, Default)]
struct Slow(Arc<AtomicBool>);

impl Exporter for Slow {
    fn start(self: Box<Self>, _context: Context, _: &[Signal]) -> BoxFuture<'static, Result<Built, Problem>> {
        Box::pin(std::future::ready(Ok(Built::stateless(*self))))
    }
}

impl Consumer for Slow {
    fn consume(&self, _payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        self.0.store(true, Ordering::Relaxed);
        Box::pin(pending())
    }
}

/// Whatever hands on asks the next one, with and without somebody who counts in between.
#[tokio::test]
async fn a_slow_exporter_holds_back_what_is_in_front_of_processors_and_connectors() {
    for pipelines in [
        "{traces: {receivers: [otlp], processors: [batch, resource], exporters: [nop]}}",
        "{traces/a: {receivers: [otlp], processors: [batch], exporters: [forward]}, \
         traces/b: {receivers: [forward], processors: [resource], exporters: [nop]}}",
        "{traces/a: {receivers: [otlp], processors: [batch], exporters: [forward]}, \
         traces/b: {receivers: [forward], exporters: [forward/b]}, \
         traces/c: {receivers: [forward/b], exporters: [nop]}}",
    ] {
        for is_watched in [false, true] {
            let text = format!(
                "receivers: {{otlp: {{protocols: {{http: }}}}}}\nexporters: {{nop: }}\n\
                 processors: {{batch: {{send_batch_size: 1}}, resource: {{attributes: [{{key: a, value: b, action: upsert}}]}}}}\n\
                 connectors: {{forward: , forward/b: }}\nservice: {{pipelines: {pipelines}}}\n"
            );
            let mut config = load_config(&text, &|_| None).expect("a configuration");
            let (door, slow) = (Arc::default(), Slow::default());
            config.components.receivers[0].component = Some(Box::new(Door(Arc::clone(&door))));
            config.components.exporters[0].component = Some(Box::new(slow.clone()));
            let base = context("collector");
            if is_watched {
                base.shared.get::<Meters>().want();
            }
            let mut graph = Graph::start(config, base.clone(), pending()).await.ok().expect("starts");
            let head = door.lock().expect("lock").get(Signal::Traces).cloned().expect("an output");
            // As much as a batch waits for.
            head.consume(spans(50_000)).await.expect("takes");
            eventually(|| slow.0.load(Ordering::Relaxed)).await;
            assert!(head.ready().now_or_never().is_none(), "{pipelines}");
            let deadline = Deadline::fixed(Instant::now() + std::time::Duration::from_secs(5));
            graph.stop(&deadline, &base, &no_report).await;
        }
    }
}
