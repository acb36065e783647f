//! Request bodies: read and decompressed up to a limit.

use std::io::{self, Read};

use axum::body::{Body, HttpBody};
use bytes::{Bytes, BytesMut};
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use http_body_util::BodyExt;

use super::status::Status;

/// The compression of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// None.
    Identity,
    /// `gzip`.
    Gzip,
    /// `zlib` and `deflate`, which both mean the zlib format.
    Zlib,
}

impl Encoding {
    /// By the value of Content-Encoding, which is compared exactly as the reference does it.
    pub fn named(name: &str) -> Result<Self, Status> {
        match name {
            "" => Ok(Self::Identity),
            "gzip" => Ok(Self::Gzip),
            "zlib" | "deflate" => Ok(Self::Zlib),
            _ => Err(Status::invalid(format!("unsupported Content-Encoding: {name} (supported: gzip, zlib, deflate)"))),
        }
    }

    /// The decompressed bytes, `limit` at most.
    fn decode(self, bytes: Bytes, limit: usize) -> Result<Bytes, Status> {
        match self {
            Self::Identity => Ok(bytes),
            Self::Gzip => decompress(MultiGzDecoder::new(&*bytes), bytes.len(), limit),
            Self::Zlib => decompress(ZlibDecoder::new(&*bytes), bytes.len(), limit),
        }
    }
}

fn decompress(reader: impl Read, compressed: usize, limit: usize) -> Result<Bytes, Status> {
    let mut bytes = Vec::with_capacity(compressed.saturating_mul(4).min(limit));
    let allowed = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    reader
        .take(allowed)
        .read_to_end(&mut bytes)
        .map_err(|error: io::Error| Status::invalid(format!("the body cannot be decompressed: {error}")))?;
    if bytes.len() > limit { Err(too_large()) } else { Ok(bytes.into()) }
}

fn too_large() -> Status {
    Status::invalid("http: request body too large")
}

/// How much of a body that is refused is read and thrown away, so that a client that sends before it reads gets its
/// answer.
const DISCARDED: usize = 256 * 1024 * 1024;

/// The whole body, decompressed; both forms may have `limit` bytes.
pub(super) async fn read(mut body: Body, encoding: Encoding, limit: usize) -> Result<Bytes, Status> {
    let (mut first, mut collected, mut size) = (Bytes::new(), BytesMut::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Status::invalid(format!("the body ends early: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        size += data.len();
        if size > limit {
            // Stops collecting; the memory is free again while the rest passes by.
            (first, collected) = (Bytes::new(), BytesMut::new());
            if size > limit.saturating_add(DISCARDED) {
                break;
            }
        } else if first.is_empty() && collected.is_empty() {
            first = data;
        } else {
            if collected.is_empty() {
                let rest = usize::try_from(body.size_hint().lower()).unwrap_or(0);
                collected.reserve((size + rest).min(limit));
                collected.extend_from_slice(&std::mem::take(&mut first));
            }
            collected.extend_from_slice(&data);
        }
    }
    if size > limit {
        return Err(too_large());
    }
    encoding.decode(if collected.is_empty() { first } else { collected.freeze() }, limit)
}
