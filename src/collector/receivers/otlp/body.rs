//! Request bodies, read up to a limit.

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Frame;

use super::under_way::UnderWay;
use crate::collector::net::encoding::Unreadable;

/// How much of a body that is refused is read and thrown away, so that a client that sends before it reads gets its
/// answer.
const DISCARDED: usize = 256 * 1024 * 1024;

/// The whole body as it came, of `limit` bytes at most, in memory of its own size: payloads wait in it for others, and what
/// was read of a connection is a part of its buffer. `None` if the receiver stops and the rest does not come.
pub(super) async fn read(mut body: Body, limit: usize, under_way: &UnderWay) -> Option<Result<Bytes, Unreadable>> {
    let (mut collected, mut size) = (Vec::new(), 0);
    while let Some(frame) = under_way.next(body.frame()).await? {
        let data = match frame.map(Frame::into_data) {
            Ok(Ok(data)) => data,
            // Trailers.
            Ok(Err(_)) => continue,
            Err(error) => return Some(Err(Unreadable::Broken(format!("the body ends early: {error}")))),
        };
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
        return Some(Err(Unreadable::TooLarge));
    }
    collected.shrink_to_fit();
    Some(Ok(collected.into()))
}

/// Lets a body pass by that nobody wants.
pub(super) async fn discard(body: Body, under_way: &UnderWay) {
    drop(read(body, 0, under_way).await);
}
