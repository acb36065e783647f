//! Tests of the counts and of the connector; here is what they share.

use std::num::NonZeroUsize;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{Exemplar, exemplar, metric, number_data_point};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message as _;

use super::aggregate::Aggregator;
use super::config::{Settings, Shape, Temporality, Unit};
use super::dimensions::{Dimensions, Named};
use crate::collector::text::glob::Glob;
use crate::otlp::{Payload, Signal};

mod configuration;
mod counts;
mod large;
mod limits;
mod stop;
mod variants;

fn settings() -> Settings {
    let size = NonZeroUsize::new(1000).expect("not zero");
    Settings {
        namespace: "traces.span.metrics".into(),
        histogram: Some(Shape::Explicit(vec![10.0, 100.0, 250.0])),
        unit: Unit::Milliseconds,
        dimensions: Default::default(),
        events: false,
        exemplars: None,
        scopes: Vec::new(),
        sampling_method: false,
        excluded: [false, false, false, false, true],
        temporality: Temporality::Cumulative,
        flush_interval: Duration::from_mins(1),
        resource_key: Vec::new(),
        resources: size,
        cardinality_limit: 0,
        metrics_expiration: Duration::ZERO,
        series_expiration: Duration::ZERO,
        timestamps: size,
    }
}

fn named(names: &[(&str, Option<&str>)]) -> Dimensions {
    let one = |(name, default): &(&str, Option<&str>)| Named { name: (*name).into(), default: default.map(Into::into) };
    Dimensions { named: names.iter().map(one).collect(), globs: Vec::new() }
}

fn globs(patterns: &[&str]) -> Dimensions {
    let globs = patterns.iter().map(|pattern| Glob::of_names(pattern).expect("a pattern")).collect();
    Dimensions { named: Vec::new(), globs }
}

/// Dimensions of all metrics alone.
fn common(dimensions: Dimensions) -> [Dimensions; 4] {
    [dimensions, Dimensions::default(), Dimensions::default(), Dimensions::default()]
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
                        let exemplars = exemplars(&p.exemplars);
                        lines.push(format!(
                            "[{resource}] {name} t{} {{{}}} {calls} {from}-{to}{exemplars}",
                            sum.aggregation_temporality,
                            text(&p.attributes)
                        ));
                    }
                }
                metric::Data::Histogram(histogram) => {
                    for p in histogram.data_points {
                        let (sum, exemplars) = (p.sum.expect("sum"), exemplars(&p.exemplars));
                        lines.push(format!(
                            "[{resource}] {name}/{unit} {{{}}} {} {sum} {:?} {:?}{exemplars}",
                            text(&p.attributes),
                            p.count,
                            p.explicit_bounds,
                            p.bucket_counts
                        ));
                    }
                }
                metric::Data::ExponentialHistogram(histogram) => {
                    for p in histogram.data_points {
                        let positive = p.positive.expect("positive");
                        lines.push(format!(
                            "[{resource}] {name}/{unit} {{{}}} {} {} {:?}-{:?} scale {} zeros {} from {} {:?}{}",
                            text(&p.attributes),
                            p.count,
                            p.sum.expect("sum"),
                            p.min.expect("min"),
                            p.max.expect("max"),
                            p.scale,
                            p.zero_count,
                            positive.offset,
                            positive.bucket_counts,
                            exemplars(&p.exemplars)
                        ));
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }
    lines
}

/// Durations and the last byte of the ids.
fn exemplars(list: &[Exemplar]) -> String {
    let one = |exemplar: &Exemplar| {
        let Some(exemplar::Value::AsDouble(value)) = exemplar.value else { panic!("no double") };
        format!(" *{value}@{}:{:?}", exemplar.time_unix_nano, exemplar.trace_id.last())
    };
    list.iter().map(one).collect()
}

/// The lines of `calls`, without resource and name.
fn calls(payload: &Payload) -> Vec<String> {
    let marker = "calls t2 ";
    lines(payload).iter().filter_map(|line| line.split_once(marker)).map(|(_, rest)| rest.to_owned()).collect()
}
