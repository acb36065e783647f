//! OTLP over HTTP.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode, header};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::body;
use super::config::HttpSettings;
use super::intake::{Intake, Protocol};
use super::path::Place;
use super::status::Status;
use super::{path, protocol};
use crate::collector::net::accept::Connections;
use crate::collector::net::encoding::{Encoding, Unreadable};
use crate::collector::net::http_server;
use crate::otlp::{Payload, Signal};

/// Answers requests until `stop`, then until those in flight are answered.
pub(super) async fn serve(
    connections: Connections,
    settings: HttpSettings,
    intake: Arc<Intake>,
    stop: CancellationToken,
) {
    let patience = settings.patience;
    let router = Router::new().fallback(answer).with_state(Arc::new((settings, intake)));
    http_server::serve(connections, router, patience, stop).await;
}

/// The form of a request, which is also that of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Protobuf,
    Json,
}

impl Form {
    /// By the media type; case and parameters make no difference.
    fn of(headers: &HeaderMap) -> Option<Self> {
        let media_type = text(headers, &header::CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
        [Self::Protobuf, Self::Json].into_iter().find(|form| media_type.eq_ignore_ascii_case(form.media_type()))
    }

    const fn media_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }

    fn refuse(self, status: &Status) -> Response<Body> {
        let body = if self == Self::Json { status.to_json() } else { status.to_protobuf() };
        respond(StatusCode::from_u16(status.http).unwrap_or_default(), self.media_type(), body)
    }

    /// An empty partial success, which the reference always sends.
    fn accept(self) -> Response<Body> {
        let body: &[u8] = if self == Self::Json { b"{\"partialSuccess\":{}}" } else { &[0x0a, 0x00] };
        respond(StatusCode::OK, self.media_type(), body)
    }
}

async fn answer(State(state): State<Arc<(HttpSettings, Arc<Intake>)>>, request: Request<Body>) -> Response<Body> {
    let (settings, intake) = &*state;
    let _request = intake.under_way.begin();
    let mut response = respond_to(settings, intake, request).await;
    http_server::add_headers(response.headers_mut(), &settings.response_headers);
    response
}

async fn respond_to(settings: &HttpSettings, intake: &Intake, request: Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    match asked(settings, intake, &head) {
        Ok(asked) => match take(settings, intake, asked, body).await {
            Ok(()) => asked.form.accept(),
            Err(status) => asked.form.refuse(&status),
        },
        Err(answer) => {
            // Closing the connection on a client that sends before it reads would take the answer from it. One that waits
            // for leave to send (`Expect`) reads first.
            if !head.headers.contains_key(header::EXPECT) {
                let discarded = body::discard(body, &intake.under_way);
                match settings.patience.body {
                    Some(patience) => drop(timeout(patience, discarded).await),
                    None => discarded.await,
                }
            }
            *answer
        }
    }
}

/// What a request is about.
#[derive(Debug, Clone, Copy)]
struct Asked {
    signal: Signal,
    form: Form,
    encoding: Encoding,
}

/// Reads the head of a request; the answer if that is all that matters.
fn asked(settings: &HttpSettings, intake: &Intake, head: &Parts) -> Result<Asked, Box<Response<Body>>> {
    if let Some(answer) = protocol::answer(head) {
        return Err(answer.into());
    }
    let form = Form::of(&head.headers);
    // The reference looks at the compression before anything else, and answers in JSON where it does not know the form.
    let encoding = encoding(settings, text(&head.headers, &header::CONTENT_ENCODING))
        .map_err(|status| form.unwrap_or(Form::Json).refuse(&status))?;
    let clean = if head.method == Method::CONNECT { String::new() } else { path::clean(head.uri.path()) };
    let place = path::find(&settings.paths, |signal| intake.takes(signal), &path::decode(&clean));
    if place == Place::Below {
        return Err(redirect(settings, &head.method, &format!("{clean}/"), head.uri.query()).into());
    }
    if clean != head.uri.path() {
        return Err(redirect(settings, &head.method, &clean, head.uri.query()).into());
    }
    let Place::Of(signal) = place else {
        let mut response = respond(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", "404 page not found\n");
        response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, header::HeaderValue::from_static("nosniff"));
        return Err(response.into());
    };
    if head.method != Method::POST {
        let text = "405 method not allowed, supported: [POST]";
        return Err(respond(StatusCode::METHOD_NOT_ALLOWED, "text/plain", text).into());
    }
    let Some(form) = form else {
        let text = "415 unsupported media type, supported: [application/json, application/x-protobuf]";
        return Err(respond(StatusCode::UNSUPPORTED_MEDIA_TYPE, "text/plain", text).into());
    };
    Ok(Asked { signal, form, encoding })
}

/// By the value of Content-Encoding, which is compared exactly as the reference does it.
fn encoding(settings: &HttpSettings, name: &str) -> Result<Encoding, Status> {
    if settings.encodings.is_empty() {
        return Ok(Encoding::Identity);
    }
    let found = settings.encodings.iter().find(|(known, _)| *known == name);
    found.map(|(_, encoding)| *encoding).ok_or_else(|| {
        let known: Vec<&str> = settings.encodings.iter().map(|(known, _)| *known).filter(|k| !k.is_empty()).collect();
        Status::invalid(format!("unsupported Content-Encoding: {name} (supported: {})", known.join(", ")))
    })
}

async fn take(settings: &HttpSettings, intake: &Intake, asked: Asked, body: Body) -> Result<(), Status> {
    let Asked { signal, form, encoding } = asked;
    let read = body::read(body, settings.max_body, &intake.under_way);
    let bytes = match settings.patience.body {
        Some(patience) => {
            timeout(patience, read).await.unwrap_or_else(|_| Some(Err(Unreadable::Broken("i/o timeout".into()))))
        }
        None => read.await,
    };
    let bytes = bytes.ok_or_else(Status::stopping)?.map_err(unreadable)?;
    let bytes = encoding.decode(bytes, settings.max_body).map_err(unreadable)?;
    let decoded = match form {
        Form::Protobuf => Payload::decode(signal, bytes),
        Form::Json => Payload::from_json(signal, &bytes),
    };
    let payload = decoded.map_err(|error| {
        intake.malformed(signal, &error);
        Status::invalid(error.to_string())
    })?;
    intake.take(payload, Protocol::Http).await
}

fn unreadable(why: Unreadable) -> Status {
    match why {
        Unreadable::TooLarge => Status::invalid("http: request body too large"),
        Unreadable::Broken(text) => Status::invalid(text),
    }
}

/// A path with `//` or `..` in it is answered with the clean one. There are words for people where nothing else is configured.
fn redirect(settings: &HttpSettings, method: &Method, path: &str, query: Option<&str>) -> Response<Body> {
    let location = query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
    let has_type = settings.response_headers.contains_key(header::CONTENT_TYPE);
    let mut response = if matches!(*method, Method::GET | Method::HEAD) && !has_type {
        let body = format!("<a href=\"{location}\">Temporary Redirect</a>.\n\n");
        respond(StatusCode::TEMPORARY_REDIRECT, "text/html; charset=utf-8", body)
    } else {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
        response
    };
    if let Ok(location) = header::HeaderValue::try_from(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// The first value of a header; empty if there is none, or if it is no text.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

pub(super) fn respond(status: StatusCode, media_type: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(media_type));
    response
}
