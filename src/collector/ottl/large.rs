//! No statement takes time that grows with the square of what it gets: each of these would not end for a long time.

use bytes::Bytes;

use super::{ErrorMode, Group, Level, Scene, Style, walk};
use crate::otlp::wire::Writer;
use crate::otlp::{AnyValue, Edit, Items, KeyValue, Metric, Payload, Records, ResourceItems, ScopeItems, Signal, Text};

const MANY: usize = 20_000;

fn payload(signal: Signal, items: Items) -> Payload {
    let scope = ScopeItems { scope: Bytes::new(), schema_url: Text::default(), items };
    let mut payload = Payload::new(signal);
    payload.resources.push(ResourceItems { scopes: vec![scope], ..ResourceItems::default() });
    payload
}

/// Runs the statements on each item; `look` sees it behind them.
fn run(payload: &mut Payload, level: Level, statements: &[&str], look: &mut dyn FnMut(&mut Scene)) {
    let group = Group::compile(payload.signal, Style::Given(level), statements, &[], ErrorMode::Propagate);
    let group = group.unwrap_or_else(|wrong| panic!("{wrong:?}"));
    let walked = walk(payload, level, &mut |scene| {
        group.run(scene, &|_| ())?;
        look(scene);
        Ok(true)
    });
    walked.unwrap_or_else(|why| panic!("{statements:?}: {why}"));
}

