//! Arbitrary requests through the wire form and JSON, checked against the decoded messages of
//! opentelemetry-proto; arbitrary bytes, which must be refused and never do harm.

use std::sync::Arc;

use gymrun::otlp::{Payload, Signal};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{
    Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;

use super::strategies::{logs, metrics, traces};
fn json_of(payload: &Payload) -> Vec<u8> {
    let mut line = Vec::new();
    payload.write_json(&mut line);
    line
}

fn text_of(payload: &Payload) -> String {
    String::from_utf8_lossy(&json_of(payload)).into_owned()
}

/// Wire form in and out, and JSON out and in, keep the message; JSON is valid; splitting loses nothing.
fn check<M: Message + Default + PartialEq + std::fmt::Debug>(signal: Signal, request: &M) -> Result<(), TestCaseError> {
    let payload = Payload::decode(signal, request.encode_to_vec()).expect("valid");
    let encoded = payload.encode();
    let again = M::decode(encoded.as_slice()).expect("valid");
    prop_assert_eq!(request, &again, "through the wire form");

    let line = json_of(&payload);
    let parsed: Result<serde_json::Value, _> = serde_json::from_slice(&line);
    prop_assert!(parsed.is_ok(), "{:?} in {}", parsed, String::from_utf8_lossy(&line));
    let read = Payload::from_json(signal, &line).expect("valid JSON");
    prop_assert_eq!(text_of(&read), text_of(&payload), "JSON again");
    prop_assert_eq!(read.item_count(), payload.item_count());

    let (mut parts, mut sizes) = (Vec::new(), Vec::new());
    let mut last = Vec::new();
    payload.clone().write_json_in_parts(&mut last, &mut |part, size| {
        parts.append(part);
        sizes.push(size);
    });
    parts.append(&mut last);
    prop_assert_eq!(parts, line, "JSON in parts");
    prop_assert!(sizes.iter().sum::<usize>() <= payload.size(), "{:?} of {}", sizes, payload.size());
    prop_assert_eq!(payload.clone().into_parts().concat(), encoded, "the wire form in parts");

    for most in [1, 2, 3, payload.item_count().div_ceil(2), usize::MAX] {
        let (mut left, most) = (payload.item_count(), most.max(1));
        for part in payload.clone().into_chunks(most) {
            prop_assert_eq!(part.item_count(), left.min(most));
            left -= part.item_count();
            let again = Payload::decode(signal, part.encode()).expect("valid");
            prop_assert_eq!(json_of(&again), json_of(&part), "a part");
        }
        prop_assert_eq!(left, 0, "of {}", most);
    }
    Ok(())
}

/// The fields of each item in another order.
fn reversed(bytes: &[u8], depth: usize) -> Vec<u8> {
    let mut reader = gymrun::otlp::wire::Reader::new(bytes);
    let (mut start, mut parts) = (0, Vec::<(u32, Vec<u8>)>::new());
    while let Some((number, value)) = reader.read().expect("valid") {
        let mut part = bytes[start..reader.position()].to_vec();
        // Down to the items: request 1, resource 2, scope 2.
        if let (gymrun::otlp::wire::Value::Bytes(inner), true) = (value, depth < 3 && number == [1, 2, 2][depth]) {
            let mut writer = gymrun::otlp::wire::Writer::new();
            writer.bytes_field(number, &reversed(inner, depth + 1));
            part = writer.into_vec();
        }
        parts.push((number, part));
        start = reader.position();
    }
    // Equal numbers keep their order.
    parts.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    parts.into_iter().flat_map(|(_, part)| part).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn traces_keep(request in traces()) {
        check(Signal::Traces, &request)?;
    }

    #[test]
    fn metrics_keep(request in metrics()) {
        check(Signal::Metrics, &request)?;
    }

    #[test]
    fn logs_keep(request in logs()) {
        check(Signal::Logs, &request)?;
    }

    #[test]
    fn the_order_of_fields_makes_no_difference(request in traces(), points in metrics()) {
        for (signal, bytes) in [(Signal::Traces, request.encode_to_vec()), (Signal::Metrics, points.encode_to_vec())] {
            let straight = Payload::decode(signal, bytes.clone()).expect("valid");
            let turned = Payload::decode(signal, reversed(&bytes, 0)).expect("valid");
            prop_assert_eq!(straight.item_count(), turned.item_count());
            prop_assert_eq!(text_of(&straight), text_of(&turned));
        }
    }

    #[test]
    fn broken_requests_do_no_harm(request in traces(), points in metrics(), place in any::<usize>(), byte in any::<u8>()) {
        for (signal, mut bytes) in [(Signal::Traces, request.encode_to_vec()), (Signal::Metrics, points.encode_to_vec())] {
            if bytes.is_empty() {
                continue;
            }
            let place = place % bytes.len();
            bytes[place] = byte;
            if let Ok(payload) = Payload::decode(signal, bytes) {
                let line = json_of(&payload);
                prop_assert!(Payload::decode(signal, payload.encode()).is_ok());
                prop_assert!(Payload::from_json(signal, &line).is_ok(), "{}", String::from_utf8_lossy(&line));
            }
        }
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in vec(any::<u8>(), 0..200)) {
        for signal in Signal::ALL {
            if let Ok(payload) = Payload::decode(signal, bytes.clone()) {
                let _ = json_of(&payload);
            }
            let _ = Payload::from_json(signal, &bytes);
        }
    }

    #[test]
    fn arbitrary_json_does_no_harm(
        text in r#"(\{|\}|\[|\]|,|:|"|null|1|-1.5e3|true|"resourceSpans":\[|"scopeSpans":\[\{"spans":\[|"attributes"|"value"|\\u[0-9a-f]{4}| ){0,40}"#
    ) {
        let _ = Payload::from_json(Signal::Traces, text.as_bytes());
    }
}

#[test]
fn not_a_number_is_kept() {
    let value = Some(number_data_point::Value::AsDouble(f64::NAN));
    let data = Some(Data::Gauge(Gauge { data_points: vec![NumberDataPoint { value, ..NumberDataPoint::default() }] }));
    let metrics = vec![Metric { name: "m".into(), data, ..Metric::default() }];
    let scope_metrics = vec![ScopeMetrics { metrics, ..ScopeMetrics::default() }];
    let resource_metrics = vec![ResourceMetrics { scope_metrics, ..ResourceMetrics::default() }];
    let request = ExportMetricsServiceRequest { resource_metrics }.encode_to_vec();
    let payload = Payload::decode(Signal::Metrics, request).expect("valid");
    let line = json_of(&payload);
    assert!(String::from_utf8_lossy(&line).contains(r#""asDouble":"NaN""#));
    assert_eq!(json_of(&Payload::from_json(Signal::Metrics, &line).expect("valid")), line);
}

#[test]
fn deep_nesting_is_refused() {
    let deep = |depth: usize| {
        let value = (0..depth).fold(AnyValue::default(), |inner, _| AnyValue {
            value: Some(Value::ArrayValue(ArrayValue { values: vec![inner] })),
        });
        let record = LogRecord { body: Some(value), ..LogRecord::default() };
        let scope_logs = vec![ScopeLogs { log_records: vec![record], ..ScopeLogs::default() }];
        ExportLogsServiceRequest { resource_logs: vec![ResourceLogs { scope_logs, ..ResourceLogs::default() }] }
    };
    let payload = Payload::decode(Signal::Logs, deep(90).encode_to_vec()).expect("accepted");
    assert!(Payload::from_json(Signal::Logs, &json_of(&payload)).is_ok());
    assert!(Payload::decode(Signal::Logs, deep(110).encode_to_vec()).is_err());
    let brackets = "[".repeat(1_000_000);
    assert!(Payload::from_json(Signal::Logs, format!("{{\"x\":{brackets}").as_bytes()).is_err());
    let values = r#"{"arrayValue":{"values":["#.repeat(100_000);
    let body = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"body":{values}"#);
    let error = Payload::from_json(Signal::Logs, body.as_bytes()).expect_err("refused").to_string();
    assert!(error.contains("nested too deeply"), "{error}");
}

/// Of a large payload there is no more in memory than what is still to be written.
#[test]
fn a_resource_that_is_written_is_let_go_of() {
    let entry = || ResourceLogs {
        resource: Some(Resource::default()),
        scope_logs: vec![ScopeLogs { log_records: vec![LogRecord::default(); 2], ..ScopeLogs::default() }],
        ..ResourceLogs::default()
    };
    let request = ExportLogsServiceRequest { resource_logs: vec![entry(), entry(), entry()] };
    let payload = Payload::decode(Signal::Logs, request.encode_to_vec()).expect("valid");
    let resources: Vec<_> = payload.resources.iter().map(|entry| Arc::downgrade(&entry.resource)).collect();
    let mut held = Vec::new();
    payload.write_json_in_parts(&mut Vec::new(), &mut |_, _| {
        held.push(resources.iter().filter(|resource| resource.strong_count() > 0).count());
    });
    // After each item, and when the items of a scope are let go of.
    assert_eq!(held, [3, 3, 3, 2, 2, 2, 1, 1, 1]);
}

/// One resource whose items came in several requests, as a batch joins them.
#[test]
fn nothing_is_told_as_gone_that_is_still_in_memory() {
    struct Body(Vec<u8>, #[expect(dead_code, reason = "it is counted")] Arc<()>);
    impl AsRef<[u8]> for Body {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    let alive = Arc::new(());
    let scope = ScopeLogs {
        log_records: vec![LogRecord { time_unix_nano: 7, ..LogRecord::default() }; 5],
        ..ScopeLogs::default()
    };
    let request = ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs { scope_logs: vec![scope], ..ResourceLogs::default() }],
    };
    let body = request.encode_to_vec();
    let mut payload = Payload::new(Signal::Logs);
    for _ in 0..4 {
        let body = bytes::Bytes::from_owner(Body(body.clone(), alive.clone()));
        let decoded = Payload::decode(Signal::Logs, body).expect("valid");
        for entry in decoded.resources {
            match payload.resources.first_mut() {
                Some(first) => first.scopes.extend(entry.scopes),
                None => payload.resources.push(entry),
            }
        }
    }
    let (mut told, mut steps) = (0, 0);
    payload.write_json_in_parts(&mut Vec::new(), &mut |_, gone| {
        told += gone;
        steps += usize::from(gone > 0);
        let dropped = 5 - Arc::strong_count(&alive);
        assert!(told <= dropped * body.len(), "{told} bytes, and {dropped} requests are gone");
    });
    assert_eq!((steps, Arc::strong_count(&alive)), (4, 1), "request by request");
}
