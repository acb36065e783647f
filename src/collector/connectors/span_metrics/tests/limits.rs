//! Limits, ages, and delta temporality.

use super::*;

fn service(name: &str) -> Payload {
    payload(vec![(vec![attribute("service.name", name)], vec![span("a", 1)])])
}

const ONLY_NAMES: [bool; 5] = [true, false, true, true, true];

#[test]
fn what_is_beyond_the_limit_of_series_is_counted_together() {
    let limited = Settings { cardinality_limit: 2, excluded: ONLY_NAMES, ..settings() };
    let mut aggregator = Aggregator::new(limited, "i".into());
    aggregator.take(&shop(["a", "b", "c", "d", "a"].map(|name| span(name, 1)).into()), 1);
    assert_eq!(
        calls(&aggregator.flush(2)),
        ["{span.name=a} 2 1-2", "{span.name=b} 1 1-2", "{otel.metric.overflow=true} 2 1-2"]
    );
    // It stays so: a series that came too late stays in the rest.
    aggregator.take(&shop(vec![span("c", 1), span("b", 1)]), 3);
    assert_eq!(
        calls(&aggregator.flush(4)),
        ["{span.name=a} 2 1-4", "{span.name=b} 2 1-4", "{otel.metric.overflow=true} 3 1-4"]
    );
}

#[test]
fn a_resource_too_many_is_handed_on_once_more_and_may_come_back() {
    let resources = NonZeroUsize::new(2).expect("not zero");
    let mut aggregator = Aggregator::new(Settings { resources, ..settings() }, "i".into());
    for (time, name) in ["a", "b", "c"].into_iter().enumerate() {
        aggregator.take(&service(name), time as u64);
    }
    assert_eq!(calls(&aggregator.flush(10)).len(), 3, "nothing is lost before it was handed on");
    assert_eq!(calls(&aggregator.flush(20)).len(), 2);
    // `b` is the oldest and goes for `a`, which begins anew; before it is gone it comes back, and `c` goes.
    aggregator.take(&service("a"), 25);
    aggregator.take(&service("b"), 26);
    let all = calls(&aggregator.flush(30));
    let ends: Vec<_> = all.iter().map(|line| line.rsplit_once("} ").expect("attributes").1).collect();
    assert_eq!(ends, ["1 25-30", "2 1-30", "1 2-30"]);
    assert_eq!(calls(&aggregator.flush(40)).len(), 2);
}

#[test]
fn resources_and_series_that_are_too_old_are_forgotten() {
    let age = Duration::from_nanos(50);
    let mut aggregator = Aggregator::new(Settings { metrics_expiration: age, ..settings() }, "i".into());
    aggregator.take(&service("a"), 100);
    // Seen to be old at 160, it is handed on once more: so does the reference.
    assert_eq!([110, 160, 170, 180].map(|time| calls(&aggregator.flush(time)).len()), [1, 1, 1, 0]);
    let expiring = Settings { series_expiration: age, excluded: ONLY_NAMES, ..settings() };
    let mut aggregator = Aggregator::new(expiring, "i".into());
    aggregator.take(&shop(vec![span("a", 1), span("b", 1)]), 100);
    aggregator.take(&shop(vec![span("b", 1)]), 140);
    assert_eq!(calls(&aggregator.flush(160)), ["{span.name=a} 1 100-160", "{span.name=b} 2 100-160"]);
    assert_eq!(calls(&aggregator.flush(170)), ["{span.name=b} 2 100-170"]);
    aggregator.take(&shop(vec![span("a", 1)]), 180);
    assert_eq!(calls(&aggregator.flush(185)), ["{span.name=b} 2 100-185", "{span.name=a} 1 180-185"]);
}

#[test]
fn delta_counts_each_interval_alone() {
    let mut aggregator = Aggregator::new(Settings { temporality: Temporality::Delta, ..settings() }, "i".into());
    aggregator.take(&shop(vec![span("a", 1), span("a", 1)]), 10);
    assert!(lines(&aggregator.flush(20))[0].ends_with(" 2 10-20"));
    aggregator.take(&shop(vec![span("a", 1)]), 25);
    let flushed = lines(&aggregator.flush(30));
    assert!(flushed[0].contains(" t1 ") && flushed[0].ends_with(" 1 20-30"), "{flushed:?}");
    assert!(lines(&aggregator.flush(40)).is_empty());
    // After a gap the next point begins where the last one ended.
    aggregator.take(&shop(vec![span("a", 1)]), 45);
    assert!(lines(&aggregator.flush(50))[0].ends_with(" 1 30-50"));
    // Each resource on its own.
    aggregator.take(
        &payload(vec![
            (vec![attribute("service.name", "shop"), attribute("host", "1")], vec![span("a", 1)]),
            (vec![attribute("service.name", "shop"), attribute("host", "2")], vec![span("a", 1)]),
        ]),
        55,
    );
    let flushed = lines(&aggregator.flush(60));
    assert!(flushed.iter().filter(|line| line.contains("calls")).all(|line| line.ends_with(" 1 55-60")), "{flushed:?}");
}

#[test]
fn times_of_the_last_points_are_kept_for_so_many_series() {
    let timestamps = NonZeroUsize::new(1).expect("not zero");
    let delta =
        Settings { temporality: Temporality::Delta, timestamps, excluded: ONLY_NAMES, histogram: None, ..settings() };
    let mut aggregator = Aggregator::new(delta, "i".into());
    for (time, expected) in [(10, ["10-20", "10-20"]), (30, ["30-40", "20-40"])] {
        aggregator.take(&shop(vec![span("a", 1), span("b", 1)]), time);
        let flushed = lines(&aggregator.flush(time + 10));
        for (line, end) in flushed.iter().zip(expected) {
            assert!(line.ends_with(end), "{flushed:?}");
        }
    }
}
