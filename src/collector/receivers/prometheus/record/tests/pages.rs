//! Pages one after the other: series that vanish, targets that are down, broken pages, duplicates, timestamps.

use opentelemetry_proto::tonic::metrics::v1::metric;

use super::{Target, metrics, points, report, rules};

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
    // What OTLP cannot say is not said otherwise.
    for (line, openmetrics) in
        [("d 1 9223372036854775807", false), ("d 1 -0.001", true), ("d 1 -1e300", true), ("d 1 1e300", true)]
    {
        let kind = openmetrics.then_some("application/openmetrics-text");
        let record = Target::new().page(&format!("{line}\n{}", if openmetrics { "# EOF\n" } else { "" }), kind);
        assert_eq!(points(&record), [""; 0], "{line}");
        assert_eq!(record.warnings.len(), 1, "{line}: {:?} {:?}", record.warnings, record.error);
    }
    let mut ignoring = rules(&[]);
    ignoring.honor_timestamps = false;
    let record = Target::with(ignoring).page("a 1 5\n", None);
    assert_eq!(metrics(&record).len(), 6);
    assert!(record.warnings.is_empty());
}
