//! Arbitrary requests through the wire form and JSON, checked against the decoded messages of
//! opentelemetry-proto; arbitrary bytes, which must be refused and never do harm.

use gymrun::otlp::{Payload, Signal};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::summary_data_point::ValueAtQuantile;
use opentelemetry_proto::tonic::metrics::v1::{
    Exemplar, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram, HistogramDataPoint, Metric,
    NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, Summary, SummaryDataPoint, exemplar, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z.]{1,12}", any::<String>()]
}

fn id(length: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![Just(Vec::new()), vec(1..=255_u8, length)]
}

/// Doubles that are equal to themselves; NaN has a test of its own.
fn double() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(f64::INFINITY), -1e3..1e3, any::<f64>().prop_filter("NaN", |value| !value.is_nan())]
}

fn any_value() -> impl Strategy<Value = AnyValue> {
    let leaf = prop_oneof![
        Just(None),
        text().prop_map(|value| Some(Value::StringValue(value))),
        any::<bool>().prop_map(|value| Some(Value::BoolValue(value))),
        any::<i64>().prop_map(|value| Some(Value::IntValue(value))),
        double().prop_map(|value| Some(Value::DoubleValue(value))),
        vec(any::<u8>(), 0..9).prop_map(|value| Some(Value::BytesValue(value))),
    ];
    leaf.prop_map(|value| AnyValue { value }).prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4)
                .prop_map(|values| AnyValue { value: Some(Value::ArrayValue(ArrayValue { values })) }),
            vec((text(), inner), 0..4).prop_map(|values| {
                let values = values.into_iter().map(|(key, value)| key_value(key, value)).collect();
                AnyValue { value: Some(Value::KvlistValue(KeyValueList { values })) }
            }),
        ]
    })
}

fn key_value(key: String, value: AnyValue) -> KeyValue {
    // No value and a value without content are the same to the collector; one of them is generated.
    let value = value.value.is_some().then_some(value);
    KeyValue { key, value, ..KeyValue::default() }
}

fn attributes() -> impl Strategy<Value = Vec<KeyValue>> {
    vec((text(), any_value()).prop_map(|(key, value)| key_value(key, value)), 0..4)
}

fn scope() -> impl Strategy<Value = Option<InstrumentationScope>> {
    (text(), text(), attributes(), 0..3_u32).prop_map(|(name, version, attributes, dropped_attributes_count)| {
        Some(InstrumentationScope { name, version, attributes, dropped_attributes_count })
    })
}

fn resource() -> impl Strategy<Value = Option<Resource>> {
    (attributes(), 0..3_u32).prop_map(|(attributes, dropped_attributes_count)| {
        Some(Resource { attributes, dropped_attributes_count, ..Resource::default() })
    })
}

fn span() -> impl Strategy<Value = Span> {
    let event =
        (any::<u64>(), text(), attributes(), 0..3_u32).prop_map(|(time_unix_nano, name, attributes, dropped)| Event {
            time_unix_nano,
            name,
            attributes,
            dropped_attributes_count: dropped,
        });
    let link = (id(16), id(8), text(), attributes(), any::<u32>()).prop_map(
        |(trace_id, span_id, trace_state, attributes, flags)| Link {
            trace_id,
            span_id,
            trace_state,
            attributes,
            flags,
            ..Link::default()
        },
    );
    let status = (text(), -1..4_i32).prop_map(|(message, code)| Some(Status { message, code }));
    let own = (id(16), id(8), text(), id(8), any::<u32>(), text(), -1..7_i32, any::<u64>(), any::<u64>());
    (own, attributes(), vec(event, 0..3), vec(link, 0..3), status).prop_map(
        |(own, attributes, events, links, status)| {
            let (trace_id, span_id, trace_state, parent_span_id, flags, name, kind, start, end) = own;
            Span {
                trace_id,
                span_id,
                trace_state,
                parent_span_id,
                flags,
                name,
                kind,
                start_time_unix_nano: start,
                end_time_unix_nano: end,
                attributes,
                events,
                links,
                status,
                dropped_links_count: 3,
                ..Span::default()
            }
        },
    )
}

