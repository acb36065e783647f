//! The `batch` processor: many small payloads become few large ones.
//!
//! One task gathers. It sends when there are enough items, and at the ticks of a clock that is set back by each send for
//! size; the clock is only looked at while something waits, so an idle batch costs nothing. Resources are not merged:
//! their entries stand one after the other. What the next part refuses is lost here and counted.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::meter::BatchMeter;
use crate::collector::component::{
    Built, Consumer, Context, EVERY_SIGNAL, Factory, Next, Processor, Refusal, Running, Signals,
};
use crate::collector::config::section::Section;
use crate::collector::deadline::Deadline;
use crate::collector::owed::Owed;
use crate::collector::tasks::guarded;
use crate::diag::Problem;
use crate::otlp::{Payload, Signal};

/// The kind.
pub const FACTORY: Factory<dyn Processor> =
    Factory { names: &["batch"], signals: Signals::Each(EVERY_SIGNAL), configure: read };

/// Payloads that may wait for the task before their source has to.
const CHANNEL: usize = 1;

/// A batch of so many bytes is dealt with before the next one is gathered: two at once take twice the memory.
const LARGE: usize = 1 << 20;

/// For so long at most: a file system that takes seconds is no reason to take nothing.
const LONGEST_WAIT: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug)]
struct Settings {
    /// Items from which a batch is sent; zero: each payload at once.
    size: usize,
    /// Items at most in one batch; zero: any number.
    most: usize,
    /// The clock; zero: each payload at once.
    timeout: Duration,
}

fn read(section: &mut Section<'_>) -> Option<Box<dyn Processor>> {
    if section.texts("metadata_keys").is_some_and(|keys| !keys.is_empty()) {
        let problem = Problem::new("`metadata_keys` is not supported by this collector");
        section.problem("metadata_keys", problem.hint("it keeps no metadata of its clients"));
    }
    section.integer("metadata_cardinality_limit", 0);
    let count = |n: i64| usize::try_from(n).unwrap_or(usize::MAX);
    let size = section.integer("send_batch_size", 0).map_or(8192, count);
    let most = section.integer("send_batch_max_size", 0).map_or(0, count);
    let timeout = section.duration("timeout").unwrap_or(Duration::from_millis(200));
    if most > 0 && most < size {
        let message = format!("`send_batch_max_size` ({most}) is less than `send_batch_size` ({size})");
        section.problem("send_batch_max_size", Problem::new(message));
        return None;
    }
    Some(Box::new(Settings { size, most, timeout }))
}

impl Processor for Settings {
    fn build(&self, context: Context, signal: Signal, next: Next) -> Result<Built, Problem> {
        let (sender, payloads) = mpsc::channel(CHANNEL);
        let (stop, stopping) = watch::channel(None);
        let owed = Arc::new(context.owe(signal, 0));
        let gatherer = Gatherer {
            settings: *self,
            meter: BatchMeter::register(&context),
            context,
            owed: owed.clone(),
            next,
            payloads,
            stopping,
            waiting: Payload::new(signal),
            items: 0,
            clock: Instant::now(),
        };
        let task = tokio::spawn(gatherer.run());
        Ok(Built { consumer: Arc::new(Entrance { sender, owed }), running: Box::new(Task { stop, task }) })
    }
}

struct Entrance {
    sender: mpsc::Sender<Payload>,
    /// What waits.
    owed: Arc<Owed>,
}

impl Consumer for Entrance {
    fn consume(&self, payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move {
            let stopped = |_| Refusal::retryable("shutdown", "the collector is stopping");
            let place = self.sender.reserve().await.map_err(stopped)?;
            self.owed.add(payload.item_count());
            place.send(payload);
            Ok(())
        })
    }
}

struct Task {
    stop: watch::Sender<Option<Deadline>>,
    task: JoinHandle<()>,
}

impl Running for Task {
    fn shutdown(self: Box<Self>, deadline: Deadline) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.stop.send_replace(Some(deadline));
            // The task fails only if it panicked; there is nothing left to stop then.
            let _ = self.task.await;
        })
    }
}

/// Why a batch is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trigger {
    Size,
    Time,
}

struct Gatherer {
    settings: Settings,
    meter: Arc<BatchMeter>,
    context: Context,
    next: Next,
    payloads: mpsc::Receiver<Payload>,
    stopping: watch::Receiver<Option<Deadline>>,
    waiting: Payload,
    items: usize,
    owed: Arc<Owed>,
    /// When the clock was last set back.
    clock: Instant,
}

