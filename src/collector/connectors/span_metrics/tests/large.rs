//! What is counted takes no time that grows with the square of its size (each of these would not end for a long time),
//! no memory of what has been counted, and has no end that it goes beyond.

use bytes::Bytes;
use opentelemetry_proto::tonic::trace::v1::span::Event;

use super::*;

const MANY: usize = 30_000;
const NONE: [bool; 5] = [true; 5];

fn attributes(prefix: &str) -> Vec<KeyValue> {
    (0..MANY).map(|place| attribute(&format!("{prefix}{place}"), "v")).collect()
}

#[test]
fn attributes_of_a_span_its_event_and_its_resource() {
    let dimensions = [globs(&["*"]), Dimensions::default(), Dimensions::default(), Dimensions::default()];
    let every = Settings { dimensions, events: true, excluded: NONE, histogram: None, ..settings() };
    let mut aggregator = Aggregator::new(every, "i".into());
    let event = Event { attributes: attributes("e"), ..Event::default() };
    let one = Span { attributes: attributes("s"), events: vec![event], ..span("a", 1) };
    let mut resource = attributes("r");
    resource.push(attribute("service.name", "s"));
    aggregator.take(&payload(vec![(resource, vec![one])]), 1);
    let flushed = lines(&aggregator.flush(2));
    assert!(flushed[0].contains("s29999=v") && flushed[0].contains(",r29999=v"));
    assert!(flushed[1].contains("e29999=v"));
}

#[test]
fn resources_that_come_and_go() {
    let resources = NonZeroUsize::new(2).expect("not zero");
    let mut aggregator = Aggregator::new(Settings { resources, histogram: None, ..settings() }, "i".into());
    let resource =
        |place| (vec![attribute("service.name", "s"), attribute("host", &format!("h{place}"))], vec![span("a", 1)]);
    let all = payload((0..MANY).map(resource).collect());
    for time in [1, 2, 3] {
        aggregator.take(&all, time);
    }
    let flushed = calls(&aggregator.flush(4));
    assert_eq!(flushed.len(), MANY);
    assert!(flushed.iter().all(|line| line.ends_with(" 3 1-4")));
}

/// A resource is counted for long after its request, whose bytes are not kept for it.
#[test]
fn the_bytes_of_a_request_are_let_go() {
    let dimensions = common(Dimensions { named: named(&[("x", None)]).named, globs: globs(&["h*"]).globs });
    let every = Settings { dimensions, events: true, exemplars: Some(5), ..settings() };
    let mut aggregator = Aggregator::new(every, "i".into());
    let event = Event { name: "e".into(), attributes: vec![attribute("x", "of event")], ..Event::default() };
    let one = Span {
        trace_id: vec![1; 16],
        span_id: vec![1; 8],
        trace_state: "ot=th:8".into(),
        attributes: vec![attribute("x", "y"), attribute("host", "z")],
        events: vec![event],
        ..span("a", 1)
    };
    let list = attribute("list", "l");
    let mut nested = attribute("nested", "");
    nested.value = Some(value(any_value::Value::BytesValue(vec![1, 2, 3])));
    let resource = vec![attribute("service.name", "s"), attribute("x", "z"), list, nested];
    let body = Bytes::from(payload(vec![(resource, vec![one])]).encode());
    aggregator.take(&Payload::decode(Signal::Traces, body.clone()).expect("valid"), 1);
    assert!(body.is_unique());
    let flushed = lines(&aggregator.flush(2));
    assert!(flushed[0].starts_with("[service.name=s,x=z,list=l,nested="), "{flushed:?}");
}

#[test]
fn counts_end_at_the_greatest_number() {
    let sampled = |_| Span { trace_state: "ot=th:ffffffffffffff".into(), ..span("a", 1) };
    for shape in [Shape::Explicit(vec![10.0]), Shape::Exponential(160)] {
        let all = Settings { excluded: NONE, histogram: Some(shape), ..settings() };
        let mut aggregator = Aggregator::new(all, "i".into());
        let mut least = 0;
        for time in [1, 2, 3] {
            aggregator.take(&shop((0..200).map(sampled).collect()), time);
            let payload = aggregator.flush(time);
            let request = ExportMetricsServiceRequest::decode(payload.encode().as_slice()).expect("valid");
            let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
            let Some(metric::Data::Sum(sum)) = &metrics[0].data else { panic!("a sum") };
            assert_eq!(sum.data_points[0].value, Some(number_data_point::Value::AsInt(i64::MAX)));
            let (count, buckets) = match &metrics[1].data {
                Some(metric::Data::Histogram(all)) => (all.data_points[0].count, &all.data_points[0].bucket_counts),
                Some(metric::Data::ExponentialHistogram(all)) => {
                    (all.data_points[0].count, &all.data_points[0].positive.as_ref().expect("buckets").bucket_counts)
                }
                other => panic!("{other:?}"),
            };
            assert!(count >= least && buckets[0] == count, "{count} {buckets:?}");
            least = count;
        }
        assert_eq!(least, u64::MAX);
    }
}
