//! Counts what goes into a processor and what comes out of it, in front of it and behind it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::BoxFuture;

use super::family::{Families, Number, labels};
use super::instruments::{FILTERED, INCOMING, LIMITER_ACCEPTED, LIMITER_REFUSED, OUTGOING, of};
use super::meters::{Count, Meters};
use crate::collector::component::{Consumer, Context, Next, Refusal};
use crate::otlp::{Payload, Signal};

/// The counts of one processor in one pipeline.
#[derive(Default)]
struct Flow {
    incoming: Count,
    outgoing: Count,
    /// Of what went in: what a condition that failed kept back, all of it.
    failed: Count,
    /// Of what went in: what the processor is done with.
    done: Count,
    /// What was kept back, as it was said last.
    kept: AtomicU64,
}

/// Watches one processor, if somebody wants to know. A batch counts by itself.
pub struct Watch {
    flow: Option<Arc<Flow>>,
}

impl Watch {
    /// Of the processor `id` (its type is in front of the slash).
    #[must_use]
    pub fn new(context: &Context, id: &str, signal: Signal) -> Self {
        let kind = id.split('/').next().unwrap_or_default().to_owned();
        let meters = context.shared.get::<Meters>();
        if !meters.wanted() || kind == "batch" {
            return Self { flow: None };
        }
        let flow = Arc::new(Flow::default());
        let (counted, id) = (flow.clone(), id.to_owned());
        meters.add(move |families| counted.read(families, &kind, &id, signal));
        Self { flow: Some(flow) }
    }

    /// What the processor hands on to.
    #[must_use]
    pub fn behind(&self, next: Next) -> Next {
        match &self.flow {
            Some(flow) => Next::to(Behind { flow: flow.clone(), next }),
            None => next,
        }
    }

    /// What hands in to the processor.
    #[must_use]
    pub fn in_front(self, processor: Arc<dyn Consumer>) -> Arc<dyn Consumer> {
        match self.flow {
            Some(flow) => Arc::new(InFront { flow, processor }),
            None => processor,
        }
    }
}

impl Flow {
    fn read(&self, families: &mut Families, kind: &str, id: &str, signal: Signal) {
        // In this order: what is done has gone out before, so that never too much counts as kept back.
        let (incoming, done, failed) = (self.incoming.get(), self.done.get(), self.failed.get());
        let outgoing = self.outgoing.get();
        if incoming == 0 {
            return;
        }
        let mut add = |instrument, labels, count| families.add(instrument, labels, Number::Integer(count));
        let both = || labels([("processor", id), ("otel.signal", signal.name())]);
        add(&INCOMING, both(), incoming);
        add(&OUTGOING, both(), outgoing);
        let kept = done.saturating_sub(outgoing + failed);
        // A counter: what went out for a request that is not done yet makes it no smaller.
        let kept = self.kept.fetch_max(kept, Ordering::Relaxed).max(kept);
        match kind {
            "filter" if kept > 0 => add(of(&FILTERED, signal), labels([("filter", id)]), kept),
            "memory_limiter" => {
                for (instruments, count) in [(&LIMITER_ACCEPTED, outgoing), (&LIMITER_REFUSED, kept)] {
                    if count > 0 {
                        add(of(instruments, signal), labels([("processor", id)]), count);
                    }
                }
            }
            _ => {}
        }
    }
}

struct InFront {
    flow: Arc<Flow>,
    processor: Arc<dyn Consumer>,
}

impl Consumer for InFront {
    fn consume(&self, payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        let items = payload.item_count();
        self.flow.incoming.add(items);
        let done = Done { flow: &self.flow, items };
        let taking = self.processor.consume(payload);
        Box::pin(async move {
            let result = taking.await;
            if result.as_ref().is_err_and(|refusal| refusal.reason == "condition") {
                self.flow.failed.add(items);
            }
            drop(done);
            result
        })
    }
}

/// Counts items as done, also when nobody waits for the end.
struct Done<'a> {
    flow: &'a Flow,
    items: usize,
}

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.flow.done.add(self.items);
    }
}

struct Behind {
    flow: Arc<Flow>,
    next: Next,
}

impl Consumer for Behind {
    fn consume(&self, payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        self.flow.outgoing.add(payload.item_count());
        Box::pin(self.next.consume(payload))
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.next.ready())
    }
}