impl Gatherer {
    async fn run(mut self) {
        let mut stopping = self.stopping.clone();
        loop {
            let tick = self.next_tick();
            tokio::select! {
                payload = self.payloads.recv() => match payload {
                    Some(payload) => self.take(payload).await,
                    None => break,
                },
                () = tokio::time::sleep_until(tick), if self.items > 0 => self.send_what_waits(Trigger::Time).await,
                () = async { drop(stopping.wait_for(Option::is_some).await) } => {
                    self.payloads.close();
                    while let Some(payload) = self.payloads.recv().await {
                        self.take(payload).await;
                    }
                    break;
                }
            }
        }
        if self.items > 0 {
            self.send_what_waits(Trigger::Time).await;
        }
    }

    fn next_tick(&self) -> Instant {
        let period = self.settings.timeout.max(Duration::from_millis(1)).as_nanos();
        let ticks = self.clock.elapsed().as_nanos() / period + 1;
        let ahead = u64::try_from(ticks.saturating_mul(period)).unwrap_or(u64::MAX);
        self.clock.checked_add(Duration::from_nanos(ahead)).unwrap_or(self.clock)
    }

    async fn take(&mut self, payload: Payload) {
        let items = payload.item_count();
        if items == 0 {
            return;
        }
        self.items += items;
        self.waiting.resources.extend(payload.resources);
        let Settings { size, most, timeout } = self.settings;
        let least = if timeout.is_zero() { 0 } else { size };
        if self.items < least {
            return;
        }
        if most == 0 || self.items <= most {
            self.send_what_waits(Trigger::Size).await;
        } else {
            for batch in self.take_what_waits().into_chunks(most) {
                // Only the last one is smaller than the largest batch.
                if batch.item_count() < least {
                    self.waiting = batch;
                } else {
                    self.send(batch, Trigger::Size).await;
                }
            }
        }
        self.clock = Instant::now();
    }

    fn take_what_waits(&mut self) -> Payload {
        let empty = Payload::new(self.waiting.signal);
        std::mem::replace(&mut self.waiting, empty)
    }

    async fn send_what_waits(&mut self, trigger: Trigger) {
        let batch = self.take_what_waits();
        self.send(batch, trigger).await;
    }

    async fn send(&mut self, batch: Payload, trigger: Trigger) {
        let (signal, items) = (batch.signal, batch.item_count());
        self.items -= items.min(self.items);
        let bytes = self.meter.bytes_of(&batch);
        let large = trigger == Trigger::Size && batch.size() >= LARGE;
        let mut stopping = self.stopping.clone();
        let late = async move {
            let deadline = stopping.wait_for(Option::is_some).await.ok().and_then(|deadline| deadline.clone());
            match deadline {
                Some(deadline) => deadline.passed().await,
                None => std::future::pending().await,
            }
        };
        let result = tokio::select! {
            biased;
            result = guarded(self.next.consume(batch)) => result,
            () = late => Err(Refusal::retryable("shutdown", "the collector stopped before it could be handed on")),
        };
        self.owed.pay(items);
        match result {
            Ok(()) => self.meter.count(items, bytes, trigger == Trigger::Size),
            Err(refusal) => self.context.count_dropped(signal, items, &refusal),
        }
        if large {
            let mut stopping = self.stopping.clone();
            tokio::select! {
                _ = tokio::time::timeout(LONGEST_WAIT, self.next.ready()) => {}
                _ = stopping.wait_for(Option::is_some) => {}
            }
        }
    }
}