fn log_record() -> impl Strategy<Value = LogRecord> {
    (any::<u64>(), any::<u64>(), -1..99_i32, text(), any_value(), attributes(), id(16), id(8), text()).prop_map(
        |(
            time_unix_nano,
            observed,
            severity_number,
            severity_text,
            body,
            attributes,
            trace_id,
            span_id,
            event_name,
        )| {
            LogRecord {
                time_unix_nano,
                observed_time_unix_nano: observed,
                severity_number,
                severity_text,
                body: body.value.is_some().then_some(body),
                attributes,
                flags: 1,
                trace_id,
                span_id,
                event_name,
                ..LogRecord::default()
            }
        },
    )
}

fn exemplars() -> impl Strategy<Value = Vec<Exemplar>> {
    let value = prop_oneof![
        double().prop_map(|value| Some(exemplar::Value::AsDouble(value))),
        any::<i64>().prop_map(|value| Some(exemplar::Value::AsInt(value)))
    ];
    vec(
        (attributes(), any::<u64>(), value, id(8), id(16)).prop_map(
            |(filtered_attributes, time_unix_nano, value, span_id, trace_id)| Exemplar {
                filtered_attributes,
                time_unix_nano,
                value,
                span_id,
                trace_id,
            },
        ),
        0..2,
    )
}

fn data() -> impl Strategy<Value = Option<Data>> {
    let number = prop_oneof![
        Just(None),
        double().prop_map(|value| Some(number_data_point::Value::AsDouble(value))),
        any::<i64>().prop_map(|value| Some(number_data_point::Value::AsInt(value)))
    ];
    let point = (attributes(), any::<u64>(), number, exemplars(), 0..2_u32).prop_map(
        |(attributes, time_unix_nano, value, exemplars, flags)| NumberDataPoint {
            attributes,
            time_unix_nano,
            value,
            exemplars,
            flags,
            ..NumberDataPoint::default()
        },
    );
    let points = vec(point, 0..4).boxed();
    let optional = || prop_oneof![Just(None), double().prop_map(Some)];
    let histogram = (any::<u64>(), optional(), optional(), vec(any::<u64>(), 0..5), vec(double(), 0..4), exemplars())
        .prop_map(|(count, sum, min, bucket_counts, explicit_bounds, exemplars)| HistogramDataPoint {
            count,
            sum,
            min,
            max: min,
            bucket_counts,
            explicit_bounds,
            exemplars,
            ..HistogramDataPoint::default()
        });
    let buckets = || {
        (any::<i32>(), vec(any::<u64>(), 0..4))
            .prop_map(|(offset, bucket_counts)| Some(Buckets { offset, bucket_counts }))
    };
    let exponential = (any::<i32>(), any::<u64>(), buckets(), buckets(), optional(), exemplars(), double()).prop_map(
        |(scale, zero_count, positive, negative, max, exemplars, threshold)| ExponentialHistogramDataPoint {
            scale,
            zero_count,
            positive,
            negative,
            max,
            exemplars,
            zero_threshold: if threshold == 0.0 { 0.0 } else { threshold },
            ..ExponentialHistogramDataPoint::default()
        },
    );
    let quantile = (0.0..1.0, 1.0..9.0).prop_map(|(quantile, value)| ValueAtQuantile { quantile, value });
    let summary = (attributes(), vec(quantile, 0..3), 1.0..9.0).prop_map(|(attributes, quantile_values, sum)| {
        SummaryDataPoint { attributes, quantile_values, sum, ..SummaryDataPoint::default() }
    });
    prop_oneof![
        Just(None),
        points.clone().prop_map(|data_points| Some(Data::Gauge(Gauge { data_points }))),
        (points, 0..3_i32, any::<bool>()).prop_map(|(data_points, aggregation_temporality, is_monotonic)| {
            Some(Data::Sum(Sum { data_points, aggregation_temporality, is_monotonic }))
        }),
        vec(histogram, 0..3)
            .prop_map(|data_points| { Some(Data::Histogram(Histogram { data_points, aggregation_temporality: 2 })) }),
        vec(exponential, 0..3).prop_map(|data_points| {
            Some(Data::ExponentialHistogram(ExponentialHistogram { data_points, aggregation_temporality: 1 }))
        }),
        vec(summary, 0..3).prop_map(|data_points| Some(Data::Summary(Summary { data_points }))),
    ]
}

fn metric() -> impl Strategy<Value = Metric> {
    (text(), text(), text(), data(), attributes()).prop_map(|(name, description, unit, data, metadata)| Metric {
        name,
        description,
        unit,
        data,
        metadata,
    })
}

