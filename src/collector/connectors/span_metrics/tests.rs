//! Tests of the counts and of the connector.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{metric, number_data_point};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message as _;
use tokio::time::Instant;

use super::aggregate::{Aggregator, Dimension, Temporality};
use super::config::{FACTORY, HistogramSettings, Settings};
use super::connector::SpanMetrics;
use crate::collector::component::{Connector as _, Consumer, Context, Next, Refusal, Shared};
use crate::collector::controls::Controls;
use crate::collector::counters::Counters;
use crate::collector::log::{Level, Log};
use crate::collector::node::{Entry, Node, Value};
use crate::collector::section::{Findings, Section};
use crate::otlp::{Payload, Signal};

fn settings() -> Settings {
    Settings {
        namespace: "traces.span.metrics".into(),
        histogram: Some(HistogramSettings { unit: "ms", bounds: vec![10.0, 100.0, 250.0] }),
        dimensions: Vec::new(),
        excluded: [false, false, false, false, true],
        temporality: Temporality::Cumulative,
        flush_interval: Duration::from_mins(1),
        resource_key: Vec::new(),
        resources: 1000,
        cardinality_limit: 0,
        expiration: Duration::ZERO,
    }
}

fn value(value: any_value::Value) -> AnyValue {
    AnyValue { value: Some(value) }
}

fn attribute(key: &str, text: &str) -> KeyValue {
    KeyValue { key: key.into(), value: Some(value(any_value::Value::StringValue(text.into()))), ..KeyValue::default() }
}

fn number(key: &str, number: i64) -> KeyValue {
    KeyValue { key: key.into(), value: Some(value(any_value::Value::IntValue(number))), ..KeyValue::default() }
}

fn span(name: &str, milliseconds: u64) -> Span {
    let start = 1_700_000_000_000_000_000;
    let end = start + milliseconds * 1_000_000;
    Span { name: name.into(), start_time_unix_nano: start, end_time_unix_nano: end, ..Span::default() }
}

fn payload(resources: Vec<(Vec<KeyValue>, Vec<Span>)>) -> Payload {
    let resource_spans = resources
        .into_iter()
        .map(|(attributes, spans)| ResourceSpans {
            resource: Some(Resource { attributes, ..Resource::default() }),
            scope_spans: vec![ScopeSpans { spans, ..ScopeSpans::default() }],
            ..ResourceSpans::default()
        })
        .collect();
    let request = ExportTraceServiceRequest { resource_spans };
    Payload::decode(Signal::Traces, request.encode_to_vec()).expect("valid")
}

fn shop(spans: Vec<Span>) -> Payload {
    payload(vec![(vec![attribute("service.name", "shop")], spans)])
}

fn text(attributes: &[KeyValue]) -> String {
    let text = |value: &KeyValue| match value.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => format!("{}={text}", value.key),
        Some(any_value::Value::IntValue(number)) => format!("{}={number}i", value.key),
        Some(any_value::Value::BoolValue(truth)) => format!("{}={truth}", value.key),
        other => format!("{}={other:?}", value.key),
    };
    attributes.iter().map(text).collect::<Vec<_>>().join(",")
}

