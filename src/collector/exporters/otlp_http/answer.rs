//! What an endpoint's answer means.

use std::time::Duration;

use super::super::sending::{Outcome, PartialSuccess, for_each_field, shown};
use crate::collector::component::Refusal;
use crate::collector::config::secrets::Secrets;
use crate::otlp::Signal;
use crate::otlp::wire::Value;

/// Reads an answer: its status, content type, `Retry-After` and body. What it says is shown without `secrets`: an
/// endpoint may quote what it was sent.
pub(in crate::collector::exporters) fn read(
    signal: Signal,
    status: u16,
    content_type: Option<&str>,
    retry_after: Option<&str>,
    body: &[u8],
    secrets: &Secrets,
) -> Outcome {
    let kind = content_type.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim().to_ascii_lowercase();
    if (200..300).contains(&status) && is_web_page(&kind, body) {
        let message = format!(
            "status {status} with a page for people (a login?), which no OTLP endpoint has: look at the address"
        );
        let mut refusal = Refusal::permanent("web_page", message).answered(13);
        refusal.of_sender = true;
        return Outcome::Never(refusal);
    }
    if (200..300).contains(&status) {
        return if let Some(partial_success) = partial_success(signal, &kind, body) {
            Outcome::Accepted(PartialSuccess { message: shown(&partial_success.message, secrets), ..partial_success })
        } else {
            let message = format!("status {status} with a body that is no OTLP answer");
            Outcome::Never(Refusal::permanent("bad_answer", message).answered(13))
        };
    }
    let words = shown(&error_words(&kind, body), secrets);
    let message = if words.is_empty() { format!("status {status}") } else { format!("status {status}: {words}") };
    let mut refusal = Refusal::permanent(format!("http_{status}"), message).answered(code(status));
    if matches!(status, 429 | 502 | 503 | 504) {
        refusal.retryable = true;
        let pause = retry_after.filter(|_| matches!(status, 429 | 503)).and_then(pause);
        return Outcome::Later { refusal, pause };
    }
    refusal.of_sender = matches!(status, 300..=399 | 401..=405 | 407);
    Outcome::Never(refusal)
}

/// Whether an answer is a page of HTML. Others that are called so, such as an `ok`, are not.
fn is_web_page(kind: &str, body: &[u8]) -> bool {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii_start();
    let begins = |with: &[u8]| body.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with));
    kind == "text/html" && (begins(b"<!doctype html") || begins(b"<html"))
}

/// The google.rpc code that a status stands for.
fn code(status: u16) -> u32 {
    match status {
        400 => 3,
        401 => 16,
        403 => 7,
        404 => 12,
        429 => 8,
        502..=504 => 14,
        _ => 2,
    }
}

/// Seconds, or a date of RFC 1123.
fn pause(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(jiff::Timestamp::now())).unwrap_or_default())
}

/// What was rejected; `None` if the body is broken. Other content types are not looked at.
fn partial_success(signal: Signal, kind: &str, body: &[u8]) -> Option<PartialSuccess> {
    if body.is_empty() {
        return Some(PartialSuccess::default());
    }
    match kind {
        "application/x-protobuf" => PartialSuccess::from_wire(body),
        "application/json" => json_partial_success(signal, body),
        _ => Some(PartialSuccess::default()),
    }
}

fn json_partial_success(signal: Signal, body: &[u8]) -> Option<PartialSuccess> {
    let keys = match signal {
        Signal::Traces => ["rejectedSpans", "rejected_spans"],
        Signal::Metrics => ["rejectedDataPoints", "rejected_data_points"],
        Signal::Logs => ["rejectedLogRecords", "rejected_log_records"],
    };
    let answer: serde_json::Value = serde_json::from_slice(body).ok()?;
    let partial = answer.as_object()?.get("partialSuccess").or_else(|| answer.get("partial_success"));
    let Some(partial) = partial else { return Some(PartialSuccess::default()) };
    let rejected = keys.iter().find_map(|key| partial.get(key));
    let number = |value: &serde_json::Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
    let message = ["errorMessage", "error_message"].iter().find_map(|key| partial.get(key)?.as_str());
    let message = message.unwrap_or_default().to_owned();
    Some(PartialSuccess { rejected: rejected.and_then(number).unwrap_or(0), message })
}

