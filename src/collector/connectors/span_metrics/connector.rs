//! The running connector: takes traces, hands metrics on at its own times.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::aggregate::Aggregator;
use super::config::Settings;
use crate::collector::component::{Built, Connector, Consumer, Context, Next, Refusal, Running};
use crate::collector::deadline::Deadline;
use crate::collector::own::{OwnResource, random_id};
use crate::diag::Problem;
use crate::otlp::{Payload, Signal};

/// A checked connector.
pub(super) struct SpanMetrics {
    pub settings: Settings,
}

impl Connector for SpanMetrics {
    fn build(&self, context: Context, _from: Signal, _to: Signal, next: Next) -> Result<Built, Problem> {
        let own = context.shared.get::<OwnResource>();
        let instance = own.get("collector.instance.id").unwrap_or_else(random_id);
        let aggregator = Aggregator::new(self.settings.clone(), instance);
        let counting = Counting { aggregator: Arc::new(Mutex::new(aggregator)), context, next };
        let stop = CancellationToken::new();
        let task = tokio::spawn(flush_loop(counting.clone(), self.settings.flush_interval, stop.clone()));
        let running = Box::new(Flushing { counting: counting.clone(), stop, task });
        Ok(Built { consumer: Arc::new(counting), running })
    }
}

#[derive(Clone)]
struct Counting {
    aggregator: Arc<Mutex<Aggregator>>,
    context: Context,
    next: Next,
}

impl Counting {
    fn with<T>(&self, work: impl FnOnce(&mut Aggregator) -> T) -> T {
        work(&mut self.aggregator.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn flush(&self) {
        // An empty state is handed on as well, as the reference does.
        let payload = self.with(|aggregator| aggregator.flush(now()));
        let points = payload.item_count();
        let owed = self.context.owe(Signal::Metrics, points);
        let result = self.next.consume(payload).await;
        owed.settled();
        if let Err(refusal) = result {
            self.context.count_dropped(Signal::Metrics, points, &refusal);
        }
    }
}

impl Consumer for Counting {
    fn consume(&self, payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        self.with(|aggregator| aggregator.take(&payload, now()));
        Box::pin(std::future::ready(Ok(())))
    }
}

async fn flush_loop(counting: Counting, every: std::time::Duration, stop: CancellationToken) {
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            _ = ticks.tick() => counting.flush().await,
        }
    }
}

struct Flushing {
    counting: Counting,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running for Flushing {
    fn shutdown(self: Box<Self>, deadline: Deadline) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let Self { counting, stop, mut task } = *self;
            stop.cancel();
            if deadline.until(&mut task).await.is_none() {
                task.abort();
            }
            if counting.with(|aggregator| aggregator.changed()) && deadline.until(counting.flush()).await.is_none() {
                counting.context.failed("the last metrics could not be handed on in time");
            }
        })
    }
}

/// Nanoseconds since the epoch.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
