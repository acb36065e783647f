//! `gymrun collector` as a process that scrapes pages and counts spans: what users of other collectors have met.

#[path = "../harness/mod.rs"]
mod harness;
mod pages;
mod span_metrics;

use std::collections::HashMap;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{Metric, number_data_point};
use prost::Message as _;
use serde_json::{Value, json};

use harness::{Collector, GOOD, Sink, eventually_async};
use nix::sys::signal::Signal;
use pages::{Page, Pages};

/// A configuration that scrapes `targets` (`host:port`) each `interval` into `x.jsonl`.
fn config(targets: &[String], interval: &str) -> String {
    let targets = targets.join(", ");
    format!(
        "receivers:\n  prometheus:\n    config:\n      scrape_configs:\n        - job_name: job\n\
         \x20         scrape_interval: {interval}\n          static_configs:\n            - targets: [{targets}]\n\
         processors:\n  transform:\n    error_mode: ignore\n    metric_statements:\n      - context: metric\n\
         \x20       statements:\n          - replace_pattern(name, \"^([^:]+):(.+)$\", \"$${{1}}_$${{2}}\")\n\
         extensions:\n  health_check: {{endpoint: $HEALTH}}\n\
         exporters:\n  file: {{path: $OUT/x.jsonl, flush_interval: 20ms}}\n\
         service:\n  extensions: [health_check]\n  pipelines:\n\
         \x20   metrics: {{receivers: [prometheus], processors: [transform], exporters: [file]}}\n"
    )
}

/// The metrics of a line, by resource: instance, name, the data.
fn metrics(line: &Value) -> Vec<(String, String, Value)> {
    let mut all = Vec::new();
    for resource in line["resourceMetrics"].as_array().into_iter().flatten() {
        let attributes = resource["resource"]["attributes"].as_array().cloned().unwrap_or_default();
        let instance = attributes.iter().find(|attribute| attribute["key"] == "service.instance.id");
        let instance = instance.and_then(|attribute| attribute["value"]["stringValue"].as_str()).unwrap_or_default();
        for metric in resource["scopeMetrics"].as_array().into_iter().flatten().filter_map(|s| s["metrics"].as_array())
        {
            for metric in metric {
                let name = metric["name"].as_str().unwrap_or_default();
                all.push((instance.to_owned(), name.to_owned(), metric.clone()));
            }
        }
    }
    all
}

/// The first point of the metric in the first line that has it.
fn first(lines: &[Value], name: &str) -> Value {
    let found = lines.iter().flat_map(metrics).find(|(_, known, _)| known == name);
    let Some((_, _, metric)) = found else { panic!("no metric {name}") };
    let data = ["gauge", "sum", "histogram", "summary"].into_iter().find_map(|kind| metric.get(kind));
    data.expect("data")["dataPoints"][0].clone()
}

/// One scrape of one page; the lines of the file and what was said.
async fn scrape(page: Page) -> (Vec<Value>, String) {
    let pages = Pages::serve(vec![page]).await;
    let mut collector = Collector::start(&config(&[pages.address()], "60s"), &[]).await;
    pages.wait(1).await;
    eventually_async("a line in the file", async || (!collector.lines_so_far("x.jsonl").is_empty()).then_some(()))
        .await;
    assert_eq!(collector.stop().await, 0);
    (collector.lines("x.jsonl"), collector.stderr())
}

#[tokio::test]
async fn names_with_colons_are_renamed_at_the_first_one_and_keep_their_types() {
    let page = "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 3\n# TYPE vllm:e2e histogram\n\
                vllm:e2e_bucket{le=\"1\"} 1\nvllm:e2e_bucket{le=\"+Inf\"} 2\nvllm:e2e_sum 3\nvllm:e2e_count 2\na:b:c 4\n";
    let (lines, _) = scrape(Page::text(page)).await;
    assert_eq!(first(&lines, "vllm_num_requests_running")["asDouble"], 3);
    assert_eq!(first(&lines, "vllm_e2e")["bucketCounts"], json!(["1", "1"]));
    assert_eq!(first(&lines, "a_b:c")["asDouble"], 4);
}

#[tokio::test]
async fn summaries_without_quantiles_and_buckets_in_any_order() {
    let page = "# TYPE s summary\ns_sum 5\ns_count 2\n# TYPE h histogram\nh_bucket{le=\"2\"} 5\n\
                h_bucket{le=\"1\"} 3\nh_bucket{le=\"+Inf\"} 9\nh_sum 12\nh_count 9\n";
    let (lines, _) = scrape(Page::text(page)).await;
    let summary = first(&lines, "s");
    assert_eq!((&summary["count"], &summary["sum"]), (&json!("2"), &json!(5)));
    assert!(summary.get("quantileValues").is_none());
    let histogram = first(&lines, "h");
    assert_eq!(histogram["explicitBounds"], json!([1, 2]));
    assert_eq!(histogram["bucketCounts"], json!(["3", "2", "4"]));
    assert_eq!(histogram["count"], "9");
}

