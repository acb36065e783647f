//! Types, families, content types.

use super::{Target, attributes, metrics, points, report, request, rules};
use crate::collector::receivers::prometheus::exposition::Dialect;
use opentelemetry_proto::tonic::metrics::v1::{NumberDataPoint, metric};

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

/// No start and no exemplar has a time that is not the page's.
#[test]
fn times_that_cannot_be_said_are_no_times() {
    for time in ["1e300", "-1e300", "-1", "18446744074", "+Inf", "-Inf", "NaN"] {
        let exemplar = if time.ends_with(['f', 'N']) { String::new() } else { format!(" # {{a=\"b\"}} 1 {time}") };
        let page = format!(
            "# TYPE c counter\nc_total 1{exemplar}\nc_created {time}\n# TYPE h histogram\nh_bucket{{le=\"+Inf\"}} 1\nh_sum 1\n\
             h_count 1\nh_created {time}\n# TYPE s summary\ns_sum 1\ns_count 1\ns_created {time}\n# EOF\n"
        );
        let record = Target::new().page(&page, Some("application/openmetrics-text"));
        for metric in metrics(&record) {
            let starts: Vec<(u64, u64)> = match metric.data.expect("data") {
                metric::Data::Sum(sum) => {
                    let exemplar =
                        |point: &NumberDataPoint| point.exemplars.first().map_or(0, |found| found.time_unix_nano);
                    sum.data_points.iter().map(|point| (point.start_time_unix_nano, exemplar(point))).collect()
                }
                metric::Data::Histogram(h) => {
                    h.data_points.iter().map(|point| (point.start_time_unix_nano, 0)).collect()
                }
                metric::Data::Summary(s) => s.data_points.iter().map(|point| (point.start_time_unix_nano, 0)).collect(),
                _ => continue,
            };
            assert_eq!(starts, [(0, 0)], "{time}: {}", metric.name);
        }
    }
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
fn names_that_lead_to_the_same_family() {
    let mut target = Target::new();
    // As the reference: what does not fit opens the family anew under its name.
    assert_eq!(target.text("# TYPE x gauge\nx 1\nx_sum 2\n"), ["x gauge{} 2"]);
    // Each such sample anew: what the one before it said is given up.
    let mut target = Target::new();
    assert_eq!(target.text("# TYPE x gauge\nx_sum{a=\"1\"} 1\nx_sum{a=\"2\"} 2\n"), ["x gauge{a=2} 2"]);
    let mut target = Target::new();
    assert_eq!(target.text("x_sum{a=\"1\"} 1\nx_sum{a=\"2\"} 2\n"), ["x_sum gauge{a=1} 1", "x_sum gauge{a=2} 2"]);
    // The exemplar of a sample that is left out stays with the point.
    let mut target = Target::new();
    let page = "# TYPE a counter\na_total 1\na_total 2 1700000000 # {k=\"v\"} 1\n# EOF\n";
    assert_eq!(target.openmetrics(page), ["a_total counter{} 1 exemplar 0 k=v"]);
    let mut target = Target::new();
    assert_eq!(target.text("# TYPE i_like gauge\ni_like_info 3\n"), ["i_like gauge{} 3"]);
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
