//! Arbitrary requests of each signal, as messages of opentelemetry-proto.

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

pub fn traces() -> impl Strategy<Value = ExportTraceServiceRequest> {
    let scopes = (scope(), vec(span(), 0..4), text()).prop_map(|(scope, spans, schema_url)| ScopeSpans {
        scope,
        spans,
        schema_url,
    });
    let resources = (resource(), vec(scopes, 0..3), text())
        .prop_map(|(resource, scope_spans, schema_url)| ResourceSpans { resource, scope_spans, schema_url });
    vec(resources, 0..3).prop_map(|resource_spans| ExportTraceServiceRequest { resource_spans })
}

pub fn metrics() -> impl Strategy<Value = ExportMetricsServiceRequest> {
    let scopes = (scope(), vec(metric(), 0..4), text()).prop_map(|(scope, metrics, schema_url)| ScopeMetrics {
        scope,
        metrics,
        schema_url,
    });
    let resources = (resource(), vec(scopes, 0..3), text())
        .prop_map(|(resource, scope_metrics, schema_url)| ResourceMetrics { resource, scope_metrics, schema_url });
    vec(resources, 0..3).prop_map(|resource_metrics| ExportMetricsServiceRequest { resource_metrics })
}

pub fn logs() -> impl Strategy<Value = ExportLogsServiceRequest> {
    let scopes = (scope(), vec(log_record(), 0..4), text()).prop_map(|(scope, log_records, schema_url)| ScopeLogs {
        scope,
        log_records,
        schema_url,
    });
    let resources = (resource(), vec(scopes, 0..3), text())
        .prop_map(|(resource, scope_logs, schema_url)| ResourceLogs { resource, scope_logs, schema_url });
    vec(resources, 0..3).prop_map(|resource_logs| ExportLogsServiceRequest { resource_logs })
}
