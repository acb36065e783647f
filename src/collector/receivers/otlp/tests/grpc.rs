//! OTLP over gRPC.

use axum::http::uri::PathAndQuery;
use bytes::Bytes;
use tonic::client::Grpc;
use tonic::codec::CompressionEncoding;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

use raw::Raw;

use super::server::{Server, start, trace};
use crate::collector::component::Refusal;
use crate::collector::testing::Keeper;

#[path = "../../../../../tests/harness/raw.rs"]
mod raw;

const MEBIBYTE: usize = 1024 * 1024;
const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

async fn connect(server: &Server) -> Grpc<Channel> {
    let channel =
        Endpoint::from_shared(server.grpc.clone()).expect("an address").connect().await.expect("a connection");
    Grpc::new(channel)
}

async fn call(client: &mut Grpc<Channel>, path: &'static str, message: Vec<u8>) -> Result<Bytes, Status> {
    client.ready().await.expect("ready");
    let path = PathAndQuery::from_static(path);
    client.unary(Request::new(message.into()), path, Raw).await.map(tonic::Response::into_inner)
}

#[tokio::test]
async fn success_has_the_bytes_of_the_reference() {
    let keeper = Keeper::default();
    let server = start(keeper.clone(), 4 * MEBIBYTE, MEBIBYTE).await;
    let mut client = connect(&server).await;
    assert_eq!(call(&mut client, TRACES, trace(9)).await.expect("accepted").as_ref(), [0x0a, 0]);
    assert_eq!(call(&mut client, TRACES, Vec::new()).await.expect("accepted").as_ref(), [0x0a, 0], "no items");
    let mut compressing = connect(&server).await.send_compressed(CompressionEncoding::Gzip);
    assert_eq!(call(&mut compressing, TRACES, trace(9)).await.expect("accepted").as_ref(), [0x0a, 0]);
    assert_eq!(keeper.counts(), [1, 1]);
}

#[tokio::test]
async fn what_is_not_served_is_unimplemented() {
    let server = start(Keeper::default(), MEBIBYTE, MEBIBYTE).await;
    let mut client = connect(&server).await;
    for (path, text) in [
        (
            "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
            "unknown service opentelemetry.proto.collector.logs.v1.LogsService",
        ),
        (
            "/opentelemetry.proto.collector.trace.v1.TraceService/Nope",
            "unknown method Nope for service opentelemetry.proto.collector.trace.v1.TraceService",
        ),
        ("/grpc.health.v1.Health/Check", "unknown service grpc.health.v1.Health"),
    ] {
        let status = call(&mut client, path, trace(9)).await.expect_err("not served");
        assert_eq!((status.code(), status.message()), (Code::Unimplemented, text));
    }
    client.ready().await.expect("ready");
    let mut request = Request::new(Bytes::from(trace(9)));
    request.metadata_mut().insert("grpc-encoding", "deflate".parse().expect("a value"));
    let path = PathAndQuery::from_static(TRACES);
    let status = client.unary(request, path, Raw).await.expect_err("not served");
    assert_eq!(status.code(), Code::Unimplemented);
    assert_eq!(status.message(), "grpc: Decompressor is not installed for grpc-encoding \"deflate\"");
}

#[tokio::test]
async fn refused_and_malformed() {
    for (refused, code) in [
        (Refusal::retryable("queue_full", "sending queue is full"), Code::Unavailable),
        (Refusal::permanent("transform", "failed to execute statement"), Code::Internal),
    ] {
        let message = refused.message.clone();
        let server = start(Keeper { refuse: Some(refused), ..Keeper::default() }, MEBIBYTE, MEBIBYTE).await;
        let status = call(&mut connect(&server).await, TRACES, trace(9)).await.expect_err("refused");
        assert_eq!((status.code(), status.message()), (code, message.as_str()));
    }
    let server = start(Keeper::default(), MEBIBYTE, MEBIBYTE).await;
    let status = call(&mut connect(&server).await, TRACES, vec![0x0a, 5, 1]).await.expect_err("malformed");
    assert_eq!(status.code(), Code::Internal);
    assert!(status.message().starts_with("grpc: error unmarshalling request: "), "{}", status.message());
}

#[tokio::test]
async fn big_messages() {
    let keeper = Keeper::default();
    let server = start(keeper.clone(), 20 * MEBIBYTE, MEBIBYTE).await;
    let mut client = connect(&server).await;
    call(&mut client, TRACES, trace(10 * MEBIBYTE)).await.expect("accepted");
    let status = call(&mut client, TRACES, trace(40 * MEBIBYTE)).await.expect_err("too large");
    assert_eq!(status.code(), Code::ResourceExhausted);
    // Small on the wire, too great in memory.
    let mut compressing = connect(&server).await.send_compressed(CompressionEncoding::Gzip);
    let status = call(&mut compressing, TRACES, trace(40 * MEBIBYTE)).await.expect_err("too large");
    assert_eq!(status.code(), Code::ResourceExhausted);
    call(&mut connect(&server).await, TRACES, trace(9)).await.expect("it still answers");
    assert_eq!(keeper.counts(), [1, 1]);
}