#[tokio::test]
async fn nan_and_infinity_are_strings_in_strict_json() {
    let page = "n NaN\ni +Inf\n# TYPE s summary\ns{quantile=\"0.5\"} NaN\ns_sum 0\ns_count 0\n";
    let (lines, _) = scrape(Page::text(page)).await;
    assert_eq!(first(&lines, "n")["asDouble"], "NaN");
    assert_eq!(first(&lines, "i")["asDouble"], "Infinity");
    assert_eq!(first(&lines, "s")["quantileValues"][0]["value"], "NaN");
}

#[tokio::test]
async fn nan_and_infinity_are_themselves_in_protobuf() {
    let (pages, sink) = (Pages::serve(vec![Page::text("n NaN\ni +Inf\n")]).await, Sink::start(vec![GOOD]).await);
    let endpoint =
        format!("exporters:\n  otlp_http: {{endpoint: \"{}\", sending_queue: {{enabled: false}}}}", sink.url());
    let text = config(&[pages.address()], "60s");
    let text = text
        .replace("exporters: [file]", "exporters: [file, otlp_http]")
        .replace("\nexporters:\n", &format!("\n{endpoint}\n"));
    let mut collector = Collector::start(&text, &[]).await;
    let seen = sink.wait(1).await;
    assert_eq!(collector.stop().await, 0);
    let request = ExportMetricsServiceRequest::decode(seen[0].body.as_slice()).expect("OTLP");
    let metrics = request.resource_metrics.iter().flat_map(|of| &of.scope_metrics).flat_map(|of| &of.metrics);
    let value = |metric: &Metric| match &metric.data {
        Some(Data::Gauge(gauge)) => match gauge.data_points[0].value {
            Some(number_data_point::Value::AsDouble(value)) => (metric.name.clone(), value),
            _ => panic!("{metric:?}"),
        },
        _ => panic!("{metric:?}"),
    };
    let values: HashMap<String, f64> = metrics.map(value).collect();
    assert!(values["n"].is_nan() && values["i"].is_infinite(), "{values:?}");
}

/// As the reference: the whole page is rejected, and the line is named.
#[tokio::test]
async fn one_bad_line_fails_the_scrape_and_is_named() {
    let good = (0..100).map(|n| format!("g{n} {n}")).collect::<Vec<_>>().join("\n") + "\n";
    let (lines, said) = scrape(Page::text(&format!("{good}bad{{x=\"a\"b\"}} 1\n"))).await;
    assert_eq!(first(&lines, "up")["asDouble"], 0);
    assert_eq!(first(&lines, "scrape_samples_scraped")["asDouble"], 100);
    assert!(!lines.iter().flat_map(metrics).any(|(_, name, _)| name == "g1"));
    assert!(said.contains("is down: line 101: "), "{said}");
}

#[tokio::test]
async fn of_two_equal_lines_the_first_counts_and_one_warning_names_them() {
    let (lines, said) = scrape(Page::text("g{a=\"1\"} 1\ng{a=\"1\"} 2\nother 3\n")).await;
    assert_eq!(first(&lines, "g")["asDouble"], 1);
    assert_eq!(first(&lines, "other")["asDouble"], 3);
    assert_eq!(first(&lines, "up")["asDouble"], 1);
    assert_eq!(said.matches("stands twice").count(), 1, "{said}");
}

#[tokio::test]
async fn a_target_that_comes_late_is_said_to_be_down_and_up_once() {
    let here = Pages::serve(vec![Page::text("a 1\n")]).await;
    let later = harness::free_port();
    let targets = [here.address(), format!("127.0.0.1:{later}")];
    let mut collector = Collector::start(&config(&targets, "1s"), &[]).await;
    here.wait(3).await;
    eventually_async("it is asked in vain", async || collector.stderr().contains("cannot connect").then_some(())).await;
    let late = Pages::serve_on(later, vec![Page::text("b 1\n")]).await;
    late.wait(2).await;
    assert_eq!(collector.stop().await, 0);
    let (lines, said) = (collector.lines("x.jsonl"), collector.stderr());
    let ups = |target: &str| -> Vec<f64> {
        let of_target = |(instance, name, metric): (String, String, Value)| {
            let value = metric["gauge"]["dataPoints"][0]["asDouble"].as_f64();
            (instance == target && name == "up").then_some(value).flatten()
        };
        lines.iter().flat_map(metrics).filter_map(of_target).collect()
    };
    let (first, second) = (ups(&targets[0]), ups(&targets[1]));
    assert!(first.len() >= 3 && first.iter().all(|up| *up > 0.0), "{first:?}");
    assert!(second.contains(&0.0) && second.last().is_some_and(|up| *up > 0.0), "{second:?}");
    assert_eq!(said.matches("cannot connect").count(), 1, "{said}");
    assert_eq!(said.matches(" is up again").count(), 1, "{said}");
}

