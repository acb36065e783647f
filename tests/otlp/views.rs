//! What views, edits and splits say about payloads of opentelemetry-proto.

use std::sync::Arc;

use gymrun::otlp::{AnyValue, Items, KeyValue, LogView, Payload, Records, Resource, Signal, SpanView, ValueView};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{self as common, ArrayValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum};
use opentelemetry_proto::tonic::trace::v1::span::Event;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message;

fn attribute(key: &str, value: Value) -> common::KeyValue {
    let value = Some(common::AnyValue { value: Some(value) });
    common::KeyValue { key: key.into(), value, ..common::KeyValue::default() }
}

fn traces(spans: Vec<Span>) -> Payload {
    let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
    let resource_spans = vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }];
    Payload::decode(Signal::Traces, ExportTraceServiceRequest { resource_spans }.encode_to_vec()).expect("valid")
}

fn records(payload: &Payload) -> &Records {
    let Items::Records(records) = &payload.resources[0].scopes[0].items else { panic!("spans or log records") };
    records
}

#[test]
fn a_span() {
    let event = Event {
        name: "exception".into(),
        attributes: vec![attribute("type", Value::StringValue("E".into()))],
        ..Event::default()
    };
    let list = ArrayValue { values: vec![common::AnyValue { value: Some(Value::BoolValue(true)) }] };
    let payload = traces(vec![Span {
        trace_id: vec![1; 16],
        span_id: vec![2; 8],
        name: "GET /".into(),
        kind: 2,
        start_time_unix_nano: 5,
        end_time_unix_nano: 9,
        attributes: vec![
            attribute("http.status", Value::IntValue(-200)),
            attribute("list", Value::ArrayValue(list)),
            attribute("http.status", Value::IntValue(500)),
        ],
        events: vec![event],
        status: Some(Status { message: "no".into(), code: 2 }),
        ..Span::default()
    }]);
    let span = SpanView::new(records(&payload).iter().next().expect("a span"));
    assert_eq!((span.name, span.kind, span.status_code), (&b"GET /"[..], 2, 2));
    assert_eq!((span.start_time_unix_nano, span.end_time_unix_nano), (5, 9));
    assert_eq!((span.trace_id, span.span_id, span.parent_span_id), (&[1; 16][..], &[2; 8][..], &[][..]));
    assert_eq!(span.attributes().get("http.status"), Some(ValueView::Int(-200)), "the first of a repeated key");
    let list = span.attributes().get("list").expect("there").to_value();
    assert_eq!(list, AnyValue::Array(vec![AnyValue::Bool(true)]));
    assert_eq!(span.attributes().get("nothing"), None);
    assert_eq!(span.attributes().iter().count(), 3);
    let event = span.events().next().expect("an event");
    assert_eq!((event.name, event.attributes().get("type")), (&b"exception"[..], Some(ValueView::String(b"E"))));
}

#[test]
fn a_log_record() {
    let record = LogRecord {
        time_unix_nano: 7,
        severity_number: 17,
        severity_text: "ERROR".into(),
        body: Some(common::AnyValue { value: Some(Value::StringValue("text".into())) }),
        attributes: vec![attribute("k", Value::DoubleValue(0.5))],
        ..LogRecord::default()
    };
    let scope_logs = vec![ScopeLogs { log_records: vec![record], ..ScopeLogs::default() }];
    let resource_logs = vec![ResourceLogs { scope_logs, ..ResourceLogs::default() }];
    let request = ExportLogsServiceRequest { resource_logs }.encode_to_vec();
    let payload = Payload::decode(Signal::Logs, request).expect("valid");
    let log = LogView::new(records(&payload).iter().next().expect("a record"));
    assert_eq!((log.time_unix_nano, log.severity_number, log.severity_text), (7, 17, &b"ERROR"[..]));
    assert_eq!((log.body, log.attributes().get("k")), (ValueView::String(b"text"), Some(ValueView::Double(0.5))));
}

