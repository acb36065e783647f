//! OTLP/gRPC calls with messages as bytes.

use axum::http::uri::PathAndQuery;
use bytes::{Buf, BufMut, Bytes};
use gymrun::otlp::Signal;
use serde_json::json;
use tonic::client::{Grpc, GrpcService as _};
use tonic::codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::Endpoint;
use tonic::{Request, Status};

use super::side::Side;

struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Bytes;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(message.copy_to_bytes(message.remaining())))
    }
}

/// The Export method of a signal.
pub fn export(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        Signal::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        Signal::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    }
}

impl Side {
    /// Calls a method and records the answer: the message, or the code.
    pub async fn call(&mut self, path: &'static str, message: Vec<u8>, gzip: bool) {
        let channel = Endpoint::from_shared(self.grpc_address()).expect("an address").connect().await;
        let mut client = Grpc::new(channel.expect("a connection"));
        if gzip {
            client = client.send_compressed(CompressionEncoding::Gzip).accept_compressed(CompressionEncoding::Gzip);
        }
        client.ready().await.expect("ready");
        let answer = client.unary(Request::new(message), PathAndQuery::from_static(path), Raw).await;
        self.row(match answer {
            Ok(answer) => json!({"call": path, "answer": data_encoding::HEXLOWER.encode(answer.get_ref())}),
            Err(status) => json!({"call": path, "code": i32::from(status.code())}),
        });
    }

    /// Calls a method with one frame of these bytes, flag and encoding, and records the code of the answer.
    pub async fn call_raw(&mut self, path: &'static str, encoding: Option<&str>, flag: u8, message: &[u8]) {
        let mut frame = vec![flag];
        frame.extend_from_slice(&u32::try_from(message.len()).expect("small").to_be_bytes());
        frame.extend_from_slice(message);
        let channel = Endpoint::from_shared(self.grpc_address()).expect("an address").connect().await;
        let mut channel = channel.expect("a connection");
        let mut request = axum::http::Request::post(format!("{}{path}", self.grpc_address()))
            .header("content-type", "application/grpc")
            .header("grpc-accept-encoding", "identity")
            .header("te", "trailers");
        if let Some(encoding) = encoding {
            request = request.header("grpc-encoding", encoding);
        }
        let request = request.body(tonic::body::Body::new(http_body_util::Full::from(frame))).expect("a request");
        channel_ready(&mut channel).await;
        let answer = channel.call(request).await.expect("an answer");
        let code = |headers: &axum::http::HeaderMap| {
            headers.get("grpc-status").and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        let first = code(answer.headers());
        let rest = http_body_util::BodyExt::collect(answer.into_body()).await.expect("a body");
        let last = rest.trailers().and_then(code);
        self.row(json!({"call": path, "encoding": encoding, "code": first.or(last)}));
    }
}

async fn channel_ready(channel: &mut tonic::transport::Channel) {
    std::future::poll_fn(|context| channel.poll_ready(context)).await.expect("ready");
}
