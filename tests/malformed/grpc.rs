//! OTLP/gRPC calls whose bodies are whatever they are.

use axum::http::{HeaderMap, Request};
use gymrun::otlp::Signal;
use http_body_util::{BodyExt as _, Full};
use tonic::client::GrpcService as _;
use tonic::transport::Endpoint;

/// A connection.
#[derive(Clone)]
pub struct Channel {
    address: String,
    channel: tonic::transport::Channel,
}

/// One uncompressed message in its frame.
pub fn frame(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("small");
    [&[0], &length.to_be_bytes()[..], message].concat()
}

impl Channel {
    pub async fn connect(port: u16) -> Self {
        let address = format!("http://127.0.0.1:{port}");
        let channel = Endpoint::from_shared(address.clone()).expect("an address").connect().await;
        Self { address, channel: channel.expect("a connection") }
    }

    /// Calls the Export method with this body; gives the code of the answer.
    pub async fn send(&self, signal: Signal, encoding: Option<&str>, body: &[u8]) -> i32 {
        let service = match signal {
            Signal::Traces => "trace.v1.TraceService",
            Signal::Metrics => "metrics.v1.MetricsService",
            Signal::Logs => "logs.v1.LogsService",
        };
        let mut request = Request::post(format!("{}/opentelemetry.proto.collector.{service}/Export", self.address))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        if let Some(encoding) = encoding {
            request = request.header("grpc-encoding", encoding);
        }
        let body = tonic::body::Body::new(Full::from(body.to_vec()));
        let mut channel = self.channel.clone();
        std::future::poll_fn(|context| channel.poll_ready(context)).await.expect("ready");
        let answer = channel.call(request.body(body).expect("a request")).await.expect("an answer");
        let first = code(answer.headers());
        let rest = answer.into_body().collect().await.expect("a body");
        first.or_else(|| rest.trailers().and_then(code)).expect("a code")
    }
}

fn code(headers: &HeaderMap) -> Option<i32> {
    headers.get("grpc-status")?.to_str().ok()?.parse().ok()
}
