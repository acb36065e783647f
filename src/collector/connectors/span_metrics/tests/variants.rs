//! Events, exemplars, exponential histograms, dimensions of single metrics and by pattern, scopes, sampling.

use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::trace::v1::span::Event;

use super::*;

const NONE: [bool; 5] = [true; 5];

fn with(attributes: Vec<KeyValue>, span: Span) -> Span {
    Span { attributes, ..span }
}

/// The lines without the resource and the namespace.
fn short(aggregator: &mut Aggregator, time: u64) -> Vec<String> {
    let strip = |line: &String| line.split_once("traces.span.metrics.").expect("a name").1.to_owned();
    lines(&aggregator.flush(time)).iter().map(strip).collect()
}

#[test]
fn events_have_a_metric_of_their_own() {
    let events = named(&[("kind", None), ("level", Some("none"))]);
    let dimensions = [named(&[("env", None)]), Dimensions::default(), Dimensions::default(), events];
    let with_events = Settings { events: true, dimensions, excluded: NONE, histogram: None, ..settings() };
    let mut aggregator = Aggregator::new(with_events, "i".into());
    let event = |attributes: Vec<KeyValue>| Event { attributes, ..Event::default() };
    let mut one = with(vec![attribute("level", "of span")], span("a", 1));
    one.events =
        vec![event(vec![attribute("kind", "k"), attribute("level", "of event"), attribute("env", "of event")])];
    let mut two = span("b", 1);
    two.events = vec![event(vec![attribute("kind", "k")]), event(vec![]), event(vec![attribute("kind", "k")])];
    let resource =
        vec![attribute("service.name", "s"), attribute("env", "of resource"), attribute("kind", "of resource")];
    aggregator.take(&payload(vec![(resource, vec![one, two, span("c", 1)])]), 1);
    assert_eq!(
        short(&mut aggregator, 2),
        [
            "calls t2 {env=of resource} 3 1-2",
            "events t2 {env=of event,kind=k,level=of span} 1 1-2",
            "events t2 {env=of resource,kind=k,level=none} 2 1-2",
            "events t2 {env=of resource,kind=of resource,level=none} 1 1-2",
        ]
    );
}

#[test]
fn exemplars_are_the_first_spans_of_an_interval_that_have_a_trace() {
    let with_exemplars = Settings { exemplars: Some(2), excluded: NONE, cardinality_limit: 1, ..settings() };
    let dimensions = common(named(&[("x", None)]));
    let mut aggregator = Aggregator::new(Settings { dimensions, ..with_exemplars }, "i".into());
    let traced =
        |id: u8, milliseconds| Span { trace_id: vec![id; 16], span_id: vec![id; 8], ..span("a", milliseconds) };
    let rest = with(vec![attribute("x", "1")], traced(9, 5));
    aggregator.take(&shop(vec![traced(1, 5), span("a", 6), traced(0, 7), traced(2, 20), traced(3, 30), rest]), 1);
    let shown = short(&mut aggregator, 2);
    assert_eq!(shown[0], "calls t2 {} 5 1-2 *5@2:Some(1) *20@2:Some(2)");
    assert_eq!(shown[1], "calls t2 {otel.metric.overflow=true} 1 1-2");
    assert!(shown[2].ends_with(" *5@2:Some(1) *20@2:Some(2)"), "{shown:?}");
    aggregator.take(&shop(vec![traced(4, 1)]), 3);
    assert_eq!(short(&mut aggregator, 4)[0], "calls t2 {} 6 1-4 *1@4:Some(4)");
}

#[test]
fn exponential_histograms() {
    let mut aggregator =
        Aggregator::new(Settings { histogram: Some(Shape::Exponential(4)), excluded: NONE, ..settings() }, "i".into());
    aggregator.take(&shop([0, 1, 2, 4, 1000, 2].map(|time| span("a", time)).into()), 1);
    assert_eq!(short(&mut aggregator, 2)[1], "duration/ms {} 6 1009 0.0-1000.0 scale -2 zeros 1 from -1 [1, 3, 0, 1]");
    let mut zeros =
        Aggregator::new(Settings { histogram: Some(Shape::Exponential(4)), excluded: NONE, ..settings() }, "i".into());
    zeros.take(&shop(vec![span("a", 0)]), 1);
    assert_eq!(short(&mut zeros, 2)[1], "duration/ms {} 1 0 0.0-0.0 scale 0 zeros 1 from 0 []");
}