fn traces() -> impl Strategy<Value = ExportTraceServiceRequest> {
    let scopes = (scope(), vec(span(), 0..4), text()).prop_map(|(scope, spans, schema_url)| ScopeSpans {
        scope,
        spans,
        schema_url,
    });
    let resources = (resource(), vec(scopes, 0..3), text())
        .prop_map(|(resource, scope_spans, schema_url)| ResourceSpans { resource, scope_spans, schema_url });
    vec(resources, 0..3).prop_map(|resource_spans| ExportTraceServiceRequest { resource_spans })
}

fn metrics() -> impl Strategy<Value = ExportMetricsServiceRequest> {
    let scopes = (scope(), vec(metric(), 0..4), text()).prop_map(|(scope, metrics, schema_url)| ScopeMetrics {
        scope,
        metrics,
        schema_url,
    });
    let resources = (resource(), vec(scopes, 0..3), text())
        .prop_map(|(resource, scope_metrics, schema_url)| ResourceMetrics { resource, scope_metrics, schema_url });
    vec(resources, 0..3).prop_map(|resource_metrics| ExportMetricsServiceRequest { resource_metrics })
}

fn logs() -> impl Strategy<Value = ExportLogsServiceRequest> {
    let scopes = (scope(), vec(log_record(), 0..4), text()).prop_map(|(scope, log_records, schema_url)| ScopeLogs {
        scope,
        log_records,
        schema_url,
    });
    let resources = (resource(), vec(scopes, 0..3), text())
        .prop_map(|(resource, scope_logs, schema_url)| ResourceLogs { resource, scope_logs, schema_url });
    vec(resources, 0..3).prop_map(|resource_logs| ExportLogsServiceRequest { resource_logs })
}

fn json_of(payload: &Payload) -> Vec<u8> {
    let mut line = Vec::new();
    payload.write_json(&mut line);
    line
}

fn text_of(payload: &Payload) -> String {
    String::from_utf8_lossy(&json_of(payload)).into_owned()
}

/// Wire form in and out, and JSON out and in, keep the message; JSON is valid; splitting loses nothing.
fn check<M: Message + Default + PartialEq + std::fmt::Debug>(signal: Signal, request: &M) -> Result<(), TestCaseError> {
    let payload = Payload::decode(signal, request.encode_to_vec()).expect("valid");
    let encoded = payload.encode();
    let again = M::decode(encoded.as_slice()).expect("valid");
    prop_assert_eq!(request, &again, "through the wire form");

    let line = json_of(&payload);
    let parsed: Result<serde_json::Value, _> = serde_json::from_slice(&line);
    prop_assert!(parsed.is_ok(), "{:?} in {}", parsed, String::from_utf8_lossy(&line));
    let read = Payload::from_json(signal, &line).expect("valid JSON");
    prop_assert_eq!(text_of(&read), text_of(&payload), "JSON again");
    prop_assert_eq!(read.item_count(), payload.item_count());

    let (count, mut rest) = (payload.item_count(), payload.clone());
    let front = rest.split_front(count / 2);
    prop_assert_eq!((front.item_count(), rest.item_count()), (count / 2, count - count / 2));
    for part in [front, rest] {
        let again = Payload::decode(signal, part.encode()).expect("valid");
        prop_assert_eq!(json_of(&again), json_of(&part), "a part");
    }
    Ok(())
}

