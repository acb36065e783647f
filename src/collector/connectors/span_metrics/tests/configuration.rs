//! The section.

use crate::collector::connectors::span_metrics::config::FACTORY;
use crate::collector::testing::{problems_of, read_section};

/// The problems of a section, one line each: `PATH: MESSAGE`.
fn problems(yaml: &str) -> Vec<String> {
    let text = problems_of(yaml, |section| drop((FACTORY.configure)(section)));
    let messages = text.lines().filter_map(|line| line.strip_prefix("error: "));
    messages.map(|line| line.trim_start_matches("component.").to_owned()).collect()
}

#[test]
fn everything_can_be_set() {
    for yaml in [
        "{}",
        "histogram: {explicit: {buckets: [250ms, 1s, 1m30s]}, unit: S, dimensions: [{name: a}]}\n\
         dimensions: [{name: service.name.override}, {name: p, default: ''}, {glob: 'http.*'}]\n\
         calls_dimensions: [{name: p}]\nexclude_dimensions: [status.code, nothing]\nmetrics_flush_interval: 30s\n\
         namespace: ''\naggregation_temporality: AGGREGATION_TEMPORALITY_DELTA\nresource_metrics_key_attributes: [x]\n\
         aggregation_cardinality_limit: 5\nresource_metrics_cache_size: 10\nadd_resource_attributes: true\n\
         metrics_expiration: 5m\nseries_expiration: 1m\nmetric_timestamp_cache_size: 7\ndimensions_cache_size: 5\n\
         exemplars: {enabled: true, max_per_data_point: 3}\nevents: {enabled: true, dimensions: [{name: e}]}\n\
         include_instrumentation_scope: [lib]\nenable_metrics_sampling_method: true\n",
        "histogram: {exponential: {max_size: 8}}",
        "histogram: {exponential: {}, explicit: }",
        "histogram: {disable: true}\nevents: {dimensions: []}\n",
        "histogram:\nevents:\nexemplars:\n",
    ] {
        assert!(read_section(yaml, |section| (FACTORY.configure)(section)).is_some(), "{yaml}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    let wrong = "histogram: {explicit: {buckets: [1s, 250ms]}, unit: h, exponential: {}}\n\
                 dimensions: [{name: a}, {name: a}, {name: span.name}, {}, {name: x, glob: y}, {glob: '[', default: x}, {glob: '['}]\n\
                 calls_dimensions: [{glob: 'span.*'}]\nmetrics_flush_interval: 0s\naggregation_temporality: delta\n\
                 events: {enabled: true}\nexemplars: {max_per_data_point: -1}\nresource_metrics_cache_size: 0\nnope: 1\n";
    assert_eq!(
        problems(wrong),
        [
            "dimensions[3]: a dimension has one of `name` and `glob`",
            "dimensions[4]: a dimension has one of `name` and `glob`",
            "dimensions[5].default: a dimension by `glob` has no default",
            "dimensions[6].glob: `[` is no pattern: a `[` is not closed",
            "dimensions: the dimension `a` stands twice",
            "dimensions: the dimension `span.name` stands twice",
            "calls_dimensions: the pattern `span.*` matches the dimension `span.name`",
            "calls_dimensions: the pattern `span.*` matches the dimension `span.kind`",
            "histogram.unit: `h` is not a value of `unit`",
            "histogram.explicit.buckets: the buckets do not stand from small to large",
            "histogram.exponential: the histogram is `explicit` and `exponential` at once",
            "events: `events` needs `dimensions`",
            "exemplars.max_per_data_point: `max_per_data_point` is -1; the least is 0",
            "aggregation_temporality: `delta` is not a value of `aggregation_temporality`",
            "metrics_flush_interval: the flush interval is zero",
            "resource_metrics_cache_size: `resource_metrics_cache_size` is 0; the least is 1",
            "nope: unknown key `nope`",
        ]
    );
}
