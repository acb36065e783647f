//! What nobody touches is not copied: items stay slices of the request's bytes all the way, whatever happens beside
//! them.

use bytes::Bytes;
use gymrun::collector::fuzzing::run_statement;
use gymrun::otlp::wire::Writer;
use gymrun::otlp::{AnyValue, Items, Payload, Revision, Signal};

/// A request of one resource and scope with items of these names; a metric has one point.
fn request(signal: Signal, names: &[&str]) -> Bytes {
    let mut request = Writer::new();
    request.message_field(1, |entry| {
        entry.message_field(1, |resource| {
            resource.message_field(1, |attribute| {
                attribute.bytes_field(1, b"service.name");
                attribute.message_field(2, |value| value.bytes_field(1, b"shop"));
            });
        });
        entry.message_field(2, |scope| {
            scope.message_field(1, |scope| scope.bytes_field(1, b"library"));
            for name in names {
                scope.message_field(2, |item| match signal {
                    Signal::Traces => item.bytes_field(5, name.as_bytes()),
                    Signal::Logs => item.bytes_field(3, name.as_bytes()),
                    Signal::Metrics => {
                        item.bytes_field(1, name.as_bytes());
                        item.message_field(5, |gauge| gauge.message_field(1, |point| point.double_field(4, 1.5)));
                    }
                });
            }
        });
    });
    request.into_bytes()
}

/// For each item, whether it stands in the request.
fn shared(request: &Bytes, payload: &Payload) -> Vec<bool> {
    let inside = |bytes: &[u8]| request.as_ptr_range().contains(&bytes.as_ptr());
    let scopes = payload.resources.iter().flat_map(|entry| &entry.scopes);
    let items = scopes.flat_map(|scope| match &scope.items {
        Items::Records(records) => records.iter().map(inside).collect::<Vec<_>>(),
        Items::Metrics(metrics) => {
            metrics.iter().map(|metric| inside(metric.rest()) && inside(metric.name.as_bytes())).collect()
        }
    });
    items.collect()
}

#[test]
fn a_request_is_taken_up_and_divided_without_copying() {
    for signal in Signal::ALL {
        let request = request(signal, &["a", "b", "c"]);
        let payload = Payload::decode(signal, request.clone()).expect("valid");
        assert_eq!(shared(&request, &payload), [true; 3], "{signal:?}");
        let entry = &payload.resources[0];
        let AnyValue::String(text) = &entry.resource.attributes[0].value else { panic!("a text") };
        for bytes in [text.as_bytes(), &entry.scopes[0].scope] {
            assert!(request.as_ptr_range().contains(&bytes.as_ptr()), "{signal:?}");
        }
        let copy = payload.clone();
        assert_eq!(shared(&request, &copy), [true; 3], "a copy for a second pipeline, {signal:?}");
        let parts: Vec<Vec<bool>> = payload.into_chunks(2).map(|part| shared(&request, &part)).collect();
        assert_eq!(parts, [vec![true; 2], vec![true]], "{signal:?}");
    }
}

#[test]
fn what_is_edited_is_written_anew_and_its_neighbours_stay() {
    for (signal, statement) in [
        (Signal::Traces, r#"set(span.status.code, 2) where span.name == "b""#),
        (Signal::Logs, r#"set(log.severity_number, 9) where log.severity_text == "b""#),
        (Signal::Metrics, r#"set(metric.unit, "By") where metric.name == "b""#),
    ] {
        let request = request(signal, &["a", "b", "c"]);
        let payload = Payload::decode(signal, request.clone()).expect("valid");
        let edited = run_statement(statement, &payload);
        assert!(edited.iter().any(|edited| shared(&request, edited) == [true, false, true]), "{statement}");
        // In a context further in there is nothing to visit.
        for edited in &edited {
            assert!(matches!(shared(&request, edited)[..], [true, _, true]), "{statement}");
        }
        // A condition alone drops what it holds for.
        let condition = statement.split_once(" where ").expect("a condition").1;
        let kept = run_statement(condition, &payload);
        assert!(kept.iter().any(|kept| shared(&request, kept) == [true; 2]), "{condition}");
        // The resource is another; its items are not touched.
        for renamed in run_statement(r#"set(resource.attributes["service.name"], "x")"#, &payload) {
            assert_eq!(shared(&request, &renamed), [true; 3]);
        }
    }
}

#[test]
fn what_is_kept_between_others_is_one_slice() {
    let request = request(Signal::Traces, &["a", "b", "c", "d"]);
    let mut payload = Payload::decode(Signal::Traces, request.clone()).expect("valid");
    let Items::Records(records) = &mut payload.resources[0].scopes[0].items else { panic!("spans") };
    records.revise(|span| if span.ends_with(b"b") { Revision::Drop } else { Revision::Keep });
    assert_eq!(shared(&request, &payload), [true; 3]);
}