#[tokio::test]
async fn pages_may_be_packed_have_no_type_or_stand_behind_a_redirect() {
    for page in [Page::text("a 1\n").packed(), Page::text("a 1\n").typed(None), Page::text("a 1\n").redirected()] {
        let (lines, _) = scrape(page).await;
        assert_eq!(first(&lines, "a")["asDouble"], 1);
        assert_eq!(first(&lines, "up")["asDouble"], 1);
    }
}

#[tokio::test]
async fn a_page_without_samples_is_good_and_is_said_once() {
    for page in ["", "# nothing here\n"] {
        let pages = Pages::serve(vec![Page::text(page)]).await;
        let mut collector = Collector::start(&config(&[pages.address()], "1s"), &[]).await;
        pages.wait(3).await;
        assert_eq!(collector.stop().await, 0);
        assert_eq!(first(&collector.lines("x.jsonl"), "up")["asDouble"], 1);
        let said = collector.stderr();
        assert_eq!(said.matches("the page has no samples").count(), 1, "{said}");
    }
}

#[tokio::test]
async fn exemplars_and_the_end_of_openmetrics_pages() {
    let id = "0123456789abcdef0123456789abcdef";
    let page = format!("# TYPE a counter\na_total 1 # {{trace_id=\"{id}\"}} 0.5\n# EOF\n");
    let openmetrics = Some("application/openmetrics-text; version=1.0.0");
    let (lines, _) = scrape(Page::text(&page).typed(openmetrics)).await;
    assert_eq!(first(&lines, "a_total")["exemplars"][0]["traceId"], id);
    let (lines, said) = scrape(Page::text("a 1\n").typed(openmetrics)).await;
    assert_eq!(first(&lines, "up")["asDouble"], 0);
    assert!(said.contains("# EOF"), "{said}");
    // In the older format an exemplar is a broken line, as in the reference.
    let (lines, _) = scrape(Page::text(&page)).await;
    assert_eq!(first(&lines, "up")["asDouble"], 0);
}

/// The last counters of a short job: one more scrape is made on request, and is written when the answer comes.
#[tokio::test]
async fn a_forced_scrape_gets_the_last_counters() {
    let pages =
        Pages::serve(vec![Page::text("# TYPE n counter\nn 1\n"), Page::text("# TYPE n counter\nn 1000\n")]).await;
    let mut collector = Collector::start(&config(&[pages.address()], "30s"), &[]).await;
    pages.wait(1).await;
    assert_eq!(collector.admin("/-/scrape").await.0, 200);
    assert_eq!(collector.stop().await, 0);
    let lines = collector.lines("x.jsonl");
    let last = lines.last().expect("a line");
    assert_eq!(first(std::slice::from_ref(last), "n")["asDouble"], 1000);
    assert!(!lines.iter().any(|line| line.to_string().contains("\"flags\":1")), "the stop makes nothing stale");
    let delivery = collector.delivery();
    assert_eq!(delivery["metrics"]["received"], delivery["metrics"]["written"], "{delivery}");
}

/// After the last scrape nobody looks whether the target is still there; asked for once more, it is.
#[tokio::test]
async fn after_the_last_scrape_there_is_none_unless_it_is_asked_for() {
    let (ours, other) = (Pages::serve(vec![Page::text("n 1\n")]).await, Pages::serve(vec![Page::text("n 1\n")]).await);
    let text = config(&[ours.address()], "100ms");
    let mut collector = Collector::start(&text, &[]).await;
    let mut another = Collector::start(&config(&[other.address()], "100ms"), &[]).await;
    ours.wait(2).await;
    assert_eq!(collector.admin("/-/scrape?last=true").await.0, 200);
    let (at_last, then) = (ours.seen(), other.seen());
    // As long as another one scrapes ten times more.
    other.wait(then + 10).await;
    assert_eq!(ours.seen(), at_last);
    assert_eq!(collector.admin("/-/scrape").await.0, 200);
    assert_eq!(ours.seen(), at_last + 1);
    // Nor is there after a reload: the targets go all the same.
    collector.signal(Signal::SIGHUP);
    eventually_async("it is ready again", async || {
        (collector.stderr().matches("everything is ready").count() == 2).then_some(())
    })
    .await;
    let then = other.seen();
    other.wait(then + 20).await;
    assert_eq!(ours.seen(), at_last + 1);
    assert_eq!((collector.stop().await, another.stop().await), (0, 0));
}

#[tokio::test]
async fn what_is_not_supported_is_refused_with_its_line() {
    let text =
        config(&["127.0.0.1:1".into()], "0s10m").replace("job_name: job", "job_name: job\n          relabel: []");
    let mut collector = Collector::spawn(&text, &[]);
    assert_eq!(collector.ended().await, 1);
    let said = collector.stderr();
    assert!(
        said.contains("its units do not stand from large to small") && said.contains("unknown key `relabel`"),
        "{said}"
    );
    assert!(said.contains("collector.yaml:6\n"), "{said}");
}
