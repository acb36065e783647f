//! Doors for the fuzz targets in `fuzz/`: what endpoints answer.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;

use super::sending::Outcome;
use super::{otlp_grpc, otlp_http};
use crate::collector::config::secrets::Secrets;
use crate::otlp::Signal;

/// What is said of the answer to an OTLP/HTTP request.
#[must_use]
pub fn http_answer(signal: Signal, status: u16, headers: &[(&str, &str)], body: &[u8], secret: &str) -> String {
    let headers = header_map(headers);
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let (kind, pause) = (text("content-type"), text("retry-after"));
    words(otlp_http::read_answer(signal, status, kind, pause, body, &secrets(secret)))
}

/// What is said of the end of an OTLP/gRPC call.
#[must_use]
pub fn grpc_answer(trailers: &[(&str, &str)], message: &[u8], secret: &str) -> String {
    let message = otlp_grpc::Message::Whole(Bytes::copy_from_slice(message));
    words(otlp_grpc::read_answer(&header_map(trailers), &message, &secrets(secret)))
}

/// What is no header is left out.
fn header_map(pairs: &[(&str, &str)]) -> HeaderMap {
    let pair =
        |(name, value): &(&str, &str)| Some((HeaderName::try_from(*name).ok()?, HeaderValue::try_from(*value).ok()?));
    pairs.iter().filter_map(pair).collect()
}

fn secrets(secret: &str) -> Secrets {
    let mut secrets = Secrets::default();
    secrets.add(secret);
    secrets
}

fn words(outcome: Outcome) -> String {
    match outcome {
        Outcome::Accepted(partial_success) => partial_success.message,
        Outcome::Later { refusal, .. } | Outcome::Never(refusal) => refusal.message,
    }
}
