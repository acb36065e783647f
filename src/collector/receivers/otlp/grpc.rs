//! OTLP over gRPC: three unary methods whose messages are taken as bytes.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use bytes::{Buf, Bytes};
use http_body_util::{BodyExt, Full};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::codec::{CompressionEncoding, DecodeBuf, Decoder, Streaming};
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Status};

use super::intake::Intake;
use crate::otlp::{Payload, Signal};

/// What the methods need.
struct Method {
    intake: Arc<Intake>,
    max_message: usize,
}

/// Answers calls until `stop`, then until those in flight are answered. The result is for people: why it could not go on.
pub(super) async fn serve(
    listener: TcpListener,
    max_message: usize,
    intake: Arc<Intake>,
    stop: CancellationToken,
) -> Result<(), String> {
    let router = Router::new().fallback(answer).with_state(Arc::new(Method { intake, max_message }));
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    Server::builder()
        // Requests of some megabytes do not have to wait for window updates.
        .initial_stream_window_size(1024 * 1024)
        .initial_connection_window_size(4 * 1024 * 1024)
        .add_routes(Routes::from(router))
        .serve_with_incoming_shutdown(incoming, stop.cancelled_owned())
        .await
        .map_err(|error| error.to_string())
}

const SERVICES: [(Signal, &str); 3] = [
    (Signal::Traces, "opentelemetry.proto.collector.trace.v1.TraceService"),
    (Signal::Metrics, "opentelemetry.proto.collector.metrics.v1.MetricsService"),
    (Signal::Logs, "opentelemetry.proto.collector.logs.v1.LogsService"),
];

async fn answer(State(method): State<Arc<Method>>, request: Request<Body>) -> Response<Body> {
    let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if !content_type.unwrap_or_default().starts_with("application/grpc") {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return response;
    }
    match method.call(request).await {
        Ok(()) => accepted(),
        Err(status) => status.into_http(),
    }
}

impl Method {
    async fn call(&self, request: Request<Body>) -> Result<(), Status> {
        let (service, name) = request.uri().path().trim_start_matches('/').split_once('/').unwrap_or_default();
        let known = SERVICES.iter().find(|(signal, known)| *known == service && self.intake.takes(*signal));
        let Some((signal, _)) = known else {
            return Err(Status::unimplemented(format!("unknown service {service}")));
        };
        if name != "Export" {
            return Err(Status::unimplemented(format!("unknown method {name} for service {service}")));
        }
        let message = self.message(request).await?;
        let payload = Payload::decode(*signal, message).map_err(|error| {
            self.intake.malformed(*signal, &error);
            Status::internal(format!("grpc: error unmarshalling request: {error}"))
        })?;
        self.intake.take(payload).await.map_err(|status| {
            let code = i32::try_from(status.code).map_or(Code::Unknown, Code::from_i32);
            Status::new(code, status.message)
        })
    }

    /// The one message of the request, decompressed.
    async fn message(&self, request: Request<Body>) -> Result<Bytes, Status> {
        let encoding = match request.headers().get("grpc-encoding").map(HeaderValue::as_bytes) {
            None | Some(b"identity") => None,
            Some(b"gzip") => Some(CompressionEncoding::Gzip),
            Some(other) => {
                let other = String::from_utf8_lossy(other);
                let text = format!("grpc: Decompressor is not installed for grpc-encoding \"{other}\"");
                return Err(Status::unimplemented(text));
            }
        };
        let limit = self.max_message;
        let mut messages = Streaming::new_request(WholeMessage, request.into_body(), encoding, Some(limit));
        match messages.message().await {
            Ok(Some(message)) => Ok(message),
            Ok(None) => Err(Status::internal("the request has no message")),
            // The library says "out of range"; gRPC's own servers, and so clients, say "resource exhausted".
            Err(status) if matches!(status.code(), Code::OutOfRange | Code::ResourceExhausted) => {
                Err(Status::resource_exhausted(format!("grpc: received message larger than max ({limit} bytes)")))
            }
            Err(status) => Err(status),
        }
    }
}

/// The message as it is.
struct WholeMessage;

impl Decoder for WholeMessage {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(message.copy_to_bytes(message.remaining())))
    }
}

/// An empty partial success, uncompressed, and the status in the trailers.
fn accepted() -> Response<Body> {
    let message = Full::new(Bytes::from_static(&[0, 0, 0, 0, 2, 0x0a, 0]));
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    let mut response = Response::new(Body::new(message.with_trailers(async { Some(Ok(trailers)) })));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}