/// A record with many attributes `k0`, `k1`, ... and the same as JSON in its body.
fn log() -> Payload {
    let mut record = Writer::new();
    let body: Vec<String> = (0..MANY).map(|place| format!(r#""k{place}":"v""#)).collect();
    record.message_field(5, |value| value.bytes_field(1, format!("{{{}}}", body.join(",")).as_bytes()));
    for place in 0..MANY {
        record.message_field(6, |attribute| KeyValue::new(format!("k{place}"), "v").encode(attribute));
    }
    payload(Signal::Logs, Items::Records([record.into_bytes()].into_iter().collect()))
}

#[test]
fn editors_and_comparisons_of_large_maps() {
    let log = log();
    for (statement, map, count) in [
        (r#"merge_maps(cache, ParseJSON(body.string), "upsert")"#, "cache", MANY + 1),
        (r#"merge_maps(cache, ParseJSON(body.string), "insert")"#, "cache", MANY + 1),
        (r#"merge_maps(cache, ParseJSON(body.string), "update")"#, "cache", MANY + 1),
        // The source is around the target.
        (r#"merge_maps(cache["in"], cache, "upsert")"#, r#"cache["in"]"#, MANY + 2),
        ("flatten(cache)", "cache", MANY + 1),
        (r#"flatten(cache, "p", 2)"#, "cache", MANY + 1),
        ("flatten(cache, resolve_conflicts=true)", "cache", MANY + 1),
        (r#"replace_all_patterns(cache, "key", "k", "l")"#, "cache", MANY + 1),
        (r#"replace_all_patterns(cache, "value", "v", "w")"#, "cache", MANY + 1),
        (r#"replace_all_matches(cache, "*", "w")"#, "cache", MANY + 1),
        ("truncate_all(cache, 0)", "cache", MANY + 1),
        (r#"limit(cache, 10000, ["k0", "k19999"])"#, "cache", 10_000),
        (r#"keep_keys(cache, ["k0", "k19999"])"#, "cache", 2),
        (r#"keep_matching_keys(cache, "^k1")"#, "cache", 11_111),
        (r#"delete_matching_keys(cache, "^k1")"#, "cache", MANY + 1 - 11_111),
        ("set(cache, {}) where attributes == ParseJSON(body.string)", "cache", 0),
    ] {
        let fill = [r#"merge_maps(cache, attributes, "upsert")"#, r#"set(cache["in"], {"a": 1})"#];
        let counted = format!(r#"set(cache["count"], Len({map}))"#);
        let mut found = None;
        run(&mut log.clone(), Level::Log, &[fill[0], fill[1], statement, &counted], &mut |scene| {
            found = scene.cache.drain(..).find(|entry| entry.key == "count").map(|entry| entry.value);
        });
        assert_eq!(found, i64::try_from(count).ok().map(AnyValue::Int), "{statement}");
    }
}

/// What is around an item is not gone through for each of them.
#[test]
fn fields_of_the_span_for_each_of_its_events() {
    let mut span = Writer::new();
    for _ in 0..MANY {
        span.message_field(11, |event| event.bytes_field(2, b"e"));
    }
    span.bytes_field(5, b"name");
    let mut spans = payload(Signal::Traces, Items::Records([span.into_bytes()].into_iter().collect()));
    let statements = [
        r#"set(attributes["name"], span.name)"#,
        r#"set(attributes["count"], Len(span.events))"#,
        r#"set(attributes["absent"], span.attributes["absent"])"#,
        r#"set(span.status.message, "said")"#,
    ];
    let mut visits = 0;
    run(&mut spans, Level::SpanEvent, &statements, &mut |_| visits += 1);
    assert_eq!(visits, MANY);
    let Items::Records(records) = &spans.resources[0].scopes[0].items else { panic!("records") };
    let span = Edit::new(Bytes::copy_from_slice(records.iter().next().expect("a span")));
    let events = span.messages(11);
    assert_eq!((events.len(), span.text(5), Edit::new(span.inner(15)).text(2)), (MANY, "name".into(), "said".into()));
    let last = Edit::new(events[MANY - 1].clone());
    assert_eq!(last.attribute(3, b"name"), Some("name".into()));
    assert_eq!(last.attribute(3, b"count"), i64::try_from(MANY).ok().map(AnyValue::Int));
}

#[test]
fn fields_of_the_metric_for_each_of_its_points() {
    let mut rest = Writer::new();
    rest.message_field(7, |sum| {
        for _ in 0..MANY {
            sum.message_field(1, |point| point.fixed64_field(6, 1));
        }
        sum.bool_field(3, true);
        sum.varint_field(2, 1);
    });
    let mut metrics = payload(Signal::Metrics, Items::Metrics(vec![Metric::new("m", rest.into_bytes())]));
    let statements = [
        r#"set(attributes["rises"], metric.is_monotonic)"#,
        r#"set(attributes["count"], Len(metric.data_points))"#,
        "set(metric.is_monotonic, false)",
        "set(metric.aggregation_temporality, 2)",
        r#"set(metric.description, "said")"#,
    ];
    let mut visits = 0;
    run(&mut metrics, Level::DataPoint, &statements, &mut |_| visits += 1);
    assert_eq!(visits, MANY);
    let Items::Metrics(metrics) = &metrics.resources[0].scopes[0].items else { panic!("metrics") };
    let sum = Edit::new(Edit::new(metrics[0].rest().clone()).inner(7));
    assert_eq!((metrics[0].data_points(), sum.bits(2), sum.bits(3)), (MANY, 2, 0));
    let first = Edit::new(sum.messages(1)[0].clone());
    assert_eq!(first.attribute(7, b"rises"), Some(true.into()));
    assert_eq!(first.attribute(7, b"count"), i64::try_from(MANY).ok().map(AnyValue::Int));
}

/// What a client sends is in no message unless it is short.
#[test]
fn messages_do_not_repeat_long_texts() {
    let prompt = format!("tell me a secret {}", "x".repeat(500));
    let mut record = Writer::new();
    record.message_field(5, |value| value.bytes_field(1, prompt.as_bytes()));
    record.message_field(6, |attribute| KeyValue::new("list", AnyValue::Array(vec![1.into()])).encode(attribute));
    let payload = payload(Signal::Logs, Items::Records([record.into_bytes()].into_iter().collect()));
    for statement in [
        r#"set(cache["a"], Int(body.string))"#,
        r#"set(cache["a"], Double(body.string))"#,
        r#"set(cache["a"], Bool(body.string))"#,
        r#"set(cache["a"], ParseJSON(body.string))"#,
        r#"set(cache["a"], ParseJSON("{}")[body.string])"#,
        r#"set(cache["a"], IsMatch("a", Concat(["(", body.string], "")))"#,
        r#"replace_pattern(body.string, Concat(["(", body.string], ""), "")"#,
        r#"replace_match(body.string, Concat(["[", body.string], ""), "")"#,
        r#"replace_pattern(body.string, "tell", "b", SHA256, body.string)"#,
        "set(trace_id.string, body.string)",
        "set(span_id.string, body.string)",
        r#"set(attributes["list"][body.string], 1)"#,
        r#"set(body.string, attributes["list"][body.string])"#,
    ] {
        let group = Group::compile(Signal::Logs, Style::Given(Level::Log), &[statement], &[], ErrorMode::Propagate);
        let group = group.unwrap_or_else(|wrong| panic!("{statement}: {wrong:?}"));
        let failure = walk(&mut payload.clone(), Level::Log, &mut |scene| group.run(scene, &|_| ()).map(|()| true));
        let why = failure.expect_err(statement);
        assert!(!why.contains("secret") && why.len() < 300, "{why}");
    }
}

/// The keys of a flat map repeat those around them.
#[test]
fn a_flat_map_stays_in_bounds() {
    let long = "x".repeat(1 << 20);
    let inner = AnyValue::Map((0..1000).map(|place| KeyValue::new(format!("k{place}"), "v")).collect());
    let mut record = Writer::new();
    record.message_field(6, |attribute| KeyValue { key: long.into(), value: inner }.encode(attribute));
    let records: Records = [record.into_bytes()].into_iter().collect();
    let mut payload = payload(Signal::Logs, Items::Records(records));
    let group =
        Group::compile(Signal::Logs, Style::Given(Level::Log), &["flatten(attributes)"], &[], ErrorMode::Propagate);
    let group = group.expect("compiles");
    let failure = walk(&mut payload, Level::Log, &mut |scene| group.run(scene, &|_| ()).map(|()| true));
    assert!(failure.is_err_and(|why| why.contains("64 MiB")));
}
