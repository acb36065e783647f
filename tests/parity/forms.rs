//! The same messages in wire forms that few senders use: other orders of fields, messages in pieces, lists that are packed
//! or not, fields that nobody knows. Through identity pipelines, and through ones that read and edit the items.

use gymrun::otlp::Signal;
use gymrun::otlp::wire::{Value, Writer, fields};

use super::bed::{Case, both};
use super::otlp::plain;
use super::requests::{all, path, wire};
use super::rpc::export;
use super::side::Body;

/// A kind of message: which of its fields hold which kinds, and which are lists of numbers.
struct Shape {
    inner: &'static [(u32, &'static Shape)],
    fixed64s: &'static [u32],
    varints: &'static [u32],
}

const fn shape(inner: &'static [(u32, &'static Shape)]) -> Shape {
    Shape { inner, fixed64s: &[], varints: &[] }
}

static ANY: Shape = shape(&[(5, &LIST), (6, &ENTRIES)]);
static LIST: Shape = shape(&[(1, &ANY)]);
static ENTRIES: Shape = shape(&[(1, &ENTRY)]);
static ENTRY: Shape = shape(&[(2, &ANY)]);
static RESOURCE: Shape = shape(&[(1, &ENTRY)]);
static SCOPE: Shape = shape(&[(3, &ENTRY)]);
static EVENT: Shape = shape(&[(3, &ENTRY)]);
static LINK: Shape = shape(&[(4, &ENTRY)]);
static PLAIN: Shape = shape(&[]);
static SPAN: Shape = shape(&[(9, &ENTRY), (11, &EVENT), (13, &LINK), (15, &PLAIN)]);
static LOG: Shape = shape(&[(5, &ANY), (6, &ENTRY)]);
static EXEMPLAR: Shape = shape(&[(7, &ENTRY)]);
static NUMBER: Shape = shape(&[(7, &ENTRY), (5, &EXEMPLAR)]);
static HISTOGRAM: Shape = Shape { inner: &[(9, &ENTRY), (8, &EXEMPLAR)], fixed64s: &[6, 7], varints: &[] };
static BUCKETS: Shape = Shape { inner: &[], fixed64s: &[], varints: &[2] };
static EXPONENTIAL: Shape = shape(&[(1, &ENTRY), (8, &BUCKETS), (9, &BUCKETS), (11, &EXEMPLAR)]);
static SUMMARY: Shape = shape(&[(7, &ENTRY), (6, &PLAIN)]);
static NUMBERS: Shape = shape(&[(1, &NUMBER)]);
static HISTOGRAMS: Shape = shape(&[(1, &HISTOGRAM)]);
static EXPONENTIALS: Shape = shape(&[(1, &EXPONENTIAL)]);
static SUMMARIES: Shape = shape(&[(1, &SUMMARY)]);
static METRIC: Shape =
    shape(&[(5, &NUMBERS), (7, &NUMBERS), (9, &HISTOGRAMS), (10, &EXPONENTIALS), (11, &SUMMARIES), (12, &ENTRY)]);
static SPANS: Shape = shape(&[(1, &SCOPE), (2, &SPAN)]);
static METRICS: Shape = shape(&[(1, &SCOPE), (2, &METRIC)]);
static LOGS: Shape = shape(&[(1, &SCOPE), (2, &LOG)]);
static OF_SPANS: Shape = shape(&[(1, &RESOURCE), (2, &SPANS)]);
static OF_METRICS: Shape = shape(&[(1, &RESOURCE), (2, &METRICS)]);
static OF_LOGS: Shape = shape(&[(1, &RESOURCE), (2, &LOGS)]);
static TRACES_REQUEST: Shape = shape(&[(1, &OF_SPANS)]);
static METRICS_REQUEST: Shape = shape(&[(1, &OF_METRICS)]);
static LOGS_REQUEST: Shape = shape(&[(1, &OF_LOGS)]);

fn request_of(signal: Signal) -> &'static Shape {
    match signal {
        Signal::Traces => &TRACES_REQUEST,
        Signal::Metrics => &METRICS_REQUEST,
        Signal::Logs => &LOGS_REQUEST,
    }
}

/// What is done to each message, from the inside out: it gets its fields, each whole, and gives the message.
type Change = fn(&Shape, Vec<(u32, Vec<u8>)>) -> Vec<u8>;

