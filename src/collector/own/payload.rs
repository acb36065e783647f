//! What the instruments say, as an OTLP payload.

use crate::otlp::wire::Writer;
use crate::otlp::{AnyValue, KeyValue, Payload, Signal, encode_scope};

use super::family::{Family, Label, Labels, Number, Point};
use super::instruments::InstrumentKind;
use super::resource::Attributes;

/// From when until when the numbers count, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The start of the collector.
    pub begin: u64,
    /// Now.
    pub end: u64,
}

/// A request with one resource. It has been made here, so it can be read; an empty payload otherwise.
#[must_use]
pub fn payload(families: &[Family], resource: &[(String, AnyValue)], span: Span) -> Payload {
    let mut request = Writer::new();
    request.message_field(1, |entry| {
        entry.message_field(1, |inner| attributes(inner, 1, resource));
        let mut scopes: Vec<&str> = families.iter().map(|family| family.instrument.scope).collect();
        scopes.sort_unstable();
        scopes.dedup();
        for scope in scopes {
            entry.message_field(2, |inner| {
                let version = if scope == "gymrun" { env!("CARGO_PKG_VERSION") } else { "" };
                inner.bytes_field(1, &encode_scope(scope, version, &[]));
                for family in families.iter().filter(|family| family.instrument.scope == scope) {
                    inner.message_field(2, |message| metric(message, family, span));
                }
            });
        }
    });
    Payload::decode(Signal::Metrics, request.into_bytes()).unwrap_or_else(|_| Payload::new(Signal::Metrics))
}

fn attributes(writer: &mut Writer, number: u32, resource: &[(String, AnyValue)]) {
    for (name, value) in resource {
        writer.message_field(number, |inner| KeyValue::new(name.as_str(), value.clone()).encode(inner));
    }
}

const CUMULATIVE: u64 = 2;

fn metric(writer: &mut Writer, family: &Family, span: Span) {
    let instrument = family.instrument;
    for (number, text) in [(1, instrument.name), (2, instrument.description), (3, instrument.unit)] {
        writer.bytes_field(number, text.as_bytes());
    }
    let data = match instrument.kind {
        InstrumentKind::Gauge => 5,
        InstrumentKind::Counter | InstrumentKind::UpDown => 7,
        InstrumentKind::Histogram => 9,
    };
    writer.message_field(data, |inner| {
        for point in &family.points {
            inner.message_field(1, |message| number(message, point, instrument.kind, span));
        }
        if instrument.kind != InstrumentKind::Gauge {
            inner.varint_field(2, CUMULATIVE);
        }
        if instrument.kind == InstrumentKind::Counter {
            inner.bool_field(3, true);
        }
    });
}

fn number(writer: &mut Writer, point: &Point, kind: InstrumentKind, span: Span) {
    if kind != InstrumentKind::Gauge {
        writer.fixed64_field(2, span.begin);
    }
    writer.fixed64_field(3, span.end);
    match &point.number {
        Number::Integer(value) => {
            writer.fixed64_field(6, *value);
            labels(writer, 7, &point.labels);
        }
        Number::Double(value) => {
            writer.double_field(4, *value);
            labels(writer, 7, &point.labels);
        }
        Number::Buckets { bounds, counts, sum } => {
            writer.fixed64_field(4, counts.iter().sum());
            writer.double_field(5, *sum as f64);
            writer.packed_fixed64(6, counts.iter().copied());
            writer.packed_double(7, bounds.iter().map(|bound| *bound as f64));
            labels(writer, 9, &point.labels);
        }
    }
}

fn labels(writer: &mut Writer, number: u32, labels: &Labels) {
    let value = |label: &Label| match label {
        Label::Text(text) => AnyValue::from(text.as_str()),
        Label::Integer(number) => AnyValue::from(*number),
    };
    let all: Attributes = labels.iter().map(|(name, label)| (name.to_string(), value(label))).collect();
    attributes(writer, number, &all);
}

#[cfg(test)]
mod tests {
    use super::super::family::{Families, labels};
    use super::super::instruments::{BATCH_SIZE, Detail, IN_FLIGHT, MEMORY, UPTIME};
    use super::super::meters::Buckets;
    use super::*;

    #[test]
    fn every_kind_of_number_is_written() {
        let mut families = Families::new(Detail::Detailed);
        families.add(&UPTIME, Vec::new(), Number::Double(1.5));
        families.add(&MEMORY, Vec::new(), Number::Integer(7));
        let mut where_to = labels([("exporter", "otlp_http")]);
        where_to.push(("server.port".into(), Label::Integer(4318)));
        families.add(&IN_FLIGHT, where_to, Number::Integer(1));
        let sizes = Buckets::new(&[10]);
        sizes.record(3);
        families.add(&BATCH_SIZE, labels([("processor", "batch")]), sizes.get().expect("something"));
        let resource = [("service.name".to_owned(), AnyValue::from("gymrun"))];
        let payload = payload(&families.sorted(), &resource, Span { begin: 5, end: 9 });
        assert_eq!(payload.item_count(), 4);
        let mut json = Vec::new();
        payload.write_json(&mut json);
        let text = String::from_utf8(json).expect("text");
        for part in [
            r#""resource":{"attributes":[{"key":"service.name","value":{"stringValue":"gymrun"}}]}"#,
            r#""name":"otelcol_process_uptime","description":"Uptime of the process [Alpha]","unit":"s","sum":{"dataPoints":[{"startTimeUnixNano":"5","timeUnixNano":"9","asDouble":1.5}],"aggregationTemporality":2,"isMonotonic":true}"#,
            r#""gauge":{"dataPoints":[{"timeUnixNano":"9","asInt":"7"}]}"#,
            r#"{"key":"server.port","value":{"intValue":"4318"}}"#,
            r#""histogram":{"dataPoints":[{"attributes":[{"key":"processor","value":{"stringValue":"batch"}}],"startTimeUnixNano":"5","timeUnixNano":"9","count":"1","sum":3,"bucketCounts":["1","0"],"explicitBounds":[10]}],"aggregationTemporality":2}"#,
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