/// The fields of each item in another order.
fn reversed(bytes: &[u8], depth: usize) -> Vec<u8> {
    let mut reader = gymrun::otlp::wire::Reader::new(bytes);
    let (mut start, mut parts) = (0, Vec::<(u32, Vec<u8>)>::new());
    while let Some((number, value)) = reader.read().expect("valid") {
        let mut part = bytes[start..reader.position()].to_vec();
        // Down to the items: request 1, resource 2, scope 2.
        if let (gymrun::otlp::wire::Value::Bytes(inner), true) = (value, depth < 3 && number == [1, 2, 2][depth]) {
            let mut writer = gymrun::otlp::wire::Writer::new();
            writer.bytes_field(number, &reversed(inner, depth + 1));
            part = writer.into_vec();
        }
        parts.push((number, part));
        start = reader.position();
    }
    // Equal numbers keep their order.
    parts.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    parts.into_iter().flat_map(|(_, part)| part).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn traces_keep(request in traces()) {
        check(Signal::Traces, &request)?;
    }

    #[test]
    fn metrics_keep(request in metrics()) {
        check(Signal::Metrics, &request)?;
    }

    #[test]
    fn logs_keep(request in logs()) {
        check(Signal::Logs, &request)?;
    }

    #[test]
    fn the_order_of_fields_makes_no_difference(request in traces(), points in metrics()) {
        for (signal, bytes) in [(Signal::Traces, request.encode_to_vec()), (Signal::Metrics, points.encode_to_vec())] {
            let straight = Payload::decode(signal, bytes.clone()).expect("valid");
            let turned = Payload::decode(signal, reversed(&bytes, 0)).expect("valid");
            prop_assert_eq!(straight.item_count(), turned.item_count());
            prop_assert_eq!(text_of(&straight), text_of(&turned));
        }
    }

    #[test]
    fn broken_requests_do_no_harm(request in traces(), points in metrics(), place in any::<usize>(), byte in any::<u8>()) {
        for (signal, mut bytes) in [(Signal::Traces, request.encode_to_vec()), (Signal::Metrics, points.encode_to_vec())] {
            if bytes.is_empty() {
                continue;
            }
            let place = place % bytes.len();
            bytes[place] = byte;
            if let Ok(payload) = Payload::decode(signal, bytes) {
                let line = json_of(&payload);
                prop_assert!(Payload::decode(signal, payload.encode()).is_ok());
                prop_assert!(Payload::from_json(signal, &line).is_ok(), "{}", String::from_utf8_lossy(&line));
            }
        }
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in vec(any::<u8>(), 0..200)) {
        for signal in Signal::ALL {
            if let Ok(payload) = Payload::decode(signal, bytes.clone()) {
                let _ = json_of(&payload);
            }
            let _ = Payload::from_json(signal, &bytes);
        }
    }

    #[test]
    fn arbitrary_json_does_no_harm(
        text in r#"(\{|\}|\[|\]|,|:|"|null|1|-1.5e3|true|"resourceSpans":\[|"scopeSpans":\[\{"spans":\[|"attributes"|"value"|\\u[0-9a-f]{4}| ){0,40}"#
    ) {
        let _ = Payload::from_json(Signal::Traces, text.as_bytes());
    }
}

#[test]
fn not_a_number_is_kept() {
    let value = Some(number_data_point::Value::AsDouble(f64::NAN));
    let data = Some(Data::Gauge(Gauge { data_points: vec![NumberDataPoint { value, ..NumberDataPoint::default() }] }));
    let metrics = vec![Metric { name: "m".into(), data, ..Metric::default() }];
    let scope_metrics = vec![ScopeMetrics { metrics, ..ScopeMetrics::default() }];
    let resource_metrics = vec![ResourceMetrics { scope_metrics, ..ResourceMetrics::default() }];
    let request = ExportMetricsServiceRequest { resource_metrics }.encode_to_vec();
    let payload = Payload::decode(Signal::Metrics, request).expect("valid");
    let line = json_of(&payload);
    assert!(String::from_utf8_lossy(&line).contains(r#""asDouble":"NaN""#));
    assert_eq!(json_of(&Payload::from_json(Signal::Metrics, &line).expect("valid")), line);
}

#[test]
fn deep_nesting_is_refused() {
    let deep = |depth: usize| {
        let value = (0..depth).fold(AnyValue::default(), |inner, _| AnyValue {
            value: Some(Value::ArrayValue(ArrayValue { values: vec![inner] })),
        });
        let record = LogRecord { body: Some(value), ..LogRecord::default() };
        let scope_logs = vec![ScopeLogs { log_records: vec![record], ..ScopeLogs::default() }];
        ExportLogsServiceRequest { resource_logs: vec![ResourceLogs { scope_logs, ..ResourceLogs::default() }] }
    };
    let payload = Payload::decode(Signal::Logs, deep(90).encode_to_vec()).expect("accepted");
    assert!(Payload::from_json(Signal::Logs, &json_of(&payload)).is_ok());
    assert!(Payload::decode(Signal::Logs, deep(110).encode_to_vec()).is_err());
    let brackets = "[".repeat(1_000_000);
    assert!(Payload::from_json(Signal::Logs, format!("{{\"x\":{brackets}").as_bytes()).is_err());
    let values = r#"{"arrayValue":{"values":["#.repeat(100_000);
    let body = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"body":{values}"#);
    let error = Payload::from_json(Signal::Logs, body.as_bytes()).expect_err("refused").to_string();
    assert!(error.contains("nested too deeply"), "{error}");
}
