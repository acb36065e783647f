//! The requests that are sent: made once, before anything is measured.

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message as _;

/// Spans of one request.
pub const SPANS_PER_REQUEST: usize = 500;
/// Different requests, sent in turn.
const REQUESTS: u64 = 8;
const START: u64 = 1_764_000_000_000_000_000;
const NAMES: [&str; 6] =
    ["POST /v1/chat/completions", "POST /run", "verify", "rollout", "tool_call sandbox.execute", "POST /seed_session"];

/// Requests in protobuf, and how large a span is in them.
#[derive(Clone)]
pub struct Requests {
    pub bodies: Vec<Bytes>,
    /// Mean of all.
    pub bytes_per_span: f64,
}

impl Requests {
    /// The same ones each time: what is random is seeded.
    pub fn make() -> Self {
        let bodies: Vec<Bytes> = (0..REQUESTS).map(|number| request(number).encode_to_vec().into()).collect();
        let bytes: usize = bodies.iter().map(Bytes::len).sum();
        let bytes_per_span = bytes as f64 / (SPANS_PER_REQUEST * bodies.len()) as f64;
        Self { bodies, bytes_per_span }
    }
}

fn request(number: u64) -> ExportTraceServiceRequest {
    let mut random = fastrand::Rng::with_seed(number);
    let attributes = vec![
        pair("service.name", text("gym-policy")),
        pair("service.instance.id", text(&format!("{:032x}", random.u128(..)))),
        pair("telemetry.sdk.language", text("python")),
        pair("telemetry.sdk.name", text("opentelemetry")),
        pair("telemetry.sdk.version", text("1.39.0")),
    ];
    let spans = (0..SPANS_PER_REQUEST).map(|index| span(index, &mut random)).collect();
    let scope =
        InstrumentationScope { name: "nemo_gym.telemetry".into(), version: "0.7.0".into(), ..Default::default() };
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans, schema_url: String::new() }];
    let resource = Resource { attributes, ..Default::default() };
    let resource_spans = vec![ResourceSpans { resource: Some(resource), scope_spans, schema_url: String::new() }];
    ExportTraceServiceRequest { resource_spans }
}

/// A span with 5 to 20 attributes.
fn span(index: usize, random: &mut fastrand::Rng) -> Span {
    let start = START + random.u64(0..3_600_000_000_000);
    let mut attributes = attributes(random);
    attributes.truncate(5 + index % 16);
    Span {
        trace_id: random.u128(..).to_be_bytes().to_vec(),
        span_id: random.u64(..).to_be_bytes().to_vec(),
        parent_span_id: if index.is_multiple_of(7) { Vec::new() } else { random.u64(..).to_be_bytes().to_vec() },
        flags: 0x100,
        name: NAMES[index % NAMES.len()].into(),
        kind: 1 + i32::try_from(index % 3).expect("small"),
        start_time_unix_nano: start,
        end_time_unix_nano: start + random.u64(1_000_000..40_000_000_000),
        attributes,
        status: Some(Status { message: String::new(), code: i32::from(index.is_multiple_of(50)) * 2 }),
        ..Default::default()
    }
}

fn attributes(random: &mut fastrand::Rng) -> Vec<KeyValue> {
    let mut number = |limit| any_value::Value::IntValue(random.i64(0..limit));
    let [task, rollout, input, output, port, thread] =
        [number(5_000), number(64), number(32_768), number(8_192), number(65_536), number(1 << 40)];
    let identifier = format!("chatcmpl-{:016x}", random.u64(..));
    let session = format!("{:016x}", random.u64(..));
    vec![
        pair("task_index", task),
        pair("rollout_index", rollout),
        pair("nemo.gym.session.id", text(&session)),
        pair("http.request.method", text("POST")),
        pair("http.response.status_code", any_value::Value::IntValue(200)),
        pair("gen_ai.usage.input_tokens", input),
        pair("gen_ai.usage.output_tokens", output),
        pair("gen_ai.response.id", text(&identifier)),
        pair("gen_ai.request.model", text("tiny-chat")),
        pair("nemo.gym.reward", any_value::Value::DoubleValue(random.f64())),
        pair("url.path", text("/v1/chat/completions")),
        pair("server.port", port),
        pair("gen_ai.request.temperature", any_value::Value::DoubleValue(0.7)),
        pair("nemo.gym.sandbox.provider", text("local")),
        pair("nemo.gym.cached", any_value::Value::BoolValue(random.bool())),
        pair("user_agent.original", text("OpenAI/2.6.1")),
        pair("network.protocol.version", text("1.1")),
        pair("thread.id", thread),
        pair("code.function.name", text("request")),
        pair("gen_ai.operation.name", text("chat")),
    ]
}

fn pair(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue { key: key.into(), value: Some(AnyValue { value: Some(value) }), ..Default::default() }
}

fn text(value: &str) -> any_value::Value {
    any_value::Value::StringValue(value.into())
}
