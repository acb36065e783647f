//! OTLP over HTTP.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode, header};
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::body::{self, Encoding};
use super::config::HttpSettings;
use super::intake::Intake;
use super::status::Status;
use crate::otlp::{Payload, Signal};

/// Answers requests until `stop`, then until those in flight are answered.
pub(super) async fn serve(listener: TcpListener, settings: HttpSettings, intake: Arc<Intake>, stop: CancellationToken) {
    let router = Router::new().fallback(answer).with_state(Arc::new((settings, intake)));
    // Failing to set it costs some milliseconds, nothing else.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let served = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned());
    // It never gives an error.
    let _ = served.await;
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
    let (head, body) = request.into_parts();
    let form = Form::of(&head.headers);
    // The reference looks at the compression before anything else, and answers in JSON where it does not know the form.
    let encoding = match Encoding::named(text(&head.headers, &header::CONTENT_ENCODING)) {
        Ok(encoding) => encoding,
        Err(status) => return form.unwrap_or(Form::Json).refuse(&status),
    };
    let path = head.uri.path();
    let signal = settings.paths.iter().find(|(known, _)| known == path).map(|(_, signal)| *signal);
    let Some(signal) = signal.filter(|signal| intake.takes(*signal)) else {
        return respond(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", "404 page not found\n");
    };
    if head.method != Method::POST {
        let text = "405 method not allowed, supported: [POST]";
        return respond(StatusCode::METHOD_NOT_ALLOWED, "text/plain", text);
    }
    let Some(form) = form else {
        let text = "415 unsupported media type, supported: [application/json, application/x-protobuf]";
        return respond(StatusCode::UNSUPPORTED_MEDIA_TYPE, "text/plain", text);
    };
    match take(settings, intake, signal, form, encoding, body).await {
        Ok(()) => form.accept(),
        Err(status) => form.refuse(&status),
    }
}

async fn take(
    settings: &HttpSettings,
    intake: &Intake,
    signal: Signal,
    form: Form,
    encoding: Encoding,
    body: Body,
) -> Result<(), Status> {
    let bytes = body::read(body, encoding, settings.max_body).await?;
    let decoded = match form {
        Form::Protobuf => Payload::decode(signal, bytes),
        Form::Json => Payload::from_json(signal, &bytes),
    };
    let payload = decoded.map_err(|error| {
        intake.malformed(signal, &error);
        Status::invalid(error.to_string())
    })?;
    intake.take(payload).await
}

/// The first value of a header; empty if there is none, or if it is no text.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn respond(status: StatusCode, media_type: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(media_type));
    response
}