/// A message written anew.
fn rewrite(message: &[u8], shape: &Shape, change: Change) -> Vec<u8> {
    let whole = fields(message).map(|(number, value)| {
        let mut out = Writer::new();
        match (value, shape.inner.iter().find(|(known, _)| *known == number)) {
            (Value::Bytes(inner), Some((_, kind))) => out.bytes_field(number, &rewrite(inner, kind, change)),
            (Value::Bytes(bytes), None) => out.bytes_field(number, bytes),
            (Value::Varint(value), _) => out.varint_field(number, value),
            (Value::Fixed64(value), _) => out.fixed64_field(number, value),
            (Value::Fixed32(value), _) => out.fixed32_field(number, value),
            (Value::Group, _) => panic!("our own messages have no groups"),
        }
        (number, out.into_vec())
    });
    let whole = whole.collect();
    change(shape, whole)
}

/// What stands in one field.
fn fields_of(field: &[u8]) -> impl Iterator<Item = (u32, Value<'_>)> {
    fields(field)
}

fn joined(fields: Vec<(u32, Vec<u8>)>) -> Vec<u8> {
    fields.into_iter().flat_map(|(_, field)| field).collect()
}

/// The last number first; equal numbers keep their order.
fn backwards(_: &Shape, mut fields: Vec<(u32, Vec<u8>)>) -> Vec<u8> {
    fields.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    joined(fields)
}

/// Equal numbers apart from each other: the first of each, then the second of each, and so on.
fn interleaved(_: &Shape, fields: Vec<(u32, Vec<u8>)>) -> Vec<u8> {
    let mut seen: Vec<u32> = Vec::new();
    let mut ranked: Vec<(usize, (u32, Vec<u8>))> = Vec::new();
    for field in fields {
        ranked.push((seen.iter().filter(|number| **number == field.0).count(), field.clone()));
        seen.push(field.0);
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    joined(ranked.into_iter().map(|(_, field)| field).collect())
}

/// Fields that nobody knows, of every wire type, at both ends and in between.
fn with_unknown(_: &Shape, fields: Vec<(u32, Vec<u8>)>) -> Vec<u8> {
    let mut out = Writer::new();
    out.varint_field(900, 5);
    for (place, (_, field)) in fields.into_iter().enumerate() {
        out.raw(&field);
        if place == 0 {
            out.fixed64_field(901, 6);
            out.bytes_field(902, b"unknown");
        }
    }
    out.fixed32_field(903, 7);
    out.into_vec()
}

/// Lists of numbers one number at a time.
fn unpacked(shape: &Shape, fields: Vec<(u32, Vec<u8>)>) -> Vec<u8> {
    let mut out = Writer::new();
    for (number, field) in fields {
        let value = fields_of(&field).next().map(|(_, value)| value);
        match value {
            Some(Value::Bytes(packed)) if shape.fixed64s.contains(&number) => {
                for chunk in packed.chunks_exact(8) {
                    out.fixed64_field(number, u64::from_le_bytes(chunk.try_into().expect("eight bytes")));
                }
            }
            Some(Value::Bytes(packed)) if shape.varints.contains(&number) => {
                let mut reader = gymrun::otlp::wire::Reader::new(packed);
                while reader.position() < packed.len() {
                    out.varint_field(number, reader.varint().expect("a number"));
                }
            }
            _ => out.raw(&field),
        }
    }
    out.into_vec()
}

/// Scalars that are there twice, with another value before: the last one counts.
fn with_former_values(_: &Shape, fields: Vec<(u32, Vec<u8>)>) -> Vec<u8> {
    let mut out = Writer::new();
    for (number, field) in fields {
        match fields_of(&field).next().map(|(_, value)| value) {
            Some(Value::Varint(value)) => out.varint_field(number, value ^ 1),
            Some(Value::Fixed64(value)) => out.fixed64_field(number, value ^ 1),
            Some(Value::Fixed32(value)) => out.fixed32_field(number, value ^ 1),
            _ => {}
        }
        out.raw(&field);
    }
    out.into_vec()
}

/// Of messages that exclude each other another one and one of the same kind before: the last one counts, as a whole.
fn with_former_data(shape: &Shape, fields: Vec<(u32, Vec<u8>)>) -> Vec<u8> {
    let mut out = Writer::new();
    for (number, field) in fields {
        if std::ptr::eq(shape, &raw const METRIC) && matches!(number, 5 | 7 | 9 | 10 | 11) {
            let former: u32 = if number == 7 { 9 } else { 7 };
            for number in [number, former] {
                out.message_field(number, |data| {
                    data.message_field(1, |point| point.fixed64_field(3, 1234));
                    if matches!(number, 7 | 9 | 10) {
                        data.varint_field(2, 1);
                    }
                });
            }
        }
        if std::ptr::eq(shape, &raw const ANY) {
            out.message_field(5, |list| list.message_field(1, |value| value.varint_field(3, 1)));
            out.message_field(6, |map| map.message_field(1, |entry| entry.bytes_field(1, b"former")));
        }
        out.raw(&field);
    }
    out.into_vec()
}

/// Numbers in more bytes than they need.
fn long_numbers(_: &Shape, fields: Vec<(u32, Vec<u8>)>) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, field) in fields {
        match fields_of(&field).next().map(|(_, value)| value) {
            Some(Value::Varint(value)) if value < 1 << 56 => {
                let mut writer = Writer::new();
                writer.varint(u64::from(number) << 3);
                out.extend_from_slice(writer.as_slice());
                out.extend((0..9).map(|place| 0x80 | u8::try_from(value >> (7 * place) & 0x7f).expect("seven bits")));
                out.push(0);
            }
            _ => out.extend_from_slice(&field),
        }
    }
    out
}

