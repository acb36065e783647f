//! OTLP/gRPC calls, framed by hand: what is sent need be no message.

use std::io::Read as _;

use axum::http::{HeaderMap, Request};
use gymrun::otlp::Signal;
use http_body_util::{BodyExt as _, Full};
use serde_json::json;
use tonic::body::Body;
use tonic::client::GrpcService as _;
use tonic::transport::Endpoint;

use super::encodings::gzip;
use super::side::Side;

/// The Export method of a signal.
pub fn export(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        Signal::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        Signal::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    }
}

/// One frame of a request: the flag says whether the message is compressed.
struct Frame<'a> {
    encoding: Option<&'a str>,
    flag: u8,
    message: &'a [u8],
}

impl Side {
    /// Calls a method and records the answer: the message, or the code.
    pub async fn call(&mut self, path: &'static str, message: Vec<u8>, packed: bool) {
        let message = if packed { gzip(&message) } else { message };
        let frame = Frame { encoding: packed.then_some("gzip"), flag: u8::from(packed), message: &message };
        let (code, answer) = self.exchange(path, &frame).await;
        self.row(match code.as_deref() {
            Some("0") => json!({"call": path, "answer": data_encoding::HEXLOWER.encode(&unframed(&answer))}),
            _ => json!({"call": path, "code": code}),
        });
    }

    /// Calls a method with one frame of these bytes, flag and encoding, and records the code of the answer.
    pub async fn call_raw(&mut self, path: &'static str, encoding: Option<&str>, flag: u8, message: &[u8]) {
        let (code, _) = self.exchange(path, &Frame { encoding, flag, message }).await;
        self.row(json!({"call": path, "encoding": encoding, "code": code}));
    }

    /// The code and the body of the answer.
    async fn exchange(&self, path: &str, frame: &Frame<'_>) -> (Option<String>, Vec<u8>) {
        let mut bytes = vec![frame.flag];
        bytes.extend_from_slice(&u32::try_from(frame.message.len()).expect("small").to_be_bytes());
        bytes.extend_from_slice(frame.message);
        let mut request = Request::post(format!("{}{path}", self.grpc_address()))
            .header("content-type", "application/grpc")
            .header("grpc-accept-encoding", frame.encoding.filter(|name| *name == "gzip").unwrap_or("identity"))
            .header("te", "trailers");
        if let Some(encoding) = frame.encoding {
            request = request.header("grpc-encoding", encoding);
        }
        let request = request.body(Body::new(Full::from(bytes))).expect("a request");

        let channel = Endpoint::from_shared(self.grpc_address()).expect("an address").connect().await;
        let mut channel = channel.expect("a connection");
        std::future::poll_fn(|context| channel.poll_ready(context)).await.expect("ready");
        let answer = channel.call(request).await.expect("an answer");
        let code =
            |headers: &HeaderMap| headers.get("grpc-status").and_then(|value| value.to_str().ok()).map(str::to_owned);
        let first = code(answer.headers());
        let rest = answer.into_body().collect().await.expect("a body");
        let last = rest.trailers().and_then(code);
        (first.or(last), rest.to_bytes().to_vec())
    }
}

/// The message of a body with at most one frame, packed with gzip if it is packed.
fn unframed(body: &[u8]) -> Vec<u8> {
    match body {
        [] => Vec::new(),
        [0, _, _, _, _, message @ ..] => message.to_vec(),
        [_, _, _, _, _, packed @ ..] => {
            let mut message = Vec::new();
            flate2::read::GzDecoder::new(packed).read_to_end(&mut message).expect("gzip");
            message
        }
        _ => panic!("no frame: {body:?}"),
    }
}
