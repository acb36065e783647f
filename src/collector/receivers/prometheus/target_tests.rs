//! Tests of what pages become: types, families, staleness, reports.
#![expect(clippy::format_push_string, reason = "short lines are built for comparison")]

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{Metric, NumberDataPoint, metric, number_data_point};
use prost::Message as _;

use super::super::exposition::Dialect;
use super::super::labels::Labels;
use super::{Memory, Page, Record, Rules, Times};

fn rules(labels: &[(&str, &str)]) -> Rules {
    let mut list = vec![("job", "j"), ("instance", "127.0.0.1:9"), ("__scheme__", "http")];
    list.extend(labels);
    let target = Labels::new(list.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect());
    Rules { target, honor_timestamps: true, ..Rules::default() }
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
        let times = Times { start_ms: self.now_ms, seconds: 0.25 };
        self.memory.record(&self.rules, Ok(&page), times)
    }

    fn down(&mut self) -> Record {
        self.now_ms += 1000;
        let times = Times { start_ms: self.now_ms, seconds: 0.25 };
        self.memory.record(&self.rules, Err("connection refused".into()), times)
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

#[test]
fn types_of_text_pages() {
    let page = "# HELP req_total Requests.\n# TYPE req_total counter\nreq_total{code=\"200\"} 7\n# TYPE g gauge\ng 1.5\n\
                # TYPE u untyped\nu 2\nbare 3\nvllm:num 4\n";
    let record = Target::new().page(page, None);
    assert_eq!(
        points(&record),
        ["bare gauge{} 3", "g gauge{} 1.5", "req_total counter{code=200} 7", "u gauge{} 2", "vllm:num gauge{} 4",]
    );
    assert_eq!(report(&record), [1, 5, 5, 5]);
    let all = metrics(&record);
    let of = |name: &str| all.iter().find(|metric| metric.name == name).expect("metric");
    assert_eq!(of("req_total").description, "Requests.");
    assert_eq!(attributes(&of("req_total").metadata), "prometheus.type=counter");
    assert_eq!(attributes(&of("bare").metadata), "prometheus.type=unknown");
    assert_eq!(of("scrape_duration_seconds").unit, "s");
    assert_eq!(of("up").description, "The scraping was successful");
    let request = request(&record);
    let resource = request.resource_metrics[0].resource.as_ref().expect("resource");
    assert_eq!(
        attributes(&resource.attributes),
        "service.name=j,service.instance.id=127.0.0.1:9,server.port=9,url.scheme=http"
    );
    let scope = request.resource_metrics[0].scope_metrics[0].scope.as_ref().expect("scope");
    assert_eq!(scope.name, "github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver");
}

#[test]
fn histograms() {
    let mut target = Target::new();
    let page = "# TYPE h histogram\nh_bucket{le=\"+Inf\"} 9\nh_bucket{le=\"2\"} 5\nh_bucket{le=\"1\"} 3\nh_sum 12\nh_count 9\n";
    assert_eq!(target.text(page), ["h histogram{} 9 Some(12.0) [1.0, 2.0] [3, 2, 4]"]);
    let partial = "# TYPE a histogram\na_bucket{le=\"1\"} 3\na_count 7\n# TYPE b histogram\nb_sum 8\nb_count 5\n\
                   # TYPE c histogram\nc_bucket{le=\"1\"} 3\nc_sum 1\n# TYPE d histogram\nd 4\n";
    let mut target = Target::new();
    assert_eq!(target.text(partial), ["a histogram{} 7 None [1.0] [3, 4]", "b histogram{} 5 Some(8.0) [] [5]"]);
    // A bound that is gone makes no wrong counts.
    let mut target = Target::new();
    let two =
        "# TYPE l histogram\nl_bucket{le=\"1\"} 1\nl_bucket{le=\"5\"} 2\nl_bucket{le=\"+Inf\"} 2\nl_sum 3\nl_count 2\n";
    target.text(two);
    let one = two.replace("l_bucket{le=\"5\"} 2\n", "");
    assert_eq!(target.text(&one), ["l histogram{} 2 Some(3.0) [1.0] [1, 1]"]);
    assert_eq!(target.text(""), ["l histogram{} 0 None [1.0] [0, 0] stale"]);
}

#[test]
fn histograms_that_contradict_themselves_are_left_out_and_said_once() {
    let mut target = Target::new();
    let page = "# TYPE h histogram\nh_bucket{le=\"1\"} 5\nh_bucket{le=\"2\"} 3\nh_sum 1\nh_count 6\ng 1\n";
    let record = target.page(page, None);
    assert_eq!(points(&record), ["g gauge{} 1"]);
    assert_eq!(record.broken_points, 1);
    assert_eq!(record.warnings.len(), 1, "{:?}", record.warnings);
    assert!(record.warnings[0].starts_with("`h`: "));
    let record = target.page(page, None);
    assert_eq!((record.broken_points, record.warnings.len()), (1, 0));
}

#[test]
fn summaries() {
    let page = "# TYPE s summary\ns{quantile=\"0.9\"} NaN\ns{quantile=\"0.5\"} 1\ns_sum 5\ns_count 2\n\
                # TYPE n summary\nn_sum{a=\"b\"} 5\nn_count{a=\"b\"} 2\n# TYPE x summary\nx{quantile=\"1\"} 2\nx_sum 1\n";
    assert_eq!(Target::new().text(page), ["n summary{a=b} 2 5 []", "s summary{} 2 5 [(0.5, 1.0), (0.9, NaN)]",]);
}

#[test]
fn openmetrics_types() {
    let page = "# TYPE req counter\n# UNIT req_seconds \nreq_total 3 # {trace_id=\"0123456789abcdef0123456789abcdef\",k=\"v\"} 1\n\
                req_created 1700000000.5\n# TYPE build info\nbuild_info{v=\"1\"} 1\n# TYPE st stateset\nst{st=\"a\"} 1\n\
                # TYPE lat_seconds histogram\n# UNIT lat_seconds seconds\nlat_seconds_bucket{le=\"1.0\"} 1 # {} 0.5\n\
                lat_seconds_bucket{le=\"+Inf\"} 2\nlat_seconds_sum 3\nlat_seconds_count 2\nlat_seconds_created 1\n\
                # TYPE d gaugehistogram\nd_bucket{le=\"1\"} 1\nd_gcount 2\n# EOF\n";
    let record = Target::new().page(page, Some("application/openmetrics-text; version=1.0.0"));
    assert_eq!(record.error, None);
    assert_eq!(
        points(&record),
        [
            "build sum{v=1} 1",
            "d gauge{le=1} 1",
            "d_gcount gauge{} 2",
            "lat_seconds histogram{} 2 Some(3.0) [1.0] [1, 1] since 1000000000 1 exemplars",
            "req_total counter{} 3 since 1700000000500000000 exemplar 16 k=v",
            "st sum{st=a} 1",
        ]
    );
    let unit = metrics(&record).into_iter().find(|metric| metric.name == "lat_seconds").map(|metric| metric.unit);
    assert_eq!(unit.as_deref(), Some("s"));
}

#[test]
fn created_lines_in_text_pages() {
    let mut target = Target::new();
    let page = "# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\nh_created 5\n# TYPE own gauge\n\
                # TYPE own_created gauge\nown_created 7\n# TYPE lone gauge\nlone 1\nlone_created 9\n\
                # TYPE req_total counter\nreq_total 3\nreq_created 4\n# TYPE acc counter\nacc_total 6\nacc_created 8\n";
    assert_eq!(
        target.text(page),
        [
            "acc_total counter{} 6 since 8000000000",
            "h histogram{} 1 Some(1.0) [] [1] since 5000000000",
            "lone gauge{} 9",
            "own_created gauge{} 7",
            "req_created gauge{} 4",
            "req_total counter{} 3",
        ]
    );
}

#[test]
fn a_type_after_its_samples_counts_from_the_next_scrape() {
    let mut target = Target::new();
    let page = "h_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n# TYPE h histogram\n";
    assert_eq!(target.text(page), ["h_bucket gauge{le=+Inf} 1", "h_count gauge{} 1", "h_sum gauge{} 1"]);
    assert_eq!(target.text(page), ["h histogram{} 1 Some(1.0) [] [1]"]);
}

#[test]
fn a_series_that_vanishes_is_said_to_be_gone_once() {
    let mut target = Target::new();
    target.text("a 1\nb{x=\"1\"} 2\nc 3 1700000000000\n");
    assert_eq!(target.text("a 1\n"), ["a gauge{} 1", "b gauge{x=1} None stale"], "own timestamps are not followed");
    assert_eq!(target.text("a 1\n"), ["a gauge{} 1"]);
    let record = target.page("a 1\nb{x=\"1\"} 3\n", None);
    assert_eq!(report(&record), [1, 2, 2, 1]);
    // An empty page is a good one.
    let record = target.page("", None);
    assert_eq!(points(&record), ["a gauge{} None stale", "b gauge{x=1} None stale"]);
    assert_eq!(report(&record), [1, 0, 0, 0]);
}

#[test]
fn a_target_that_is_down_says_so_once_for_its_series() {
    let mut target = Target::new();
    assert_eq!(report(&target.down()), [0; 4]);
    target.text("a 1\n# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_sum 1\nh_count 1\n");
    let record = target.down();
    assert_eq!(record.error.as_deref(), Some("connection refused"));
    assert_eq!(points(&record), ["a gauge{} None stale", "h histogram{} 0 None [1.0] [0, 0] stale"]);
    assert_eq!(report(&record), [0; 4]);
    assert!(points(&target.down()).is_empty());
    assert_eq!(target.text("a 2\n"), ["a gauge{} 2"]);
}

#[test]
fn a_broken_line_fails_the_whole_page_and_the_counts_say_how_far_it_was_read() {
    let mut target = Target::new();
    target.text("a 1\nb 1\n");
    let record = target.page("a 2\nnew 1\nbad{x=\"1} 2\nb 1\n", None);
    assert_eq!(
        record.error.as_deref(),
        Some("line 3: expected a label value after `=`, found an unexpected character")
    );
    assert_eq!(points(&record), ["b gauge{} None stale"], "only what stands after the error is gone");
    assert_eq!(report(&record), [0, 2, 2, 1]);
    assert_eq!(target.text("a 3\n"), ["a gauge{} 3", "new gauge{} None stale"]);
    let record = target.page("a 1\n", Some("application/openmetrics-text"));
    assert!(record.error.is_some_and(|error| error.contains("# EOF")));
}

#[test]
fn duplicates() {
    let mut target = Target::new();
    let record = target.page("g{a=\"1\"} 1\ng{a=\"1\"} 2\nother 3\n", None);
    assert_eq!(points(&record), ["g gauge{a=1} 1", "other gauge{} 3"]);
    assert_eq!(report(&record), [1, 3, 3, 2]);
    assert_eq!(record.warnings, ["`g{a=\\\"1\\\"}` stands twice in the page, the first value is kept"]);
    // The same series written in another way: the last one counts.
    let record = Target::new().page("a{x=\"1\",y=\"2\"} 5\na{y=\"2\",x=\"1\"} 6\nb 1\nb{z=\"\"} 2\n", None);
    assert_eq!(points(&record), ["a gauge{x=1,y=2} 6", "b gauge{} 2"]);
    assert_eq!(report(&record), [1, 4, 4, 4]);
    // A label name that stands twice fails the page.
    for line in ["b{x=\"1\",x=\"1\"} 1\n", "b{__name__=\"c\"} 1\n"] {
        let record = Target::new().page(&format!("a 1\n{line}"), None);
        assert_eq!(report(&record), [0, 2, 1, 1], "{line}");
    }
    // One point has one time.
    let record = Target::new().page("a 1 1000\na 2 2000\n", None);
    assert_eq!(points(&record), ["a gauge{} 1"]);
}

#[test]
fn target_labels_and_honor_labels() {
    let page = "a{team=\"mine\",job=\"own\"} 1\n";
    let mut target = Target::with(rules(&[("team", "rl")]));
    assert_eq!(target.text(page), ["a gauge{exported_job=own,exported_team=mine,team=rl} 1"]);
    let mut honor = rules(&[("team", "rl")]);
    honor.honor_labels = true;
    honor.external = vec![("cluster".into(), "c1".into())];
    let mut target = Target::with(honor);
    let record = target.page(page, None);
    assert_eq!(points(&record), ["a gauge{cluster=c1,team=mine} 1"]);
    let names: Vec<String> = request(&record)
        .resource_metrics
        .iter()
        .map(|of| attributes(&of.resource.as_ref().expect("resource").attributes[..1]))
        .collect();
    assert_eq!(names, ["service.name=own", "service.name=j"]);
    let up = metrics(&record).into_iter().find(|metric| metric.name == "up").expect("up");
    assert_eq!(lines_of(&up), ["up gauge{cluster=c1,team=rl} 1"]);
}

#[test]
fn target_info_and_scopes() {
    let page = "# TYPE target_info gauge\ntarget_info{host=\"h\",job=\"x\"} 1\n\
                a{otel_scope_name=\"lib\",otel_scope_version=\"1\",otel_scope_k=\"v\",z=\"1\"} 1\n";
    let record = Target::new().page(page, None);
    assert_eq!(points(&record), ["a gauge{z=1} 1"]);
    let request = request(&record);
    let resource = request.resource_metrics[0].resource.as_ref().expect("resource");
    assert!(attributes(&resource.attributes).ends_with("exported_job=x,host=h"));
    let scopes: Vec<_> = request.resource_metrics[0].scope_metrics.iter().filter_map(|of| of.scope.as_ref()).collect();
    let lib = scopes.iter().find(|scope| scope.name == "lib").expect("scope");
    assert_eq!((lib.version.as_str(), attributes(&lib.attributes).as_str()), ("1", "k=v"));
}

#[test]
fn timestamps() {
    let mut target = Target::new();
    let far = target.now_ms + 3_600_000;
    let record = target.page(&format!("a 1 1700000000123\nb 2\nc 3 {far}\nzero 1 0\n"), None);
    let time = |name: &str| {
        let metric = metrics(&record).into_iter().find(|metric| metric.name == name)?;
        let Some(metric::Data::Gauge(gauge)) = metric.data else { return None };
        gauge.data_points.first().map(|point| point.time_unix_nano)
    };
    assert_eq!(time("a"), Some(1_700_000_000_123_000_000));
    assert_eq!(time("b"), Some(1_800_000_001_000_000_000));
    assert_eq!(time("c"), None, "too far ahead");
    assert_eq!(time("zero"), Some(0));
    assert_eq!(report(&record), [1, 4, 4, 3]);
    let mut ignoring = rules(&[]);
    ignoring.honor_timestamps = false;
    let record = Target::with(ignoring).page("a 1 5\n", None);
    assert_eq!(metrics(&record).len(), 6);
    assert!(record.warnings.is_empty());
}

#[test]
fn content_types() {
    let om = "a 1\n# EOF\n";
    assert_eq!(Target::new().openmetrics(om), ["a gauge{} 1"]);
    assert_eq!(points(&Target::new().page("a 1\n", Some("text/html"))), ["a gauge{} 1"]);
    let protobuf = Target::new().page("a 1\n", Some("application/vnd.google.protobuf"));
    assert_eq!(report(&protobuf), [0; 4]);
    let mut fallback = rules(&[]);
    fallback.fallback = Some(Dialect::OpenMetrics);
    let record = Target::with(fallback).page("a 1\n", None);
    assert!(record.error.is_some());
}

#[test]
fn names_that_lead_to_the_same_family() {
    let mut target = Target::new();
    // As the reference: what does not fit opens the family anew under its name.
    assert_eq!(target.text("# TYPE x gauge\nx 1\nx_sum 2\n"), ["x gauge{} 2"]);
    let mut target = Target::new();
    assert_eq!(target.text("# TYPE i_like gauge\ni_like_info 3\n"), ["i_like gauge{} 3"]);
}