impl Drop for Gatherer {
    /// After a panic something is left; at an ordinary end nothing is.
    fn drop(&mut self) {
        self.payloads.close();
        while let Ok(payload) = self.payloads.try_recv() {
            self.items += payload.item_count();
        }
        self.owed.pay(self.items);
        drop(self.context.owe(self.waiting.signal, self.items));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::collector::counters::Tally;
    use crate::collector::testing::{Keeper, context, eventually, problems_of, spans};

    fn start(size: usize, most: usize, timeout: Duration, keeper: &Keeper) -> (Built, Context) {
        let context = context("processors/batch");
        let settings = Settings { size, most, timeout };
        let built = settings.build(context.clone(), Signal::Traces, Next::to(keeper.clone())).expect("builds");
        (built, context)
    }

    async fn stop(built: Built) {
        built.running.shutdown(Deadline::fixed(Instant::now() + Duration::from_secs(5))).await;
    }

    const LONG: Duration = Duration::from_mins(1);

    #[tokio::test]
    async fn whole_payloads_are_gathered_until_there_are_enough_and_the_rest_comes_at_the_stop() {
        let keeper = Keeper::default();
        let (built, _) = start(5, 0, LONG, &keeper);
        for count in [3, 4, 0, 12, 1] {
            built.consumer.consume(spans(count)).await.expect("takes");
        }
        stop(built).await;
        assert_eq!(keeper.counts(), [7, 12, 1]);
    }

    #[tokio::test]
    async fn large_ones_are_split() {
        let keeper = Keeper::default();
        let (built, _) = start(5, 5, LONG, &keeper);
        built.consumer.consume(spans(12)).await.expect("takes");
        built.consumer.consume(spans(2)).await.expect("takes");
        stop(built).await;
        assert_eq!(keeper.counts(), [5, 5, 4]);
    }

    #[tokio::test]
    async fn the_clock_sends_what_waits_and_zero_means_at_once() {
        let keeper = Keeper::default();
        let (built, _) = start(1000, 0, Duration::from_millis(20), &keeper);
        built.consumer.consume(spans(3)).await.expect("takes");
        eventually(|| keeper.counts() == [3]).await;
        stop(built).await;

        let keeper = Keeper::default();
        let (built, _) = start(2, 2, Duration::ZERO, &keeper);
        built.consumer.consume(spans(3)).await.expect("takes");
        eventually(|| keeper.counts() == [2, 1]).await;
        stop(built).await;
    }

    /// Takes all, and says that it has dealt with nothing as often as it is asked.
    #[derive(Clone, Default)]
    struct Slow {
        keeper: Keeper,
        asked: Arc<AtomicUsize>,
    }

    impl Consumer for Slow {
        fn consume(&self, payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
            self.keeper.consume(payload)
        }

        fn ready(&self) -> BoxFuture<'_, ()> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test]
    async fn a_large_batch_is_waited_for_but_not_for_long() {
        let slow = Slow::default();
        let settings = Settings { size: 2, most: 0, timeout: LONG };
        let built =
            settings.build(context("processors/batch"), Signal::Traces, Next::to(slow.clone())).expect("builds");
        let large = 50_000;
        assert!(spans(large).size() >= LARGE);
        for (count, asked) in [(large, 1), (2, 1), (large, 2), (2, 2)] {
            built.consumer.consume(spans(count)).await.expect("takes");
            eventually(|| slow.keeper.counts().last() == Some(&count)).await;
            eventually(|| slow.asked.load(Ordering::Relaxed) == asked).await;
        }
        // What waits at the stop is not large enough to be sent for its size.
        built.consumer.consume(spans(1)).await.expect("takes");
        stop(built).await;
        assert_eq!(slow.keeper.counts(), [large, 2, large, 2, 1]);
    }

    #[tokio::test]
    async fn what_is_refused_is_counted() {
        let keeper = Keeper { refuse: Some(Refusal::retryable("queue_full", "full")), ..Keeper::default() };
        let (built, context) = start(1, 0, LONG, &keeper);
        built.consumer.consume(spans(4)).await.expect("takes");
        stop(built).await;
        assert_eq!(context.counters.total(Signal::Traces, &Tally::Dropped("queue_full".into())), 4);
    }

    #[test]
    fn wrong_sizes_are_found() {
        let text = problems_of("send_batch_size: 10\nsend_batch_max_size: 5\ntimeout: -1s\n", |section| {
            drop(read(section));
        });
        assert!(text.contains("less than `send_batch_size`") && text.contains("negative"), "{text}");
    }

    struct Broken;

    impl Consumer for Broken {
        fn consume(&self, _: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
            Box::pin(async { panic!("a defect") })
        }
    }

    #[tokio::test]
    async fn what_a_panic_behind_it_costs_is_counted() {
        let context = context("processors/batch");
        let settings = Settings { size: 3, most: 3, timeout: LONG };
        let built = settings.build(context.clone(), Signal::Traces, Next::to(Broken)).expect("builds");
        built.consumer.consume(spans(5)).await.expect("takes");
        eventually(|| context.counters.total(Signal::Traces, &Tally::Dropped("panic".into())) == 3).await;
        // What comes after it is taken as before.
        built.consumer.consume(spans(4)).await.expect("takes");
        stop(built).await;
        assert_eq!(context.counters.total(Signal::Traces, &Tally::Dropped("panic".into())), 9);
    }
}
