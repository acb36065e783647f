//! What a call's end means.

use std::time::Duration;

use axum::http::HeaderMap;
use bytes::Bytes;
use data_encoding::BASE64_NOPAD;

use super::super::sending::{Outcome, PartialSuccess, for_each_field, shown};
use crate::collector::component::Refusal;
use crate::collector::config::secrets::Secrets;
use crate::collector::text::percent;
use crate::otlp::wire::Value;

/// The codes that are tried again.
const RETRYABLE: [u32; 6] = [1, 4, 10, 11, 14, 15];
const RESOURCE_EXHAUSTED: u32 = 8;
/// Those that refuse the sender: permission denied, unimplemented, unauthenticated.
const OF_SENDER: [u32; 3] = [7, 12, 16];

/// The message of an answer.
#[derive(Debug)]
pub(in crate::collector::exporters) enum Message {
    /// As it was before it was compressed.
    Whole(Bytes),
    /// More than is read.
    TooLong,
    /// Not in the form that gRPC gives to messages.
    Unreadable,
}

/// Reads the end of a call: where `grpc-status` stands (the trailers, or the headers of an answer without a message), and
/// the message.
pub(in crate::collector::exporters) fn read(end: &HeaderMap, message: &Message, secrets: &Secrets) -> Outcome {
    let code = text(end, "grpc-status").and_then(|text| text.parse::<u32>().ok());
    let Some(code) = code else {
        return Outcome::Never(Refusal::permanent("bad_answer", "an answer without a gRPC status").answered(13));
    };
    if code == 0 {
        let partial = match message {
            Message::Whole(message) => PartialSuccess::from_wire(message),
            // The status is what counts.
            Message::TooLong => Some(PartialSuccess { rejected: 0, message: "(more than is read)".into() }),
            Message::Unreadable => None,
        };
        return match partial {
            Some(partial) => Outcome::Accepted(PartialSuccess { message: shown(&partial.message, secrets), ..partial }),
            None => Outcome::Never(Refusal::permanent("bad_answer", "the answer is no OTLP message").answered(13)),
        };
    }
    let words = percent::decode(&text(end, "grpc-message").unwrap_or_default());
    let words = String::from_utf8_lossy(&words);
    let pause = retry_info(end);
    let message = format!("status {code}: {}", shown(&words, secrets));
    let mut refusal = Refusal::permanent(format!("grpc_{code}"), message).answered(code);
    if RETRYABLE.contains(&code) || code == RESOURCE_EXHAUSTED && pause.is_some() {
        refusal.retryable = true;
        return Outcome::Later { refusal, pause: pause.filter(|pause| !pause.is_zero()) };
    }
    refusal.of_sender = OF_SENDER.contains(&code);
    Outcome::Never(refusal)
}

/// What an answer means that does not speak gRPC, by its HTTP status: of a proxy, or of another server.
pub(super) fn of_http_status(status: u16) -> Outcome {
    let code = match status {
        400 => 13,
        401 => 16,
        403 => 7,
        404 => 12,
        429 | 502..=504 => 14,
        _ => 2,
    };
    let mut refusal = Refusal::permanent(format!("http_{status}"), format!("HTTP status {status}")).answered(code);
    if RETRYABLE.contains(&code) {
        refusal.retryable = true;
        return Outcome::Later { refusal, pause: None };
    }
    refusal.of_sender = matches!(status, 300..=399 | 401..=405 | 407);
    Outcome::Never(refusal)
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// The pause of a google.rpc.RetryInfo among the details of the status.
fn retry_info(end: &HeaderMap) -> Option<Duration> {
    let encoded = text(end, "grpc-status-details-bin")?;
    let status = BASE64_NOPAD.decode(encoded.trim_end_matches('=').as_bytes()).ok()?;
    let mut pause = None;
    for_each_field(&status, |number, detail| {
        let (3, Value::Bytes(detail)) = (number, detail) else { return Some(()) };
        let (mut is_retry_info, mut content) = (false, &[][..]);
        for_each_field(detail, |number, value| {
            match number {
                1 => is_retry_info = value.bytes().ends_with(b"google.rpc.RetryInfo"),
                2 => content = value.bytes(),
                _ => {}
            }
            Some(())
        })?;
        if is_retry_info {
            pause = Some(delay(content)?);
        }
        Some(())
    })?;
    pause
}

fn delay(retry_info: &[u8]) -> Option<Duration> {
    let mut pause = Duration::ZERO;
    for_each_field(retry_info, |number, delay| {
        if number == 1 {
            for_each_field(delay.bytes(), |number, value| {
                match number {
                    1 => pause = pause.saturating_add(Duration::from_secs(u64::try_from(value.int64()).unwrap_or(0))),
                    2 => pause = pause.saturating_add(Duration::from_nanos(u64::try_from(value.int32()).unwrap_or(0))),
                    _ => {}
                }
                Some(())
            })?;
        }
        Some(())
    })?;
    Some(pause)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;
    use crate::otlp::wire::Writer;

    fn end(code: &str, details: Option<Vec<u8>>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-status", HeaderValue::from_str(code).expect("a value"));
        headers.insert("grpc-message", HeaderValue::from_static("slow%20d%C3%B6wn"));
        if let Some(details) = details {
            let text = BASE64_NOPAD.encode(&details);
            headers.insert("grpc-status-details-bin", HeaderValue::from_str(&text).expect("a value"));
        }
        headers
    }

    fn details(seconds: u64) -> Vec<u8> {
        let mut status = Writer::new();
        status.varint_field(1, 8);
        status.message_field(3, |any| {
            any.bytes_field(1, b"type.googleapis.com/google.rpc.RetryInfo");
            any.message_field(2, |info| info.message_field(1, |delay| delay.varint_field(1, seconds)));
        });
        status.into_vec()
    }

    fn whole(message: &'static [u8]) -> Message {
        Message::Whole(Bytes::from_static(message))
    }

    fn nothing() -> Message {
        whole(b"")
    }

    #[test]
    fn codes_and_pauses() {
        for code in ["1", "4", "10", "11", "14", "15"] {
            assert!(
                matches!(read(&end(code, None), &nothing(), &Secrets::default()), Outcome::Later { pause: None, .. }),
                "{code}"
            );
        }
        for code in ["2", "3", "5", "7", "8", "12", "13", "16"] {
            assert!(matches!(read(&end(code, None), &nothing(), &Secrets::default()), Outcome::Never(_)), "{code}");
        }
        let Outcome::Later { refusal, pause } = read(&end("8", Some(details(3))), &nothing(), &Secrets::default())
        else {
            panic!("retryable")
        };
        assert_eq!((pause, refusal.message.as_str()), (Some(Duration::from_secs(3)), "status 8: slow d\u{f6}wn"));
        let partial = PartialSuccess { rejected: 3, message: "bad".into() };
        assert_eq!(
            read(&end("0", None), &whole(&[10, 7, 8, 3, 18, 3, b'b', b'a', b'd']), &Secrets::default()),
            Outcome::Accepted(partial)
        );
        assert!(matches!(read(&HeaderMap::new(), &nothing(), &Secrets::default()), Outcome::Never(_)));
    }
}