fn metrics() -> Payload {
    let points = |count| vec![NumberDataPoint { time_unix_nano: 1, ..NumberDataPoint::default() }; count];
    let sum = Data::Sum(Sum { data_points: points(3), aggregation_temporality: 2, is_monotonic: true });
    let metrics = vec![
        Metric { name: "a:b".into(), data: Some(Data::Gauge(Gauge { data_points: points(2) })), ..Metric::default() },
        Metric { name: "c".into(), unit: "s".into(), data: Some(sum), ..Metric::default() },
    ];
    let scope_metrics = vec![ScopeMetrics { metrics, ..ScopeMetrics::default() }];
    let resource_metrics = vec![ResourceMetrics { scope_metrics, ..ResourceMetrics::default() }];
    Payload::decode(Signal::Metrics, ExportMetricsServiceRequest { resource_metrics }.encode_to_vec()).expect("valid")
}

fn encoded_metrics(payload: &Payload) -> Vec<Metric> {
    let request = ExportMetricsServiceRequest::decode(payload.encode().as_slice()).expect("valid");
    request.resource_metrics.into_iter().flat_map(|entry| entry.scope_metrics).flat_map(|scope| scope.metrics).collect()
}

#[test]
fn a_metric_is_renamed_and_its_points_are_counted() {
    let mut payload = metrics();
    assert_eq!(payload.item_count(), 5, "data points, not metrics");
    let Items::Metrics(metrics) = &mut payload.resources[0].scopes[0].items else { panic!("metrics") };
    metrics[0].name = "a_b".into();
    let encoded = encoded_metrics(&payload);
    assert_eq!((encoded[0].name.as_str(), encoded[1].name.as_str(), encoded[1].unit.as_str()), ("a_b", "c", "s"));
}

#[test]
fn metrics_are_split_between_their_points() {
    let parts: Vec<Payload> = metrics().into_chunks(3).collect();
    assert_eq!(parts.iter().map(Payload::item_count).collect::<Vec<_>>(), [3, 2]);
    let [front, rest] = [0, 1].map(|part: usize| encoded_metrics(&parts[part]));
    assert_eq!((front.len(), rest.len()), (2, 1));
    for metric in [&front[1], &rest[0]] {
        let Some(Data::Sum(sum)) = &metric.data else { panic!("a sum") };
        assert!(metric.name == "c" && metric.unit == "s" && sum.is_monotonic && sum.aggregation_temporality == 2);
    }
}

#[test]
fn spans_are_split_and_written_anew() {
    let spans = (0..5).map(|index| Span { name: format!("s{index}"), ..Span::default() }).collect();
    let mut parts = traces(spans).into_chunks(3);
    let (front, mut rest) = (parts.next().expect("a part"), parts.next().expect("a part"));
    assert!(parts.next().is_none());
    let names = |payload: &Payload| -> Vec<String> {
        records(payload).iter().map(|span| String::from_utf8_lossy(SpanView::new(span).name).into_owned()).collect()
    };
    assert_eq!(
        (names(&front), names(&rest)),
        (vec!["s0".into(), "s1".into(), "s2".into()], vec!["s3".into(), "s4".into()])
    );
    let every_second: Records = records(&rest).iter().step_by(2).collect();
    rest.resources[0].scopes[0].items = Items::Records(every_second);
    assert_eq!(names(&rest), ["s3"]);
    let again = Payload::decode(Signal::Traces, rest.encode()).expect("valid");
    assert_eq!(names(&again), ["s3"]);
}

#[test]
fn a_shared_resource_is_edited_for_one_holder_only() {
    let mut payload = traces(vec![Span::default()]);
    payload.resources[0].resource = Arc::new(Resource::new([("service.name", "shop")]));
    let shared = payload.clone();
    let resource = Arc::make_mut(&mut payload.resources[0].resource);
    assert!(resource.insert("team", "rl") && !resource.insert("team", "other"));
    assert!(resource.update("service.name", "mill") && !resource.update("absent", 1_i64));
    resource.upsert("count", 1_i64);
    resource.upsert("count", 2_i64);
    assert_eq!(resource.delete("team"), Some(AnyValue::from("rl")));
    assert_eq!(resource.delete("team"), None);
    assert_eq!(
        payload.resources[0].resource.attributes,
        [KeyValue::new("service.name", "mill"), KeyValue::new("count", 2_i64)]
    );
    assert_eq!(shared.resources[0].resource.attributes, [KeyValue::new("service.name", "shop")]);
    let mut line = Vec::new();
    payload.write_json(&mut line);
    let line = String::from_utf8(line).expect("UTF-8");
    assert!(line.contains(r#"{"key":"count","value":{"intValue":"2"}}"#), "{line}");
}