const CHANGES: [(&str, Change); 7] = [
    ("backwards", backwards),
    ("interleaved", interleaved),
    ("unknown fields", with_unknown),
    ("unpacked", unpacked),
    ("former values", with_former_values),
    ("long numbers", long_numbers),
    ("former data", with_former_data),
];

/// A statement that reads and one that writes each part, in front of batches that split.
fn edited() -> Case {
    Case::new(
        r#"receivers: {otlp: {protocols: {http: {endpoint: $HTTP}, grpc: {endpoint: $GRPC}}}}
processors:
  transform:
    error_mode: silent
    trace_statements:
    - set(span.attributes["seen"], span.attributes["least"]) where span.kind >= 0
    - set(span.status.message, Concat([span.name, span.status.message], "/"))
    - set(scope.attributes["kind"], span.kind)
    - set(span.end_time_unix_nano, span.start_time_unix_nano + 1)
    metric_statements:
    - set(datapoint.attributes["seen"], metric.name)
    - set(datapoint.attributes["bounds"], datapoint.explicit_bounds)
    - set(datapoint.attributes["count"], datapoint.count)
    - set(datapoint.positive.offset, 7)
    - set(datapoint.attributes["offset"], datapoint.negative.offset)
    - set(datapoint.value_double, datapoint.value_double + 1.0)
    - set(metric.description, "edited")
    log_statements:
    - set(log.attributes["seen"], log.body)
    - set(log.severity_text, Concat([log.severity_text, log.severity_number], "-"))
    - set(resource.attributes["number"], log.severity_number)
  attributes: {actions: [{key: string, action: hash}, {key: double, action: convert, converted_type: string}]}
  batch: {send_batch_size: 7, send_batch_max_size: 7, timeout: 1h}
exporters: {file/traces: {path: $OUT/traces.jsonl}, file/metrics: {path: $OUT/metrics.jsonl}, file/logs: {path: $OUT/logs.jsonl}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [transform, attributes, batch], exporters: [file/traces]}
    metrics: {receivers: [otlp], processors: [transform, attributes, batch], exporters: [file/metrics]}
    logs: {receivers: [otlp], processors: [transform, attributes, batch], exporters: [file/logs]}
"#,
    )
}

async fn send(side: &mut super::side::Side) {
    for (signal, request) in all() {
        let usual = wire(signal, &request);
        for (_, change) in CHANGES {
            let bytes = rewrite(&usual, request_of(signal), change);
            let body = Body { content_type: "application/x-protobuf", encoding: None, bytes: bytes.clone() };
            side.post(path(signal), body).await;
            side.call(export(signal), bytes, false).await;
        }
    }
    side.stop().await;
}

#[tokio::test]
async fn unusual_wire_forms_through_identity() {
    both(plain(), async |side| {
        send(side).await;
        side.raw_output("x.jsonl");
    })
    .await;
}

#[tokio::test]
async fn unusual_wire_forms_through_processors() {
    both(edited(), async |side| {
        send(side).await;
        for name in ["traces.jsonl", "metrics.jsonl", "logs.jsonl"] {
            side.output_without_metadata(name);
        }
    })
    .await;
}
