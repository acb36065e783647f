//! OTLP/gRPC calls, framed by hand: what is sent need be no message.

use std::io::Read as _;

use axum::body::Body;
use axum::http::{HeaderMap, Request};
use futures_util::stream;
use gymrun::otlp::Signal;
use http_body_util::BodyExt as _;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::net::TcpStream;

use super::encodings::gzip;
use super::side::Side;
use crate::harness::DEADLINE;

/// The Export method of a signal.
pub fn export(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        Signal::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        Signal::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    }
}

/// A call that need not be one.
pub struct OddCall {
    pub name: &'static str,
    pub method: &'static str,
    pub path: &'static str,
    pub content_type: Option<&'static str>,
    pub headers: Vec<(&'static str, &'static str)>,
    pub body: Vec<u8>,
    /// Whether the words of the answer are the same.
    pub with_text: bool,
}

/// An answer as it came, with its trailers among the headers.
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
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

    /// Carries out a call that need not be one, and records the answer: its HTTP status, its code, and the message if the
    /// code is that of success or `with_text` says that the words are the same.
    pub async fn call_oddly(&mut self, call: &OddCall) {
        let mut request =
            Request::builder().method(call.method).uri(format!("http://127.0.0.1:{}{}", self.grpc_port(), call.path));
        for (name, value) in call.content_type.iter().map(|value| ("content-type", *value)).chain(call.headers.clone())
        {
            request = request.header(name, value);
        }
        let request = request.body(body(call.body.clone())).expect("a request");
        let answer = self.answer(request).await;
        let header = |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let message = header("grpc-message").filter(|text| call.with_text && !text.is_empty());
        let message = message.map(|text| percent_decoded(&text));
        self.row(json!({"call": call.name, "status": answer.status, "code": header("grpc-status"), "message": message,
                        "content_type": header("content-type").map(|text| text.split(['+', ';']).next().map(str::to_owned)),
                        "answer": data_encoding::HEXLOWER.encode(&unframed(&answer.body))}));
    }

    /// The code and the body of the answer.
    async fn exchange(&self, path: &str, frame: &Frame<'_>) -> (Option<String>, Vec<u8>) {
        let mut bytes = vec![frame.flag];
        bytes.extend_from_slice(&u32::try_from(frame.message.len()).expect("small").to_be_bytes());
        bytes.extend_from_slice(frame.message);
        let mut request = Request::post(format!("http://127.0.0.1:{}{path}", self.grpc_port()))
            .header("content-type", "application/grpc")
            .header("grpc-accept-encoding", frame.encoding.filter(|name| *name == "gzip").unwrap_or("identity"))
            .header("te", "trailers");
        if let Some(encoding) = frame.encoding {
            request = request.header("grpc-encoding", encoding);
        }
        let request = request.body(body(bytes)).expect("a request");

        let answer = self.answer(request).await;
        let code = answer.headers.get("grpc-status").and_then(|value| value.to_str().ok()).map(str::to_owned);
        (code, answer.body)
    }

    /// Without a client library for gRPC: it would mend what is odd, and wait for no longer than the call says.
    async fn answer(&self, request: Request<Body>) -> Answer {
        let stream = TcpStream::connect(("127.0.0.1", self.grpc_port())).await.expect("a connection");
        let connection = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (mut sender, connection) = connection.expect("HTTP/2");
        tokio::spawn(connection);
        let name = format!("{request:?}");
        let answer = tokio::time::timeout(DEADLINE, sender.send_request(request)).await;
        let answer = answer.unwrap_or_else(|_| panic!("no answer: {name}"));
        let answer = answer.unwrap_or_else(|error| panic!("{error:?}: {name}"));
        let (status, mut headers) = (answer.status().as_u16(), answer.headers().clone());
        let rest = answer.into_body().collect().await.expect("a body");
        headers.extend(rest.trailers().cloned().unwrap_or_default());
        Answer { status, headers, body: rest.to_bytes().to_vec() }
    }
}

/// A body in a frame of its own, even if it is empty: the reference never answers a call that ends with its headers.
fn body(bytes: Vec<u8>) -> Body {
    Body::from_stream(stream::iter([Ok::<_, std::convert::Infallible>(bytes)]))
}

fn percent_decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut decoded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        decoded.push(u8::from_str_radix(&part[..2], 16).expect("two digits").into());
        decoded.push_str(&part[2..]);
    }
    decoded
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
