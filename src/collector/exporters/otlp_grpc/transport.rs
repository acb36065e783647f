//! One call.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Request, Response, header};
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::future::BoxFuture;
use http_body_util::{BodyExt, Full};
use tonic::client::GrpcService as _;
use tonic::transport::Channel;

use super::super::sending::{Compression, Outcome, Transport};
use super::answer::{self, Message};
use super::channel::words;
use super::config::Settings;
use crate::collector::component::Refusal;
use crate::collector::config::duration::about;
use crate::collector::config::secrets::Secrets;
use crate::collector::net::grpc_message::{PREFIX, encoding_of, frame, service, unframe};
use crate::collector::net::host::bare;
use crate::collector::own::{Label, Labels, labels};
use crate::otlp::{Payload, Signal};

/// How much of an answer is read, as in the reference.
const ANSWER_LIMIT: usize = 4 << 20;

/// How often a call is sent again that was not seen. A connection that is being left may be met once more.
const MOST_AGAIN: usize = 2;

/// The way of one signal's requests.
pub(super) struct Grpc {
    channel: Channel,
    path: String,
    headers: HeaderMap,
    compression: Compression,
    timeout: Duration,
    secrets: Secrets,
}

impl Grpc {
    pub fn new(signal: Signal, channel: Channel, settings: &Settings, secrets: Secrets) -> Self {
        let path = format!("{}/{}/Export", settings.url.trim_end_matches('/'), service(signal));
        let (headers, compression) = (settings.headers.clone(), settings.compression);
        Self { channel, path, headers, compression, timeout: settings.timeout, secrets }
    }

    fn request(&self, message: Bytes) -> Result<Request<tonic::body::Body>, Outcome> {
        let mut request = Request::post(&self.path)
            .body(tonic::body::Body::new(Full::new(message)))
            .map_err(|error| Outcome::Never(Refusal::permanent("request", error.to_string())))?;
        let headers = request.headers_mut();
        headers.extend(self.headers.clone());
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert("grpc-accept-encoding", HeaderValue::from_static("identity"));
        if !self.compression.name.is_empty() {
            headers.insert("grpc-encoding", HeaderValue::from_static(self.compression.name));
        }
        if !self.timeout.is_zero() {
            let text = format!("{}m", self.timeout.as_millis().min(99_999_999));
            headers.extend(HeaderValue::try_from(text).ok().map(|value| (TIMEOUT, value)));
        }
        Ok(request)
    }

    /// The begin of the answer. What the server never looked at is sent again at once, as gRPC wants it: that is no retry.
    async fn send(&self, message: Bytes) -> Result<Response<tonic::body::Body>, Outcome> {
        let mut again = MOST_AGAIN;
        loop {
            let mut channel = self.channel.clone();
            let request = self.request(message.clone())?;
            let sent = match std::future::poll_fn(|context| channel.poll_ready(context)).await {
                Ok(()) => channel.call(request).await,
                Err(error) => Err(error),
            };
            match sent {
                Ok(answer) => return Ok(answer),
                Err(error) if again > 0 && was_not_seen(&error) => again -= 1,
                Err(error) => return Err(self.not_answered(&words(&error))),
            }
        }
    }

    async fn call(&self, message: Bytes) -> Outcome {
        let answer = match self.send(message).await {
            Ok(answer) => answer,
            Err(outcome) => return outcome,
        };
        let (head, body) = answer.into_parts();
        // What speaks gRPC says how it went in words of its own, whatever the HTTP status.
        if head.status != 200 && !is_grpc(&head.headers) {
            return answer::of_http_status(head.status.as_u16());
        }
        match read(body).await {
            Ok((message, trailers)) => {
                let message = unpacked(&head.headers, message);
                answer::read(trailers.as_ref().unwrap_or(&head.headers), &message, &self.secrets)
            }
            Err(error) => self.not_answered(&words(&error)),
        }
    }
}

/// Whether a call failed before its server looked at it: the connection closed first, or the server says so by the last
/// stream that it names when it leaves (GOAWAY), or by the reason.
fn was_not_seen(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source()).any(|error| {
        let unsent = error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled);
        let refused = error.downcast_ref::<h2::Error>().is_some_and(|error| {
            error.is_remote() && (error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM))
        });
        unsent || refused
    })
}

/// Whether an answer speaks gRPC.
fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.as_bytes().strip_prefix(b"application/grpc"));
    kind.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
}

/// The message, as it came, and the trailers of an answer. One that is too long is passed over: the end says what counts.
async fn read(mut body: tonic::body::Body) -> Result<(Message, Option<HeaderMap>), tonic::Status> {
    let (mut message, mut trailers) = (BytesMut::new(), None);
    let mut is_whole = true;
    while let Some(frame) = body.frame().await {
        match frame?.into_data() {
            Ok(data) if is_whole && message.len() + data.len() <= ANSWER_LIMIT + PREFIX => message.put(data),
            Ok(_) => is_whole = false,
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    Ok((if is_whole { Message::Whole(message.freeze()) } else { Message::TooLong }, trailers))
}

/// The message of an answer. Servers may compress it as the request was, whatever they are told.
fn unpacked(headers: &HeaderMap, message: Message) -> Message {
    let Message::Whole(body) = message else { return message };
    if body.is_empty() {
        return Message::Whole(body);
    }
    let Ok(encoding) = encoding_of(headers) else { return Message::Unreadable };
    match unframe(body, encoding, ANSWER_LIMIT) {
        Ok(message) => Message::Whole(message),
        Err(status) if status.code() == tonic::Code::ResourceExhausted => Message::TooLong,
        Err(_) => Message::Unreadable,
    }
}

impl Grpc {
    fn not_answered(&self, why: &str) -> Outcome {
        Outcome::not_answered("connection", why, &self.secrets)
    }
}

const TIMEOUT: header::HeaderName = header::HeaderName::from_static("grpc-timeout");

impl Transport for Grpc {
    fn encode(&self, payload: Payload) -> std::io::Result<Bytes> {
        // snappy means frames here, where HTTP means a block.
        let packed = match self.compression.name {
            "snappy" => Compression { name: "x-snappy-framed", ..self.compression }.pack(payload.into_parts())?,
            _ => self.compression.pack(payload.into_parts())?,
        };
        frame(&packed, !self.compression.name.is_empty())
    }

    fn endpoint(&self) -> Labels {
        let authority = self.path.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or(rest));
        let (host, port) = authority.rsplit_once(':').unwrap_or((authority, ""));
        let mut labels = labels([("server.address", bare(host))]);
        labels.extend(port.parse().ok().map(|port| ("server.port".into(), Label::Integer(port))));
        labels
    }

    fn attempt(&self, request: Bytes) -> BoxFuture<'_, Outcome> {
        Box::pin(async move {
            if self.timeout.is_zero() {
                return self.call(request).await;
            }
            let outcome = tokio::time::timeout(self.timeout, self.call(request)).await;
            outcome.unwrap_or_else(|_| {
                let message = format!("no answer within {}", about(self.timeout));
                Outcome::Later { refusal: Refusal::retryable("timeout", message), pause: None }
            })
        })
    }
}
