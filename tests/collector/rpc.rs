//! OTLP/gRPC with messages as bytes: an endpoint that answers as the test wants, with TLS or without, and calls.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, Response};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use tonic::Status;
use tonic::client::Grpc;
use tonic::service::Routes;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Certificate, Channel, Identity, Server, ServerTlsConfig};

use crate::harness::Raw;

/// A call as it came.
#[derive(Clone, Debug)]
pub struct Call {
    pub at: Instant,
    pub path: String,
    pub headers: HeaderMap,
    /// Decompressed.
    pub message: Vec<u8>,
}

/// One answer.
#[derive(Clone, Debug)]
pub enum Reply {
    /// A status with details and a message of bytes.
    Give(u32, &'static str, Option<String>, &'static [u8]),
    /// An HTTP status and a type of what does not speak gRPC.
    Http(u16, &'static str),
    /// Never.
    Hang,
}

/// The message of an ordinary success.
pub const TAKEN: Reply = Reply::Give(0, "", None, &[10, 0]);

#[derive(Clone)]
pub struct RpcSink {
    pub port: u16,
    calls: Arc<Mutex<Vec<Call>>>,
    replies: Arc<Vec<Reply>>,
}

/// Who a sink is, in PEM.
pub struct Secure {
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
    /// It must have signed the client's certificate; without it the client needs none.
    pub authority: Option<Vec<u8>>,
}

impl RpcSink {
    /// Gives the replies in order, the last one again and again.
    pub async fn start(replies: Vec<Reply>, tls: Option<Secure>) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let sink = Self { port, calls: Arc::default(), replies: Arc::new(replies) };
        let router = Router::new().fallback(take).with_state(sink.clone());
        let mut server = Server::builder();
        if let Some(Secure { certificate, key, authority }) = tls {
            let mut tls = ServerTlsConfig::new().identity(Identity::from_pem(certificate, key));
            if let Some(authority) = authority {
                tls = tls.client_ca_root(Certificate::from_pem(authority));
            }
            server = server.tls_config(tls).expect("certificates");
        }
        let serving = server.add_routes(Routes::from(router)).serve_with_incoming(TcpIncoming::from(listener));
        tokio::spawn(serving);
        sink
    }

    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().expect("lock").clone()
    }
}

async fn take(State(sink): State<RpcSink>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let frame = to_bytes(body, 64 << 20).await.expect("a message");
    let mut message = frame[5..].to_vec();
    if frame[0] == 1 {
        let mut plain = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&frame[5..]), &mut plain).expect("gzip");
        message = plain;
    }
    let place = {
        let mut calls = sink.calls.lock().expect("lock");
        let path = parts.uri.path().to_owned();
        calls.push(Call { at: Instant::now(), path, headers: parts.headers, message });
        calls.len() - 1
    };
    match &sink.replies[place.min(sink.replies.len() - 1)] {
        Reply::Hang => std::future::pending().await,
        Reply::Http(status, kind) => {
            let response = Response::builder().status(*status).header("content-type", *kind);
            response.body(Body::from("no")).expect("a response")
        }
        Reply::Give(0, _, _, message) => {
            let mut frame = vec![0];
            frame.extend_from_slice(&u32::try_from(message.len()).expect("small").to_be_bytes());
            frame.extend_from_slice(message);
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", axum::http::HeaderValue::from_static("0"));
            let body = http_body_util::BodyExt::with_trailers(
                http_body_util::Full::from(frame),
                std::future::ready(Some(Ok(trailers))),
            );
            let response = Response::builder().header("content-type", "application/grpc");
            response.body(Body::new(body)).expect("a response")
        }
        Reply::Give(code, words, details, _) => {
            let mut response = Response::builder()
                .header("content-type", "application/grpc")
                .header("grpc-status", code.to_string())
                .header("grpc-message", *words);
            if let Some(details) = details {
                response = response.header("grpc-status-details-bin", details);
            }
            response.body(Body::empty()).expect("a response")
        }
    }
}

const EXPORT: PathAndQuery = PathAndQuery::from_static("/opentelemetry.proto.collector.trace.v1.TraceService/Export");

async fn client(port: u16) -> Grpc<Channel> {
    let channel = Channel::from_shared(format!("http://127.0.0.1:{port}")).expect("an address").connect().await;
    Grpc::new(channel.expect("a connection"))
}

/// Hands a message of spans to a collector; a status if it is not taken.
pub async fn send_spans(port: u16, message: Vec<u8>) -> Result<(), Status> {
    let mut client = client(port).await;
    client.ready().await.expect("ready");
    client.unary(tonic::Request::new(message.into()), EXPORT, Raw).await.map(drop)
}

/// Begins a call that never ends; gives what will be answered, as soon as the collector knows of it.
pub async fn half_call(port: u16) -> tokio::task::JoinHandle<Status> {
    let mut client = client(port).await;
    let mut half = client.clone();
    half.ready().await.expect("ready");
    let messages = stream::once(std::future::ready(Bytes::new())).chain(stream::pending());
    let half = tokio::spawn(async move {
        half.client_streaming(tonic::Request::new(messages), EXPORT, Raw).await.expect_err("it has no end")
    });
    // It has begun when another one behind it on the same connection is answered.
    tokio::task::yield_now().await;
    client.ready().await.expect("ready");
    client.unary(tonic::Request::new(Bytes::new()), EXPORT, Raw).await.expect("taken");
    half
}
