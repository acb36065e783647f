//! What is counted, and for whom.

use super::*;

#[test]
fn counts_and_durations_grow_from_one_start() {
    let mut aggregator = Aggregator::new(settings(), "i".into());
    aggregator.take(&shop(vec![span("a", 50), span("a", 5), span("b", 300)]), 10);
    let a = "{service.name=shop,span.name=a,span.kind=SPAN_KIND_UNSPECIFIED,status.code=STATUS_CODE_UNSET}";
    let b = a.replace("name=a", "name=b");
    assert_eq!(
        lines(&aggregator.flush(20)),
        [
            format!("[service.name=shop] traces.span.metrics.calls t2 {a} 2 10-20"),
            format!("[service.name=shop] traces.span.metrics.calls t2 {b} 1 10-20"),
            format!("[service.name=shop] traces.span.metrics.duration/ms {a} 2 55 [10.0, 100.0, 250.0] [1, 1, 0, 0]"),
            format!("[service.name=shop] traces.span.metrics.duration/ms {b} 1 300 [10.0, 100.0, 250.0] [0, 0, 0, 1]"),
        ]
    );
    aggregator.take(&shop(vec![span("a", 10)]), 25);
    let flushed = aggregator.flush(30);
    assert_eq!(calls(&flushed), [format!("{a} 3 10-30"), format!("{b} 1 10-30")]);
    assert!(lines(&flushed)[2].ends_with("3 65 [10.0, 100.0, 250.0] [2, 1, 0, 0]"), "bounds belong to their bucket");
    // Without new spans the same is said again.
    assert!(!aggregator.changed());
    assert_eq!(calls(&aggregator.flush(40)), [format!("{a} 3 10-40"), format!("{b} 1 10-40")]);
}

#[test]
fn kinds_status_codes_and_backward_times() {
    let mut aggregator = Aggregator::new(settings(), "i".into());
    let mut backward = span("k", 5);
    std::mem::swap(&mut backward.start_time_unix_nano, &mut backward.end_time_unix_nano);
    let mut odd = span("k", 1);
    (odd.kind, odd.status) = (99, Some(Status { code: 7, ..Status::default() }));
    let mut server = span("k", 1);
    (server.kind, server.status) = (2, Some(Status { code: 2, ..Status::default() }));
    aggregator.take(&shop(vec![backward, odd, server]), 1);
    let flushed = aggregator.flush(2);
    assert_eq!(
        calls(&flushed),
        [
            "{service.name=shop,span.name=k,span.kind=SPAN_KIND_UNSPECIFIED,status.code=STATUS_CODE_UNSET} 1 1-2",
            "{service.name=shop,span.name=k,span.kind=,status.code=} 1 1-2",
            "{service.name=shop,span.name=k,span.kind=SPAN_KIND_SERVER,status.code=STATUS_CODE_ERROR} 1 1-2",
        ]
    );
    assert!(lines(&flushed)[3].contains("} 1 0 [10.0, 100.0, 250.0] [1, 0, 0, 0]"), "a backward span took no time");
}

#[test]
fn dimensions_come_from_the_span_the_resource_or_the_default() {
    let dimensions = common(named(&[("n", None), ("env", Some("")), ("zone", None)]));
    let excluded = [true, false, true, true, true];
    let mut aggregator = Aggregator::new(Settings { dimensions, excluded, ..settings() }, "i".into());
    let with = |list: Vec<KeyValue>| Span { attributes: list, ..span("a", 1) };
    let resource = vec![attribute("service.name", "shop"), attribute("zone", "r")];
    let spans = vec![
        with(vec![number("n", 1), attribute("zone", "s")]),
        with(vec![attribute("n", "1"), attribute("zone", "s")]),
        with(vec![attribute("other", "x")]),
        with(vec![attribute("env", "r")]),
    ];
    aggregator.take(&payload(vec![(resource, spans)]), 1);
    assert_eq!(
        calls(&aggregator.flush(2)),
        ["{span.name=a,n=1i,env=,zone=s} 2 1-2", "{span.name=a,env=,zone=r} 1 1-2", "{span.name=a,env=r,zone=r} 1 1-2",]
    );
}

#[test]
fn spans_that_lack_different_dimensions_are_different_series() {
    let dimensions = common(named(&[("a", None), ("b", None)]));
    let excluded = [true; 5];
    let mut aggregator = Aggregator::new(Settings { dimensions, excluded, ..settings() }, "i".into());
    let with = |name: &str| Span { attributes: vec![attribute(name, "x")], ..span("s", 1) };
    aggregator.take(&shop(vec![with("a"), with("b")]), 1);
    assert_eq!(calls(&aggregator.flush(2)), ["{a=x} 1 1-2", "{b=x} 1 1-2"]);
}

#[test]
fn resources_are_told_apart_by_their_attributes_in_any_order() {
    let of = |list: &[(&str, &str)]| list.iter().map(|(key, value)| attribute(key, value)).collect::<Vec<_>>();
    let mut aggregator = Aggregator::new(settings(), "i".into());
    // Two producers whose stamped resources are equal are one; without a service name nothing counts.
    aggregator.take(
        &payload(vec![
            (of(&[("service.name", "s"), ("run_id", "1")]), vec![span("a", 1)]),
            (of(&[("run_id", "1"), ("service.name", "s")]), vec![span("a", 1)]),
            (of(&[("service.name", "s"), ("run_id", "2")]), vec![span("a", 1)]),
            (of(&[("run_id", "1")]), vec![span("a", 1)]),
            (vec![number("service.name", 5)], vec![span("odd", 1)]),
        ]),
        1,
    );
    let flushed = lines(&aggregator.flush(2));
    let shown: Vec<_> = flushed.iter().filter(|line| line.contains("calls")).collect();
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert!(shown[0].starts_with("[service.name=s,run_id=1]") && shown[0].ends_with(" 2 1-2"));
    assert!(shown[1].starts_with("[service.name=s,run_id=2]") && shown[1].ends_with(" 1 1-2"));
    assert!(shown[2].contains("{service.name=,span.name=odd"));

    let resource_key = vec!["service.name".to_owned()];
    let mut aggregator = Aggregator::new(Settings { resource_key, ..settings() }, "i".into());
    for pid in ["1", "2"] {
        aggregator.take(&payload(vec![(of(&[("service.name", "s"), ("pid", pid)]), vec![span("a", 1)])]), 1);
    }
    let flushed = lines(&aggregator.flush(2));
    assert!(flushed[0].starts_with("[service.name=s,pid=1]") && flushed[0].ends_with(" 2 1-2"), "{flushed:?}");
}

#[test]
fn three_instances_three_flushes_never_fall() {
    let mut aggregator = Aggregator::new(settings(), "i".into());
    for flush in 1..=3_u64 {
        for instance in 0..3 {
            let resource = vec![attribute("service.name", "evals"), number("process.pid", instance)];
            let spans = (0..10).map(|_| span("a", 1)).collect();
            aggregator.take(&payload(vec![(resource, spans)]), flush * 100);
        }
        let shown = calls(&aggregator.flush(flush * 100 + 50));
        assert_eq!(shown.len(), 3);
        let end = format!(" {} 100-{}", flush * 10, flush * 100 + 50);
        assert!(shown.iter().all(|line| line.ends_with(&end)), "{shown:?}");
    }
}
