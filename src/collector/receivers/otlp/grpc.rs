//! OTLP over gRPC: three unary methods whose messages are taken as bytes.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use bytes::Bytes;
use futures_util::stream::unfold;
use http_body_util::{BodyExt, Full};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::{Code, Status};

use super::body;
use super::config::GrpcSettings;
use super::intake::{Intake, Protocol};
use super::leaving::Leaving;
use super::status;
use crate::collector::net::accept::Connections;
use crate::collector::net::grpc_message::{self, PREFIX, encoding_of, unframe, unreadable};
use crate::otlp::{Payload, Signal};

/// Bytes of headers of one call.
const MAX_HEADERS: u32 = 1 << 20;

/// What the methods need.
struct Method {
    intake: Arc<Intake>,
    max_message: usize,
}

/// Answers calls until `stop`, then until those in flight are answered. The result is for people: why it could not go on.
pub(super) async fn serve(
    connections: Connections,
    settings: GrpcSettings,
    intake: Arc<Intake>,
    stop: CancellationToken,
) -> Result<(), String> {
    let GrpcSettings { max_message, max_streams, keepalive, .. } = settings;
    let router = Router::new().fallback(answer).with_state(Arc::new(Method { intake, max_message }));
    // Of connections that are open when this ends, be it that it is dropped.
    let gone = CancellationToken::new();
    let _gone = gone.clone().drop_guard();
    // The library would break connections off after this, and ask nobody to leave before.
    let longest = keepalive.age.zip(keepalive.grace).map(|(age, grace)| age.saturating_add(grace));
    let incoming = unfold((connections, gone), move |(mut connections, gone)| async move {
        let (stream, _) = connections.next().await;
        Some((Ok::<_, std::io::Error>(Leaving::new(stream, &gone, longest)), (connections, gone)))
    });
    let mut server = Server::builder()
        // Requests of some megabytes do not have to wait for window updates.
        .initial_stream_window_size(1024 * 1024)
        .initial_connection_window_size(4 * 1024 * 1024)
        .max_concurrent_streams(max_streams)
        // The headers of one call; the usual 16 KiB are little for some tokens.
        .http2_max_header_list_size(MAX_HEADERS)
        .http2_keepalive_interval(keepalive.interval)
        .http2_keepalive_timeout(keepalive.timeout);
    if let Some(age) = keepalive.age {
        server = server.max_connection_age(age);
    }
    server
        .add_routes(Routes::from(router))
        .serve_with_incoming_shutdown(incoming, stop.cancelled_owned())
        .await
        .map_err(|error| error.to_string())
}

async fn answer(State(method): State<Arc<Method>>, request: Request<Body>) -> Response<Body> {
    let _request = method.intake.under_way.begin();
    if let Err((http, status)) = check(&request) {
        let mut response = status.into_http();
        *response.status_mut() = http;
        return response;
    }
    match method.call(request).await {
        Ok(()) => accepted(),
        Err(status) => status.into_http(),
    }
}

/// What is no call at all; with the HTTP status of the answer.
fn check(request: &Request<Body>) -> Result<(), (StatusCode, Status)> {
    let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    let content_type = text(header::CONTENT_TYPE).unwrap_or_default();
    let subtype = content_type.strip_prefix("application/grpc");
    if !subtype.is_some_and(|subtype| subtype.is_empty() || subtype.starts_with(['+', ';'])) {
        let why = format!("invalid gRPC request content-type \"{content_type}\"");
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, Status::invalid_argument(why)));
    }
    if *request.method() != axum::http::Method::POST {
        let why = format!("Received a HEADERS frame with :method \"{}\" which should be POST", request.method());
        return Err((StatusCode::METHOD_NOT_ALLOWED, Status::internal(why)));
    }
    match request.headers().get("grpc-timeout") {
        Some(timeout) if !is_timeout(timeout.as_bytes()) => {
            let timeout = String::from_utf8_lossy(timeout.as_bytes());
            Err((StatusCode::BAD_REQUEST, Status::internal(format!("malformed grpc-timeout: \"{timeout}\""))))
        }
        _ => Ok(()),
    }
}

/// One to eight digits and a unit.
fn is_timeout(text: &[u8]) -> bool {
    let Some((unit, digits)) = text.split_last() else { return false };
    b"HMSmun".contains(unit) && (1..=8).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit)
}

impl Method {
    async fn call(&self, request: Request<Body>) -> Result<(), Status> {
        // The query is a part of the name, as in the reference.
        let path = request.uri().path_and_query().map_or("", |path| path.as_str());
        let Some((service, name)) = path.strip_prefix('/').unwrap_or(path).rsplit_once('/') else {
            return Err(Status::unimplemented(format!("malformed method name: \"{path}\"")));
        };
        let known = |signal: &Signal| grpc_message::service(*signal) == service && self.intake.takes(*signal);
        let Some(signal) = Signal::ALL.into_iter().find(known) else {
            return Err(Status::unimplemented(format!("unknown service {service}")));
        };
        if name != "Export" {
            return Err(Status::unimplemented(format!("unknown method {name} for service {service}")));
        }
        let message = self.message(request).await?;
        let payload = Payload::decode(signal, message).map_err(|error| {
            self.intake.malformed(signal, &error);
            Status::internal(format!("grpc: error unmarshalling request: {error}"))
        })?;
        self.intake.take(payload, Protocol::Grpc).await.map_err(refusal)
    }

    /// The one message of the request, decompressed.
    async fn message(&self, request: Request<Body>) -> Result<Bytes, Status> {
        let encoding = encoding_of(request.headers())?;
        let limit = self.max_message;
        let read = body::read(request.into_body(), limit.saturating_add(PREFIX), &self.intake.under_way).await;
        let bytes = read.ok_or_else(|| refusal(status::Status::stopping()))?.map_err(unreadable(limit))?;
        unframe(bytes, encoding, limit)
    }
}

fn refusal(status: status::Status) -> Status {
    let code = i32::try_from(status.code).map_or(Code::Unknown, Code::from_i32);
    Status::new(code, status.message)
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
