//! The services of OTLP over gRPC, and how gRPC puts a message into a body: one byte that says whether it is compressed,
//! four for its length, the message.

use axum::http::{HeaderMap, HeaderValue};
use bytes::{BufMut as _, Bytes, BytesMut};
use tonic::Status;

use super::encoding::{Encoding, Unreadable};
use crate::otlp::Signal;

/// The service of each signal, whose one method is `Export`.
pub fn service(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "opentelemetry.proto.collector.trace.v1.TraceService",
        Signal::Metrics => "opentelemetry.proto.collector.metrics.v1.MetricsService",
        Signal::Logs => "opentelemetry.proto.collector.logs.v1.LogsService",
    }
}

/// What stands in front of a message.
pub const PREFIX: usize = 5;

/// The body with one message; an error if it is longer than its length can say.
pub fn frame(message: &[u8], is_compressed: bool) -> std::io::Result<Bytes> {
    let length = u32::try_from(message.len()).map_err(|_| std::io::Error::other("more than 4 GiB"))?;
    let mut frame = BytesMut::with_capacity(PREFIX + message.len());
    frame.put_u8(u8::from(is_compressed));
    frame.put_u32(length);
    frame.put_slice(message);
    Ok(frame.freeze())
}

/// How messages under these headers are compressed, those that say that they are.
pub fn encoding_of(headers: &HeaderMap) -> Result<Encoding, Status> {
    match headers.get("grpc-encoding").map(HeaderValue::as_bytes) {
        None | Some(b"" | b"identity") => Ok(Encoding::Identity),
        Some(b"gzip") => Ok(Encoding::Gzip),
        Some(b"snappy") => Ok(Encoding::SnappyFramed),
        Some(b"zstd") => Ok(Encoding::Zstd),
        Some(other) => {
            let other = String::from_utf8_lossy(other);
            let text = format!("grpc: Decompressor is not installed for grpc-encoding \"{other}\"");
            Err(Status::unimplemented(text))
        }
    }
}

/// The one message of a request or answer with this body, decompressed: of `limit` bytes at most.
pub fn unframe(mut bytes: Bytes, encoding: Encoding, limit: usize) -> Result<Bytes, Status> {
    if bytes.len() < PREFIX {
        return Err(Status::unknown("EOF"));
    }
    let prefix = bytes.split_to(PREFIX);
    let length = usize::try_from(u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]));
    match length.unwrap_or(usize::MAX) {
        length if length > limit => {
            let why = format!("grpc: received message larger than max ({length} vs. {limit})");
            return Err(Status::resource_exhausted(why));
        }
        length if length > bytes.len() => return Err(Status::unknown("unexpected EOF")),
        // The reference takes the first one and says that it has taken all.
        length if length < bytes.len() => return Err(Status::internal("the call has more than one message")),
        _ => {}
    }
    match (prefix[0], encoding) {
        (0, _) => Ok(bytes),
        (1, Encoding::Identity) => Err(Status::internal("grpc: compressed flag set with identity or empty encoding")),
        (1, _) => encoding.decode(bytes, limit).map_err(unreadable(limit)),
        (flag, _) => Err(Status::internal(format!("grpc: received unexpected payload format {flag}"))),
    }
}

pub fn unreadable(limit: usize) -> impl Fn(Unreadable) -> Status {
    move |why| match why {
        Unreadable::TooLarge => {
            Status::resource_exhausted(format!("grpc: received message larger than max ({limit} bytes)"))
        }
        Unreadable::Broken(text) => Status::internal(format!("grpc: {text}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_framed_comes_back_and_nothing_else_does() {
        let framed = frame(b"abc", false).expect("short");
        assert_eq!(framed.as_ref(), b"\0\0\0\0\x03abc");
        for encoding in [Encoding::Identity, Encoding::Gzip] {
            assert_eq!(unframe(framed.clone(), encoding, 3).expect("whole").as_ref(), b"abc");
        }
        let code = |body: &[u8], encoding, limit| {
            unframe(Bytes::copy_from_slice(body), encoding, limit).expect_err("broken").code()
        };
        assert_eq!(code(&framed, Encoding::Identity, 2), tonic::Code::ResourceExhausted);
        assert_eq!(code(&framed[..4], Encoding::Identity, 3), tonic::Code::Unknown);
        assert_eq!(code(&framed[..7], Encoding::Identity, 3), tonic::Code::Unknown);
        assert_eq!(code(&[&framed[..], &framed[..]].concat(), Encoding::Identity, 9), tonic::Code::Internal);
        let compressed = frame(b"abc", true).expect("short");
        for encoding in [Encoding::Identity, Encoding::Gzip] {
            assert_eq!(code(&compressed, encoding, 9), tonic::Code::Internal);
        }
    }
}
