//! Tests of what pages become; here is what they share.
#![expect(clippy::format_push_string, reason = "short lines are built for comparison")]

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{Metric, NumberDataPoint, metric, number_data_point};
use prost::Message as _;

use super::target::Record;
use super::{Failure, Labels, Memory, Page, Rules, Times};

mod labels;
mod large;
mod limits;
mod pages;
mod repeat;
mod types;

fn rules(labels: &[(&str, &str)]) -> Rules {
    let mut list = vec![("job", "j"), ("instance", "127.0.0.1:9")];
    list.extend(labels);
    let target = Labels::new(list.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect());
    Rules { target, scheme: "http".into(), honor_timestamps: true, ..Rules::default() }
}

/// A target whose pages are given one after the other, a second apart.
struct Target {
    rules: Rules,
    memory: Memory,
    now_ms: i64,
}

impl Target {
    fn new() -> Self {
        Self::with(rules(&[]))
    }

    fn with(rules: Rules) -> Self {
        Self { rules, memory: Memory::default(), now_ms: 1_800_000_000_000 }
    }

    fn page(&mut self, body: &str, content_type: Option<&str>) -> Record {
        let page = Page { body: body.into(), content_type: content_type.map(str::to_owned) };
        self.now_ms += 1000;
        self.memory.record(&self.rules, Ok(&page), self.times())
    }

    fn times(&self) -> Times {
        Times { start_ms: self.now_ms, seconds: 0.25 }
    }

    fn down(&mut self) -> Record {
        self.now_ms += 1000;
        let refused = Failure::from("connection refused".to_owned());
        self.memory.record(&self.rules, Err(&refused), self.times())
    }

    /// The points of a text page, without the report.
    fn text(&mut self, body: &str) -> Vec<String> {
        points(&self.page(body, None))
    }

    fn openmetrics(&mut self, body: &str) -> Vec<String> {
        points(&self.page(body, Some("application/openmetrics-text")))
    }
}

fn request(record: &Record) -> ExportMetricsServiceRequest {
    ExportMetricsServiceRequest::decode(record.payload.encode().as_slice()).expect("valid OTLP")
}

fn text(value: &KeyValue) -> String {
    match value.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        other => format!("{other:?}"),
    }
}

fn attributes(list: &[KeyValue]) -> String {
    list.iter().map(|value| format!("{}={}", value.key, text(value))).collect::<Vec<_>>().join(",")
}

fn number(point: &NumberDataPoint) -> String {
    let value = match point.value {
        Some(number_data_point::Value::AsDouble(value)) => format!("{value}"),
        other => format!("{other:?}"),
    };
    let mut line = format!("{{{}}} {value}", attributes(&point.attributes));
    if point.start_time_unix_nano != 0 {
        line += &format!(" since {}", point.start_time_unix_nano);
    }
    for exemplar in &point.exemplars {
        line += &format!(" exemplar {} {}", exemplar.trace_id.len(), attributes(&exemplar.filtered_attributes));
    }
    line
}

fn lines_of(metric: &Metric) -> Vec<String> {
    let points: Vec<(String, u32)> = match metric.data.as_ref().expect("data") {
        metric::Data::Gauge(gauge) => {
            gauge.data_points.iter().map(|p| (format!("gauge{}", number(p)), p.flags)).collect()
        }
        metric::Data::Sum(sum) => {
            assert_eq!(sum.aggregation_temporality, 2);
            let word = if sum.is_monotonic { "counter" } else { "sum" };
            sum.data_points.iter().map(|p| (format!("{word}{}", number(p)), p.flags)).collect()
        }
        metric::Data::Histogram(histogram) => {
            assert_eq!(histogram.aggregation_temporality, 2);
            let line = |p: &opentelemetry_proto::tonic::metrics::v1::HistogramDataPoint| {
                let (bounds, counts, sum) = (&p.explicit_bounds, &p.bucket_counts, p.sum);
                let mut line =
                    format!("histogram{{{}}} {} {sum:?} {bounds:?} {counts:?}", attributes(&p.attributes), p.count);
                if p.start_time_unix_nano != 0 {
                    line += &format!(" since {}", p.start_time_unix_nano);
                }
                if !p.exemplars.is_empty() {
                    line += &format!(" {} exemplars", p.exemplars.len());
                }
                (line, p.flags)
            };
            histogram.data_points.iter().map(line).collect()
        }
        metric::Data::Summary(summary) => {
            let line = |p: &opentelemetry_proto::tonic::metrics::v1::SummaryDataPoint| {
                let quantiles: Vec<_> = p.quantile_values.iter().map(|q| (q.quantile, q.value)).collect();
                (format!("summary{{{}}} {} {} {quantiles:?}", attributes(&p.attributes), p.count, p.sum), p.flags)
            };
            summary.data_points.iter().map(line).collect()
        }
        metric::Data::ExponentialHistogram(_) => panic!("no page makes an exponential histogram"),
    };
    let name = &metric.name;
    points
        .into_iter()
        .map(|(point, flags)| format!("{name} {point}{}", if flags == 1 { " stale" } else { "" }))
        .collect()
}

fn is_report(name: &str) -> bool {
    name == "up" || name.starts_with("scrape_")
}

fn metrics(record: &Record) -> Vec<Metric> {
    let scopes = request(record).resource_metrics.into_iter().flat_map(|resource| resource.scope_metrics);
    scopes.flat_map(|scope| scope.metrics).collect()
}

fn points(record: &Record) -> Vec<String> {
    let mut lines: Vec<String> =
        metrics(record).iter().filter(|metric| !is_report(&metric.name)).flat_map(lines_of).collect();
    lines.sort();
    lines
}

/// up, scraped, kept after relabeling, new.
#[expect(clippy::cast_possible_truncation, reason = "small whole numbers")]
fn report(record: &Record) -> [i32; 4] {
    let all = metrics(record);
    ["up", "scrape_samples_scraped", "scrape_samples_post_metric_relabeling", "scrape_series_added"].map(|name| {
        let found: Vec<_> = all.iter().filter(|metric| metric.name == name).collect();
        assert_eq!(found.len(), 1, "{name}");
        let Some(metric::Data::Gauge(gauge)) = &found[0].data else { panic!("{name} is no gauge") };
        match gauge.data_points.as_slice() {
            [NumberDataPoint { value: Some(number_data_point::Value::AsDouble(value)), .. }] => {
                assert!(value.fract() == 0.0, "{name}");
                *value as i32
            }
            other => panic!("{name}: {other:?}"),
        }
    })
}