/// The message of a google.rpc.Status, else the body.
fn error_words(kind: &str, body: &[u8]) -> String {
    let message = match kind {
        "application/x-protobuf" => {
            let mut message = None;
            let whole = for_each_field(body, |number, value| {
                if let (2, Value::Bytes(text)) = (number, value) {
                    message = Some(String::from_utf8_lossy(text).into_owned());
                }
                Some(())
            });
            whole.and(message)
        }
        "application/json" => serde_json::from_slice::<serde_json::Value>(body)
            .ok()
            .and_then(|answer| answer.get("message")?.as_str().map(str::to_owned)),
        _ => None,
    };
    message.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROTOBUF: Option<&str> = Some("application/x-protobuf");
    const JSON: Option<&str> = Some("application/json");

    fn accepted(rejected: u64, message: &str) -> Outcome {
        Outcome::Accepted(PartialSuccess { rejected, message: message.to_owned() })
    }

    #[test]
    fn partial_success_in_both_encodings() {
        let read = |kind, body: &[u8]| read(Signal::Metrics, 200, kind, None, body, &Secrets::default());
        assert_eq!(read(PROTOBUF, b""), accepted(0, ""));
        assert_eq!(read(PROTOBUF, &[10, 0]), accepted(0, ""));
        assert_eq!(read(PROTOBUF, &[10, 7, 8, 3, 18, 3, b'b', b'a', b'd']), accepted(3, "bad"));
        assert_eq!(read(JSON, br#"{"partialSuccess":{}}"#), accepted(0, ""));
        let some = br#"{"partialSuccess":{"rejectedDataPoints":"3","errorMessage":"bad"}}"#;
        assert_eq!(read(JSON, some), accepted(3, "bad"));
        assert_eq!(read(Some("text/html"), b"ok"), accepted(0, ""));
        assert_eq!(read(Some("text/plain"), b"<html>"), accepted(0, ""));
        for (kind, body) in [(PROTOBUF, &b"\xff"[..]), (JSON, b"<html>")] {
            assert!(matches!(read(kind, body), Outcome::Never(refusal) if refusal.code() == 13));
        }
    }

    /// The login of a proxy took nothing, whatever its status says.
    #[test]
    fn a_page_for_people_is_no_success() {
        for body in ["<html>", "\n <!DOCTYPE html><p>", "\u{feff}<HTML lang=en>"] {
            let read =
                read(Signal::Logs, 200, Some("text/html; charset=utf-8"), None, body.as_bytes(), &Secrets::default());
            assert!(
                matches!(read, Outcome::Never(refusal) if refusal.reason == "web_page" && refusal.is_worth_keeping())
            );
        }
    }

    #[test]
    fn which_statuses_are_tried_again() {
        let body = br#"{"code":8,"message":"slow\ndown"}"#;
        let read = |status, after| read(Signal::Traces, status, JSON, after, body, &Secrets::default());
        for status in [429, 502, 503, 504] {
            assert!(matches!(read(status, None), Outcome::Later { pause: None, .. }), "{status}");
        }
        let Outcome::Later { refusal, pause } = read(429, Some("3")) else { panic!("retryable") };
        assert_eq!((pause, refusal.message.as_str()), (Some(Duration::from_secs(3)), "status 429: slow down"));
        assert_eq!(refusal.reason, "http_429");
        let past = read(503, Some("Sun, 06 Nov 1994 08:49:37 GMT"));
        assert!(matches!(past, Outcome::Later { pause: Some(Duration::ZERO), .. }));
        assert!(matches!(read(502, Some("3")), Outcome::Later { pause: None, .. }));
        assert!(matches!(read(503, Some("soon")), Outcome::Later { pause: None, .. }));
        for (status, http) in [(400, 400), (401, 401), (403, 403), (404, 404), (413, 500), (500, 500), (302, 500)] {
            assert!(matches!(read(status, None), Outcome::Never(refusal) if refusal.http_status() == http), "{status}");
        }
    }

    /// An endpoint that quotes the header is not quoted, in whatever part of its answer, at the border of what is shown
    /// too.
    #[test]
    fn no_secret_is_shown() {
        let mut secrets = Secrets::default();
        secrets.add("Bearer t0ken-th4t");
        let said = |status, kind, body: &[u8]| match read(Signal::Traces, status, kind, None, body, &secrets) {
            Outcome::Accepted(partial_success) => partial_success.message,
            Outcome::Later { refusal, .. } | Outcome::Never(refusal) => refusal.message,
        };
        let wire = [&[18, 17][..], b"Bearer t0ken-th4t"].concat();
        let partial = br#"{"partialSuccess":{"errorMessage":"for t0ken-th4t"}}"#;
        let message = br#"{"message":"bad token t0ken-th4t, sir"}"#;
        assert_eq!(said(401, None, b"no: Bearer t0ken-th4t"), "status 401: no: ***");
        assert_eq!(said(503, PROTOBUF, &wire), "status 503: ***");
        assert_eq!(said(403, JSON, message), "status 403: bad token ***, sir");
        assert_eq!(said(200, JSON, partial), "for ***");
        for before in 180..=200 {
            let body = [&vec![b'x'; before][..], b"t0ken-th4t"].concat();
            assert!(!said(400, None, &body).contains("t0k"), "{before}");
        }
    }
}
