//! The entrance of the pipelines: where several sources hand in, and where what comes in is counted.

use futures_util::future::BoxFuture;

use super::component::{Consumer, Context, Next, Refusal};
use super::counters::Tally;
use super::tasks::guarded;
use crate::otlp::{Payload, Signal};

/// The first part of a pipeline, where several sources hand in.
pub(super) struct Head {
    pub(super) next: Next,
}

impl Consumer for Head {
    fn consume(&self, payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(self.next.consume(payload))
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.next.ready())
    }
}

/// Counts what comes into the pipelines, once for all that take it.
pub(super) struct Counted {
    pub(super) next: Next,
    pub(super) context: Context,
}

impl Consumer for Counted {
    fn consume(&self, payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move {
            let mut entering =
                Entering { context: &self.context, signal: payload.signal, items: payload.item_count(), taken: false };
            let result = guarded(self.next.consume(payload)).await;
            entering.taken = result.is_ok();
            result
        })
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.next.ready())
    }
}

/// Items on their way into the pipelines. Whoever hands them in may be gone before they are in: they are refused then.
struct Entering<'a> {
    context: &'a Context,
    signal: Signal,
    items: usize,
    taken: bool,
}

impl Drop for Entering<'_> {
    fn drop(&mut self) {
        let tally = if self.taken { Tally::Received } else { Tally::Refused };
        self.context.count(self.signal, tally, self.items);
    }
}