#[test]
fn calls_and_durations_may_have_dimensions_of_their_own() {
    let dimensions = [named(&[("a", None)]), named(&[("c", Some("no"))]), named(&[("d", None)]), Dimensions::default()];
    let mut aggregator = Aggregator::new(Settings { dimensions, excluded: NONE, ..settings() }, "i".into());
    let spans = [("1", "1"), ("1", "2"), ("2", "2")]
        .map(|(c, d)| with(vec![attribute("a", "x"), attribute("c", c), attribute("d", d)], span("s", 50)));
    aggregator.take(&shop(spans.into()), 1);
    assert_eq!(
        short(&mut aggregator, 2),
        [
            "calls t2 {a=x,c=1} 2 1-2",
            "calls t2 {a=x,c=2} 1 1-2",
            "duration/ms {a=x,d=1} 1 50 [10.0, 100.0, 250.0] [0, 1, 0, 0]",
            "duration/ms {a=x,d=2} 2 100 [10.0, 100.0, 250.0] [0, 2, 0, 0]",
        ]
    );
}

#[test]
fn patterns_take_attributes_of_spans_and_of_resources() {
    let dimensions = common(globs(&["http.*", "k?"]));
    let mut aggregator =
        Aggregator::new(Settings { dimensions, excluded: NONE, histogram: None, ..settings() }, "i".into());
    let resource =
        vec![attribute("service.name", "s"), attribute("k1", "r"), attribute("http.a", "r"), attribute("z", "r")];
    let spans = vec![
        with(vec![attribute("k2", "s"), attribute("http.a", "s"), attribute("http.a.b", "s")], span("s", 1)),
        with(vec![number("http.a", 5)], span("s", 1)),
        with(vec![attribute("http.a", "5")], span("s", 1)),
    ];
    aggregator.take(&payload(vec![(resource, spans)]), 1);
    assert_eq!(short(&mut aggregator, 2), ["calls t2 {http.a=s,k2=s,k1=r} 1 1-2", "calls t2 {http.a=5i,k1=r} 2 1-2"]);
}

#[test]
fn the_first_scope_of_a_series_is_shown_if_it_is_listed() {
    let scopes = vec!["lib".to_owned()];
    let mut aggregator =
        Aggregator::new(Settings { scopes, excluded: NONE, histogram: None, ..settings() }, "i".into());
    let of = |name: &str, version: &str, service: &str| {
        let scope =
            InstrumentationScope { name: name.into(), version: version.into(), ..InstrumentationScope::default() };
        let spans = vec![span("a", 1)];
        let scope_spans = vec![ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() }];
        let resource = Some(Resource { attributes: vec![attribute("service.name", service)], ..Resource::default() });
        let resource_spans = vec![ResourceSpans { resource, scope_spans, ..ResourceSpans::default() }];
        let request = ExportTraceServiceRequest { resource_spans };
        Payload::decode(Signal::Traces, request.encode_to_vec()).expect("valid")
    };
    for payload in [of("lib", "2", "a"), of("other", "1", "a"), of("lib", "", "b"), of("other", "", "c")] {
        aggregator.take(&payload, 1);
    }
    assert_eq!(
        short(&mut aggregator, 2),
        [
            "calls t2 {span.instrumentation.scope.name=lib,span.instrumentation.scope.version=2} 2 1-2",
            "calls t2 {span.instrumentation.scope.name=lib} 1 1-2",
            "calls t2 {} 1 1-2",
        ]
    );
}

#[test]
fn a_sampled_span_stands_for_those_that_were_left_out() {
    let sampled = |state: &str| Span { trace_state: state.into(), ..span("a", 50) };
    let spans = || shop(vec![sampled("ot=th:8"), sampled(""), sampled("ot=th:c"), sampled("ot=nonsense")]);
    let mut aggregator = Aggregator::new(Settings { excluded: NONE, ..settings() }, "i".into());
    aggregator.take(&spans(), 1);
    assert_eq!(
        short(&mut aggregator, 2),
        ["calls t2 {} 8 1-2", "duration/ms {} 8 400 [10.0, 100.0, 250.0] [0, 8, 0, 0]"]
    );
    let method = Settings { sampling_method: true, excluded: NONE, histogram: None, ..settings() };
    let mut aggregator = Aggregator::new(method, "i".into());
    aggregator.take(&spans(), 1);
    assert_eq!(
        short(&mut aggregator, 2),
        ["calls t2 {sampling.method=extrapolated} 6 1-2", "calls t2 {sampling.method=counted} 2 1-2"]
    );
}
