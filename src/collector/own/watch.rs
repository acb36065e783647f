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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::own::instruments::Detail;
    use crate::collector::testing::{Keeper, spans};

    /// Looks at the counts while it has the data, then hands it on or does not.
    struct Between {
        flow: Arc<Flow>,
        next: Option<Next>,
    }

    impl Flow {
        fn kept_back(&self, kind: &str) -> u64 {
            let mut families = Families::new(Detail::Normal);
            self.read(&mut families, kind, kind, Signal::Traces);
            self.kept.load(Ordering::Relaxed)
        }
    }

    impl Consumer for Between {
        fn consume(&self, payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
            let before = self.flow.kept.load(Ordering::Relaxed);
            assert_eq!(self.flow.kept_back("filter"), before);
            match &self.next {
                Some(next) => Box::pin(next.consume(payload)),
                None => Box::pin(std::future::ready(Ok(()))),
            }
        }
    }

    /// What is under way is not kept back, and a counter never falls.
    #[tokio::test]
    async fn what_is_under_way_does_not_count_as_filtered() {
        let payload = || Payload::decode(Signal::Traces, spans(5).encode()).expect("valid");
        let (flow, keeper) = (Arc::new(Flow::default()), Keeper::default());
        let next = Next::new(vec![Arc::new(keeper.clone())]);
        let behind = Next::to(Behind { flow: flow.clone(), next });
        let chain = |next| InFront { flow: flow.clone(), processor: Arc::new(Between { flow: flow.clone(), next }) };
        let (passing, dropping) = (chain(Some(behind)), chain(None));
        for round in 1..=3 {
            passing.consume(payload()).await.expect("takes");
            dropping.consume(payload()).await.expect("takes");
            assert_eq!(flow.kept_back("filter"), round * 10 - 5);
            // Nobody waits for the end of this one.
            drop(dropping.consume(payload()));
            assert_eq!(flow.kept_back("filter"), round * 10);
        }
        assert_eq!(keeper.counts(), [5, 5, 5]);
    }
}
