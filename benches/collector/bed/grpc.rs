//! OTLP/gRPC with messages that were made before.

use axum::http::uri::PathAndQuery;
use bytes::Bytes;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

use super::load::{CONNECTIONS, Turn};
use raw::Raw;

#[path = "../../../tests/harness/raw.rs"]
mod raw;

const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// Sends the bodies in turn over all connections.
pub fn send(port: u16, bodies: &[Bytes], turn: &Turn<'_>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let connections = (0..CONNECTIONS).map(|_| connection(port, bodies, turn));
    runtime.block_on(futures_util::future::join_all(connections));
}

async fn connection(port: u16, bodies: &[Bytes], turn: &Turn<'_>) {
    let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}")).expect("an address");
    let mut client = Grpc::new(endpoint.connect().await.expect("a connection"));
    while let Some((index, wait)) = turn.next() {
        tokio::time::sleep(wait).await;
        while let Err(status) = call(&mut client, &bodies[index]).await {
            let again = matches!(status.code(), Code::Unavailable | Code::ResourceExhausted);
            assert!(again, "a request was answered with {status}");
            tokio::time::sleep(turn.refused()).await;
        }
        turn.accepted();
    }
}

async fn call(client: &mut Grpc<Channel>, body: &Bytes) -> Result<(), Status> {
    client.ready().await.map_err(|error| Status::internal(error.to_string()))?;
    client.unary(Request::new(body.clone()), PathAndQuery::from_static(EXPORT), Raw).await?;
    Ok(())
}
