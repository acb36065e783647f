//! Relabelling of samples, limits, the longer report, short names.

use std::time::Duration;

use super::{Target, attributes, lines_of, metrics, points, report, rules};
use crate::collector::receivers::prometheus::record::{Failure, Limits, Rules, Times};
use crate::collector::receivers::prometheus::relabel::{Action, Names, Pattern, Rule};

fn rule(source: &str, action: Action) -> Rule {
    Rule { sources: vec![source.to_owned()], separator: ";".into(), action, names: Names::Utf8 }
}

fn pattern(text: &str) -> Pattern {
    Pattern::new(text).expect(text)
}

fn limited(limits: Limits) -> Target {
    Target::with(Rules { limits, ..rules(&[]) })
}

#[test]
fn samples_are_relabelled_and_dropped() {
    let rename = Action::Replace { pattern: pattern("b_(.*)"), target: "__name__".into(), replacement: "c_$1".into() };
    let list = [
        rule("__name__", Action::Drop(pattern("noise.*"))),
        rule("__name__", rename),
        rule("", Action::LabelDrop(pattern("x"))),
    ];
    let mut target = Target::with(Rules { relabel: list.into(), ..rules(&[]) });
    let page = "# TYPE b_total counter\na{x=\"1\"} 1\na{x=\"2\"} 2\nb_total 3\nnoise 4\nnoise_2 5\n";
    let record = target.page(page, None);
    // Made equal: the last one counts. Renamed: nothing is known of the new name.
    assert_eq!(points(&record), ["a gauge{} 2", "c_total gauge{} 3"]);
    assert_eq!(report(&record), [1, 5, 3, 3]);
    assert_eq!(report(&target.page(page, None)), [1, 5, 3, 0]);
    // What is dropped is never missed.
    assert_eq!(target.text("a{x=\"1\"} 1\n"), ["a gauge{} 1", "c_total gauge{} None stale"]);
}

#[test]
fn relabelling_may_take_the_name_or_everything() {
    let with = |action| Target::with(Rules { relabel: [rule("", action)].into(), ..rules(&[]) });
    let record = with(Action::LabelDrop(pattern("__name__"))).page("a 1\nb 2\n", None);
    assert!(record.error.is_some_and(|error| error.contains("without a metric name")));
    let record = with(Action::LabelDrop(pattern(".*"))).page("a 1\nb 2\n", None);
    assert_eq!(report(&record), [1, 2, 0, 0]);
    // The job of the target is that of its resource still.
    let record = with(Action::LabelDrop(pattern("job"))).page("a 1\n", None);
    assert_eq!(points(&record), ["a gauge{} 1"]);
}

#[test]
fn a_page_with_too_many_samples_fails_and_is_counted() {
    let mut target = limited(Limits { samples: 2, ..Limits::default() });
    assert_eq!(target.text("a 1\nb 1\n"), ["a gauge{} 1", "b gauge{} 1"]);
    let record = target.page("a 1\nb 1\nc 1\nd 1\n", None);
    assert_eq!(record.error.as_deref(), Some("the page has more samples than `sample_limit` allows (2)"));
    assert!(points(&record).is_empty(), "what was read is not missed");
    assert_eq!(report(&record), [0, 4, 4, 0]);
    // The same line twice counts once, as its second value is never taken.
    let record = target.page("a 1\na 2\nb 1\n", None);
    assert_eq!(report(&record), [1, 3, 3, 0]);
}

#[test]
fn a_sample_beyond_a_limit_of_labels_fails_the_page() {
    for (limits, page, word) in [
        (Limits { labels: 4, ..Limits::default() }, "a{x=\"1\"} 1\nb{x=\"1\",y=\"2\"} 2\n", "line 2: the sample has 5"),
        (Limits { name_length: 8, ..Limits::default() }, "a 1\nb{ninebytes=\"1\"} 1\n", "label_name_length_limit"),
        (
            Limits { value_length: 11, ..Limits::default() },
            "a 1\nb{x=\"123456789012\"} 1\n",
            "label_value_length_limit",
        ),
    ] {
        let record = limited(limits).page(page, None);
        assert!(record.error.as_deref().is_some_and(|error| error.contains(word)), "{:?}", record.error);
        assert_eq!(report(&record), [0, 2, 1, 1], "{word}");
    }
}

#[test]
fn names_of_the_older_kind() {
    let mut target = Target::with(Rules { names: Names::Legacy, ..rules(&[]) });
    assert_eq!(target.text("a:b{c=\"1\"} 1\n"), ["a:b gauge{c=1} 1"]);
    for page in ["{\"a.b\"} 1\n", "a{\"c.d\"=\"1\"} 1\n"] {
        let record = target.page(page, None);
        assert!(record.error.is_some_and(|error| error.contains("is no name of a ")), "{page}");
    }
}

#[test]
fn the_longer_report() {
    let limits = Limits { samples: 7, ..Limits::default() };
    let mut target =
        Target::with(Rules { extra_report: Some(Duration::from_millis(1500)), limits, ..rules(&[("team", "rl")]) });
    let extra = |record: &super::Record| -> Vec<String> {
        let wanted = ["scrape_timeout_seconds", "scrape_sample_limit", "scrape_body_size_bytes"];
        let all = metrics(record);
        let found = all.iter().filter(|metric| wanted.contains(&metric.name.as_str()));
        found
            .flat_map(|metric| {
                lines_of(metric).into_iter().map(|line| format!("{line} {}", attributes(&metric.metadata)))
            })
            .collect()
    };
    let lines = extra(&target.page("a 1\n", None));
    assert_eq!(
        lines,
        [
            "scrape_timeout_seconds gauge{team=rl} 1.5 prometheus.type=unknown",
            "scrape_sample_limit gauge{team=rl} 7 prometheus.type=unknown",
            "scrape_body_size_bytes gauge{team=rl} 4 prometheus.type=unknown",
        ]
    );
    let times = Times { start_ms: target.now_ms + 1000, seconds: 0.1 };
    for (too_large, size) in [(true, "-1"), (false, "0")] {
        let failure = Failure { reason: "no".into(), too_large };
        let lines = extra(&target.memory.record(&target.rules, Err(&failure), times));
        assert!(lines[2].contains(&format!("}} {size} ")), "{lines:?}");
    }
}

#[test]
fn types_and_units_may_be_cut_off_names() {
    let mut target = Target::with(Rules { trim_suffixes: true, ..rules(&[]) });
    let page = "# TYPE req_seconds counter\n# UNIT req_seconds seconds\nreq_seconds_total 1\n# TYPE g gauge\ng_total 2\n# EOF\n";
    assert_eq!(target.openmetrics(page), ["g gauge{} 2", "req counter{} 1"]);
    let record = target.page("a 1\n", None);
    assert!(metrics(&record).iter().any(|metric| metric.name == "scrape_duration"));
}

#[test]
fn series_with_times_of_their_own_are_missed_if_they_are_tracked() {
    let mut target = Target::with(Rules { track_timestamps: true, ..rules(&[]) });
    target.text("a 1 1700000000000\nb 1\n");
    assert_eq!(target.text("b 1\n"), ["a gauge{} None stale", "b gauge{} 1"]);
}