/// One line a point: resource, name, attributes, numbers, start and time.
fn lines(payload: &Payload) -> Vec<String> {
    let request = ExportMetricsServiceRequest::decode(payload.encode().as_slice()).expect("valid");
    let mut lines = Vec::new();
    for of in request.resource_metrics {
        let resource = text(&of.resource.expect("resource").attributes);
        for metric in of.scope_metrics.into_iter().flat_map(|scope| scope.metrics) {
            let (name, unit) = (metric.name, metric.unit);
            match metric.data.expect("data") {
                metric::Data::Sum(sum) => {
                    assert!(sum.is_monotonic);
                    for p in sum.data_points {
                        let Some(number_data_point::Value::AsInt(calls)) = p.value else { panic!("no integer") };
                        let (from, to) = (p.start_time_unix_nano, p.time_unix_nano);
                        lines.push(format!(
                            "[{resource}] {name} t{} {{{}}} {calls} {from}-{to}",
                            sum.aggregation_temporality,
                            text(&p.attributes)
                        ));
                    }
                }
                metric::Data::Histogram(histogram) => {
                    for p in histogram.data_points {
                        let sum = p.sum.expect("sum");
                        lines.push(format!(
                            "[{resource}] {name}/{unit} {{{}}} {} {sum} {:?} {:?}",
                            text(&p.attributes),
                            p.count,
                            p.explicit_bounds,
                            p.bucket_counts
                        ));
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }
    lines
}

/// The lines of `calls`, without resource and name.
fn calls(payload: &Payload) -> Vec<String> {
    let marker = "calls t2 ";
    lines(payload).iter().filter_map(|line| line.split_once(marker)).map(|(_, rest)| rest.to_owned()).collect()
}

#[test]
fn counts_and_durations_grow_from_one_start() {
    let mut aggregator = Aggregator::new(settings(), "i".into());
    aggregator.take(&shop(vec![span("a", 50), span("a", 5), span("b", 300)]), 10);
    let a = "{service.name=shop,span.name=a,span.kind=SPAN_KIND_UNSPECIFIED,status.code=STATUS_CODE_UNSET}";
    let b = a.replace("name=a", "name=b");
    assert_eq!(
        lines(&aggregator.flush(20)),
        [
            format!("[service.name=shop] traces.span.metrics.calls t2 {a} 2 10-20"),
            format!("[service.name=shop] traces.span.metrics.calls t2 {b} 1 10-20"),
            format!("[service.name=shop] traces.span.metrics.duration/ms {a} 2 55 [10.0, 100.0, 250.0] [1, 1, 0, 0]"),
            format!("[service.name=shop] traces.span.metrics.duration/ms {b} 1 300 [10.0, 100.0, 250.0] [0, 0, 0, 1]"),
        ]
    );
    aggregator.take(&shop(vec![span("a", 10)]), 25);
    let flushed = aggregator.flush(30);
    assert_eq!(calls(&flushed), [format!("{a} 3 10-30"), format!("{b} 1 10-30")]);
    assert!(lines(&flushed)[2].ends_with("3 65 [10.0, 100.0, 250.0] [2, 1, 0, 0]"), "bounds belong to their bucket");
    // Without new spans the same is said again.
    assert!(!aggregator.changed());
    assert_eq!(calls(&aggregator.flush(40)), [format!("{a} 3 10-40"), format!("{b} 1 10-40")]);
}

#[test]
fn delta_counts_each_interval_alone() {
    let mut aggregator = Aggregator::new(Settings { temporality: Temporality::Delta, ..settings() }, "i".into());
    aggregator.take(&shop(vec![span("a", 1), span("a", 1)]), 10);
    assert!(lines(&aggregator.flush(20))[0].ends_with(" 2 10-20"));
    aggregator.take(&shop(vec![span("a", 1)]), 25);
    let flushed = lines(&aggregator.flush(30));
    assert!(flushed[0].contains(" t1 ") && flushed[0].ends_with(" 1 20-30"), "{flushed:?}");
    assert!(lines(&aggregator.flush(40)).is_empty());
}

#[test]
fn kinds_status_codes_and_backward_times() {
    let mut aggregator = Aggregator::new(settings(), "i".into());
    let mut backward = span("k", 5);
    std::mem::swap(&mut backward.start_time_unix_nano, &mut backward.end_time_unix_nano);
    let mut odd = span("k", 1);
    (odd.kind, odd.status) = (99, Some(Status { code: 7, ..Status::default() }));
    let mut server = span("k", 1);
    (server.kind, server.status) = (2, Some(Status { code: 2, ..Status::default() }));
    aggregator.take(&shop(vec![backward, odd, server]), 1);
    let flushed = aggregator.flush(2);
    assert_eq!(
        calls(&flushed),
        [
            "{service.name=shop,span.name=k,span.kind=SPAN_KIND_UNSPECIFIED,status.code=STATUS_CODE_UNSET} 1 1-2",
            "{service.name=shop,span.name=k,span.kind=,status.code=} 1 1-2",
            "{service.name=shop,span.name=k,span.kind=SPAN_KIND_SERVER,status.code=STATUS_CODE_ERROR} 1 1-2",
        ]
    );
    assert!(lines(&flushed)[3].contains("} 1 0 [10.0, 100.0, 250.0] [1, 0, 0, 0]"), "a backward span took no time");
}

#[test]
fn dimensions_come_from_the_span_the_resource_or_the_default() {
    let dimension =
        |name: &str, default: Option<&str>| Dimension { name: name.into(), default: default.map(Into::into) };
    let dimensions = vec![dimension("n", None), dimension("env", Some("")), dimension("zone", None)];
    let excluded = [true, false, true, true, true];
    let mut aggregator = Aggregator::new(Settings { dimensions, excluded, ..settings() }, "i".into());
    let with = |list: Vec<KeyValue>| Span { attributes: list, ..span("a", 1) };
    let resource = vec![attribute("service.name", "shop"), attribute("zone", "r")];
    let spans = vec![
        with(vec![number("n", 1), attribute("zone", "s")]),
        with(vec![attribute("n", "1"), attribute("zone", "s")]),
        with(vec![attribute("other", "x")]),
        with(vec![attribute("env", "r")]),
    ];
    aggregator.take(&payload(vec![(resource, spans)]), 1);
    assert_eq!(
        calls(&aggregator.flush(2)),
        ["{span.name=a,n=1i,env=,zone=s} 2 1-2", "{span.name=a,env=,zone=r} 1 1-2", "{span.name=a,env=r,zone=r} 1 1-2",]
    );
}

#[test]
fn spans_that_lack_different_dimensions_are_different_series() {
    let dimensions = ["a", "b"].map(|name| Dimension { name: name.into(), default: None }).into();
    let excluded = [true; 5];
    let mut aggregator = Aggregator::new(Settings { dimensions, excluded, ..settings() }, "i".into());
    let with = |name: &str| Span { attributes: vec![attribute(name, "x")], ..span("s", 1) };
    aggregator.take(&shop(vec![with("a"), with("b")]), 1);
    assert_eq!(calls(&aggregator.flush(2)), ["{a=x} 1 1-2", "{b=x} 1 1-2"]);
}

#[test]
fn resources_are_told_apart_by_their_attributes_in_any_order() {
    let of = |list: &[(&str, &str)]| list.iter().map(|(key, value)| attribute(key, value)).collect::<Vec<_>>();
    let mut aggregator = Aggregator::new(settings(), "i".into());
    // Two producers whose stamped resources are equal are one; without a service name nothing counts.
    aggregator.take(
        &payload(vec![
            (of(&[("service.name", "s"), ("run_id", "1")]), vec![span("a", 1)]),
            (of(&[("run_id", "1"), ("service.name", "s")]), vec![span("a", 1)]),
            (of(&[("service.name", "s"), ("run_id", "2")]), vec![span("a", 1)]),
            (of(&[("run_id", "1")]), vec![span("a", 1)]),
            (vec![number("service.name", 5)], vec![span("odd", 1)]),
        ]),
        1,
    );
    let flushed = lines(&aggregator.flush(2));
    let shown: Vec<_> = flushed.iter().filter(|line| line.contains("calls")).collect();
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert!(shown[0].starts_with("[service.name=s,run_id=1]") && shown[0].ends_with(" 2 1-2"));
    assert!(shown[1].starts_with("[service.name=s,run_id=2]") && shown[1].ends_with(" 1 1-2"));
    assert!(shown[2].contains("{service.name=,span.name=odd"));

    let resource_key = vec!["service.name".to_owned()];
    let mut aggregator = Aggregator::new(Settings { resource_key, ..settings() }, "i".into());
    for pid in ["1", "2"] {
        aggregator.take(&payload(vec![(of(&[("service.name", "s"), ("pid", pid)]), vec![span("a", 1)])]), 1);
    }
    let flushed = lines(&aggregator.flush(2));
    assert!(flushed[0].starts_with("[service.name=s,pid=1]") && flushed[0].ends_with(" 2 1-2"), "{flushed:?}");
}

#[test]
fn three_instances_three_flushes_never_fall() {
    let mut aggregator = Aggregator::new(settings(), "i".into());
    for flush in 1..=3_u64 {
        for instance in 0..3 {
            let resource = vec![attribute("service.name", "evals"), number("process.pid", instance)];
            let spans = (0..10).map(|_| span("a", 1)).collect();
            aggregator.take(&payload(vec![(resource, spans)]), flush * 100);
        }
        let shown = calls(&aggregator.flush(flush * 100 + 50));
        assert_eq!(shown.len(), 3);
        let end = format!(" {} 100-{}", flush * 10, flush * 100 + 50);
        assert!(shown.iter().all(|line| line.ends_with(&end)), "{shown:?}");
    }
}

#[test]
fn limits_of_series_and_resources() {
    let excluded = [true, false, true, true, true];
    let mut aggregator = Aggregator::new(Settings { cardinality_limit: 2, excluded, ..settings() }, "i".into());
    aggregator.take(&shop(["a", "b", "c", "d", "a"].map(|name| span(name, 1)).into()), 1);
    assert_eq!(
        calls(&aggregator.flush(2)),
        ["{span.name=a} 2 1-2", "{span.name=b} 1 1-2", "{otel.metric.overflow=true} 2 1-2",]
    );
    let mut aggregator = Aggregator::new(Settings { resources: 2, ..settings() }, "i".into());
    let service = |name: &str| payload(vec![(vec![attribute("service.name", name)], vec![span("a", 1)])]);
    for (time, name) in ["a", "b", "c"].into_iter().enumerate() {
        aggregator.take(&service(name), time as u64);
    }
    assert_eq!(calls(&aggregator.flush(10)).len(), 3, "nothing is lost before it was handed on");
    assert_eq!(calls(&aggregator.flush(20)).len(), 2);
    let mut aggregator = Aggregator::new(Settings { expiration: Duration::from_nanos(50), ..settings() }, "i".into());
    aggregator.take(&service("a"), 0);
    assert_eq!(calls(&aggregator.flush(10)).len(), 1);
    assert_eq!(calls(&aggregator.flush(60)).len(), 1);
    assert_eq!(calls(&aggregator.flush(70)).len(), 0);
}

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Payload>>>);

impl Consumer for Kept {
    fn consume(&self, payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        self.0.lock().expect("lock").push(payload);
        Box::pin(std::future::ready(Ok(())))
    }
}

#[tokio::test]
async fn the_stop_hands_on_what_came_after_the_last_flush_and_no_more() {
    let context = Context {
        name: "connectors/span_metrics".into(),
        log: Log::new(Arc::new(|_: &str| {}), Level::Info),
        counters: Arc::new(Counters::default()),
        controls: Arc::new(Controls::default()),
        shared: Shared::default(),
    };
    for spans in [2, 0] {
        let kept = Kept::default();
        let connector = SpanMetrics { settings: Settings { excluded: [false; 5], ..settings() } };
        let built = connector.build(context.clone(), Signal::Traces, Signal::Metrics, Next::to(kept.clone()));
        let built = built.expect("built");
        if spans > 0 {
            built.consumer.consume(shop((0..spans).map(|_| span("a", 1)).collect())).await.expect("taken");
        }
        built.running.shutdown(Instant::now() + Duration::from_secs(5)).await;
        let kept = kept.0.lock().expect("lock");
        if spans == 0 {
            assert!(kept.is_empty());
        } else {
            assert_eq!(kept.len(), 1);
            let line = calls(&kept[0]).remove(0);
            let id = line.split_once("collector.instance.id=").expect("id").1;
            let id = id.split_once('}').expect("end").0;
            assert_eq!((id.len(), &id[14..15]), (36, "4"), "{id}");
        }
    }
}

fn node(json: &serde_json::Value) -> Node {
    let value = match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Boolean(*value),
        serde_json::Value::Number(value) => Value::Integer(value.as_i64().unwrap_or_default()),
        serde_json::Value::String(text) => Value::Text(text.clone()),
        serde_json::Value::Array(items) => Value::List(items.iter().map(node).collect()),
        serde_json::Value::Object(map) => {
            Value::Map(map.iter().map(|(key, value)| Entry { key: key.clone(), line: 3, node: node(value) }).collect())
        }
    };
    Node::new(3, value)
}

fn problems(json: &serde_json::Value) -> Vec<String> {
    let findings = Findings::new("c.yaml");
    Section::read(&findings, &node(json), "connectors.span_metrics", 1, FACTORY.configure);
    findings.problems.borrow().iter().map(|problem| format!("{}: {}", problem.path, problem.message)).collect()
}

#[test]
fn the_section() {
    assert!(problems(&serde_json::json!({})).is_empty());
    assert!(
        problems(&serde_json::json!({
            "histogram": { "explicit": { "buckets": ["250ms", "1s", "1m30s"] }, "unit": "s" },
            "dimensions": [{ "name": "service.name.override" }, { "name": "p", "default": "" }],
            "exclude_dimensions": ["status.code"], "metrics_flush_interval": "30s", "namespace": "",
            "aggregation_temporality": "AGGREGATION_TEMPORALITY_DELTA", "resource_metrics_key_attributes": ["service.name"],
            "aggregation_cardinality_limit": 5, "resource_metrics_cache_size": 10, "add_resource_attributes": true,
            "metrics_expiration": "5m"
        }))
        .is_empty()
    );
    let wrong = serde_json::json!({
        "histogram": { "explicit": { "buckets": ["1s", "250ms"] }, "unit": "h", "exponential": {} },
        "dimensions": [{ "name": "a" }, { "name": "a" }, { "name": "span.name" }, {}],
        "metrics_flush_interval": "0s", "aggregation_temporality": "delta", "events": { "enabled": true }, "nope": 1
    });
    assert_eq!(
        problems(&wrong),
        [
            "connectors.span_metrics.histogram.unit: `h` is not a value of `unit`",
            "connectors.span_metrics.histogram.explicit.buckets: the buckets do not stand from small to large",
            "connectors.span_metrics.histogram.exponential: `exponential` is not supported by this collector",
            "connectors.span_metrics.dimensions[3]: `name` is missing",
            "connectors.span_metrics.dimensions: the dimension `a` stands twice",
            "connectors.span_metrics.dimensions: the dimension `span.name` stands twice",
            "connectors.span_metrics.aggregation_temporality: `delta` is not a value of `aggregation_temporality`",
            "connectors.span_metrics.metrics_flush_interval: the flush interval is zero",
            "connectors.span_metrics.events: `events` is not supported by this collector",
            "connectors.span_metrics.nope: unknown key `nope`",
        ]
    );
}
