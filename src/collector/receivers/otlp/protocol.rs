//! What the reference's HTTP server answers by itself, whatever is asked for.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Version, header};

use super::http::respond;
use super::path;

/// The answer to a request that does not come to the handlers.
pub(super) fn answer(head: &Parts) -> Option<Response<Body>> {
    let refuse = |status, text: &'static str| Some(closing(respond(status, "text/plain; charset=utf-8", text)));
    if head.version < Version::HTTP_2 {
        if let Some(text) = host_problem(&head.headers, head.version) {
            return refuse(StatusCode::BAD_REQUEST, text);
        }
        let is_known = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
        if !all(&head.headers, &header::TRANSFER_ENCODING, is_known) {
            return refuse(StatusCode::NOT_IMPLEMENTED, "Unsupported transfer encoding");
        }
    }
    if path::has_bad_escape(head.uri.path()) {
        return refuse(StatusCode::BAD_REQUEST, "400 Bad Request");
    }
    let is_expected = |value: &HeaderValue| value.is_empty() || value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    if !all(&head.headers, &header::EXPECT, is_expected) {
        return Some(closing(bare(StatusCode::EXPECTATION_FAILED)));
    }
    (head.method == Method::OPTIONS && head.uri.path() == "*").then(|| bare(StatusCode::OK))
}

/// What is wrong with the Host of a request.
fn host_problem(headers: &HeaderMap, version: Version) -> Option<&'static str> {
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if version == Version::HTTP_11 => Some("400 Bad Request: missing required Host header"),
        (Some(_), Some(_)) => Some("400 Bad Request"),
        (Some(host), None) if !host.as_bytes().iter().all(|byte| is_of_host(*byte)) => {
            Some("400 Bad Request: malformed Host header")
        }
        _ => None,
    }
}

fn is_of_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!$%&'()*+,-.:;=[]_~".contains(&byte)
}

fn all(headers: &HeaderMap, name: &HeaderName, is_right: impl Fn(&HeaderValue) -> bool) -> bool {
    headers.get_all(name).iter().all(is_right)
}

fn bare(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// The last answer on its connection.
fn closing(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}
