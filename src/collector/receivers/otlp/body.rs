//! Request bodies, read up to a limit.

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http_body_util::BodyExt;

use crate::collector::encoding::Unreadable;

/// How much of a body that is refused is read and thrown away, so that a client that sends before it reads gets its
/// answer.
const DISCARDED: usize = 256 * 1024 * 1024;

/// The whole body as it came, of `limit` bytes at most, in memory of its own size: payloads wait in it for others, and what
/// was read of a connection is a part of its buffer.
pub(super) async fn read(mut body: Body, limit: usize) -> Result<Bytes, Unreadable> {
    let (mut collected, mut size) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Unreadable::Broken(format!("the body ends early: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        size += data.len();
        if size > limit {
            // Stops collecting; the memory is free again while the rest passes by.
            collected = Vec::new();
            if size > limit.saturating_add(DISCARDED) {
                break;
            }
        } else {
            if collected.is_empty() {
                let rest = usize::try_from(body.size_hint().lower()).unwrap_or(0);
                collected.reserve_exact(size.saturating_add(rest).min(limit));
            }
            collected.extend_from_slice(&data);
        }
    }
    if size > limit {
        return Err(Unreadable::TooLarge);
    }
    collected.shrink_to_fit();
    Ok(collected.into())
}
