//! One signal's lane: queue, batches, sender, and the storage for what cannot be sent.
//!
//! A payload in the queue is a task that waits for its turn, so the queue needs no thread and costs nothing while it is
//! empty. Turns are given in order, but as many are under way as there are consumers, so requests may overtake.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::backoff::Retry;
use super::batcher::{Batcher, Load};
use super::meter::register;
use super::queue::Queue;
use super::room::Room;
use super::sender::{Sender, Stop, Transport, given_up};
use super::store::{Begin, Store};
use crate::collector::component::{Built, Consumer, Context, Refusal, Running};
use crate::collector::deadline::Deadline;
use crate::collector::storage::{Spool, Storages};
use crate::collector::tasks::until;
use crate::diag::Problem;
use crate::otlp::{Payload, Signal};

/// The most of a stop's time that is kept for storing what was not sent.
const LONGEST_STORING: Duration = Duration::from_secs(2);

/// What one signal needs.
pub(in crate::collector::exporters) struct Way {
    pub signal: Signal,
    pub transport: Arc<dyn Transport>,
}

/// The lanes of one exporter.
pub(in crate::collector::exporters) struct Lanes {
    lanes: Vec<Arc<Lane>>,
    stop: Stop,
}

impl Lanes {
    /// Opens the lanes; what an earlier collector left in the storage begins to be sent.
    pub fn open(
        ways: Vec<Way>,
        queue: Option<&Queue>,
        retry: Option<Retry>,
        context: &Context,
    ) -> Result<Built, Problem> {
        let stop = Stop::default();
        let mut lanes = Vec::new();
        for Way { signal, transport } in ways {
            let sender = Sender {
                signal,
                transport,
                retry,
                context: context.clone(),
                stop: stop.clone(),
                meter: Arc::default(),
            };
            let storage = queue.and_then(|queue| queue.storage.as_deref());
            let spool = match storage {
                Some(id) => Some(context.shared.get::<Storages>().open(id, context, signal)?),
                None => None,
            };
            if let Some(spool) = &spool {
                context.counters.resume(&context.name, signal, spool.items());
            }
            let lane = Arc::new(Lane::new(sender, queue.cloned(), spool));
            register(&lane.sender, lane.queue.as_ref().map(|queue| queue.room.clone()));
            if let Some(store) = &lane.store {
                store.send(Begin::AtOnce);
            }
            lanes.push(lane);
        }
        let entrance = Entrance { lanes: lanes.clone() };
        Ok(Built { consumer: Arc::new(entrance), running: Box::new(Self { lanes, stop }) })
    }
}

impl Running for Lanes {
    fn shutdown(self: Box<Self>, deadline: Deadline) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.stop.last_try.cancel();
            for lane in &self.lanes {
                lane.tasks.close();
            }
            let ended = || join_all(self.lanes.iter().map(|lane| lane.tasks.wait()));
            // What is to be stored needs some of the time.
            let stores = self.lanes.iter().any(|lane| lane.store.is_some());
            let left = deadline.at().saturating_duration_since(Instant::now());
            let early = if stores { (left / 4).min(LONGEST_STORING) } else { Duration::ZERO };
            if deadline.until(until(deadline.at() - early, ended())).await.flatten().is_none() {
                self.stop.abandon.cancel();
                ended().await;
            }
        })
    }
}

struct Entrance {
    lanes: Vec<Arc<Lane>>,
}

impl Consumer for Entrance {
    fn consume(&self, payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move {
            match self.lanes.iter().find(|lane| lane.sender.signal == payload.signal) {
                Some(lane) => lane.clone().take(payload).await,
                None => Err(Refusal::permanent("no_endpoint", "no endpoint for this signal")),
            }
        })
    }
}

struct Lane {
    sender: Arc<Sender>,
    queue: Option<QueueState>,
    store: Option<Arc<Store>>,
    tasks: TaskTracker,
}

struct QueueState {
    room: Arc<Room>,
    /// Turns to be under way.
    turns: Semaphore,
    block: bool,
    wait_for_result: bool,
    batcher: Option<Batcher>,
}

impl Lane {
    fn new(sender: Sender, queue: Option<Queue>, spool: Option<Arc<Spool>>) -> Self {
        let queue = queue.map(|queue| QueueState {
            room: Room::new(queue.sizer, queue.size),
            turns: Semaphore::new(queue.consumers),
            block: queue.block,
            wait_for_result: queue.wait_for_result,
            batcher: queue.batch.map(Batcher::new),
        });
        let tasks = TaskTracker::new();
        let sender = Arc::new(sender);
        let store = spool.map(|spool| Store::new(sender.clone(), spool, tasks.clone()));
        Self { sender, queue, store, tasks }
    }

    async fn take(self: Arc<Self>, payload: Payload) -> Result<(), Refusal> {
        if payload.item_count() == 0 && payload.resources.is_empty() {
            return Ok(());
        }
        let items = payload.item_count();
        let Some(queue) = &self.queue else {
            return self.sender.send(payload).await.inspect_err(|_| self.sender.meter.failed.add(items));
        };
        let ticket = match queue.room.enter(&payload, queue.block).await {
            Ok(ticket) => ticket,
            Err(refusal) => {
                if let Some(store) = &self.store {
                    store.keep_whatever_comes(payload, refusal).await;
                    return Ok(());
                }
                self.sender.meter.not_queued.add(items);
                return Err(refusal);
            }
        };
        let result = queue.wait_for_result.then(|| ticket.wait());
        match &queue.batcher {
            None => self.clone().spawn(Load { payload, tickets: vec![ticket] }),
            Some(batcher) => {
                let added = batcher.add(payload, ticket);
                for load in added.ready {
                    self.clone().spawn(load);
                }
                if let Some(generation) = added.begun {
                    self.clone().spawn_timer(generation);
                }
            }
        }
        match result {
            // As in the reference, what its source waits for in vain was not queued.
            Some(result) => result.await.unwrap_or(Ok(())).inspect_err(|_| self.sender.meter.not_queued.add(items)),
            None => Ok(()),
        }
    }

    fn spawn(self: Arc<Self>, load: Load) {
        let lane = self.clone();
        self.tasks.spawn(async move { lane.wait_and_send(load).await });
    }

    /// Sends what waits for more when its time is up, or when a stop comes.
    fn spawn_timer(self: Arc<Self>, generation: u64) {
        let lane = self.clone();
        self.tasks.spawn(async move {
            let Some(batcher) = lane.queue.as_ref().and_then(|queue| queue.batcher.as_ref()) else { return };
            tokio::select! {
                () = tokio::time::sleep(batcher.settings.flush_timeout) => {}
                () = lane.sender.stop.last_try.cancelled() => {}
            }
            if let Some(load) = batcher.take(generation) {
                lane.clone().wait_and_send(load).await;
            }
        });
    }

    async fn wait_and_send(self: Arc<Self>, Load { payload, tickets }: Load) {
        let Some(queue) = &self.queue else { return };
        let items = payload.item_count();
        let owed = self.sender.context.owe(self.sender.signal, items);
        let turn = tokio::select! {
            turn = queue.turns.acquire() => turn.ok(),
            () = self.sender.stop.abandon.cancelled() => None,
        };
        let kept = self.store.as_ref().map(|store| (store, payload.clone()));
        let result = if turn.is_some() { self.sender.send(payload).await } else { Err(given_up()) };
        drop(turn);
        let Err(refusal) = result else {
            owed.settled();
            if let Some((store, _)) = kept {
                store.send(Begin::AtOnce);
            }
            return;
        };
        if let Some((store, payload)) = kept.filter(|_| refusal.is_worth_keeping()) {
            if !store.keep(payload, &refusal, owed).await {
                self.sender.meter.failed.add(items);
            }
            return;
        }
        owed.settled();
        self.sender.meter.failed.add(items);
        if tickets.iter().filter(|ticket| ticket.refuse(&refusal)).count() == 0 {
            self.sender.context.count_dropped(self.sender.signal, items, &refusal);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicI32, Ordering};

    use bytes::Bytes;
    use futures_util::FutureExt as _;

    use super::super::outcome::{Outcome, PartialSuccess};
    use super::*;
    use crate::collector::counters::Tally;
    use crate::collector::own::Labels;
    use crate::collector::testing::{context, eventually, spans};

    /// Takes everything, and makes the files of a folder such that they cannot be removed; without one it never answers.
    struct Endpoint {
        folder: Option<PathBuf>,
    }

    impl Transport for Endpoint {
        fn encode(&self, _payload: Payload) -> std::io::Result<Bytes> {
            Ok(Bytes::new())
        }

        fn endpoint(&self) -> Labels {
            Labels::default()
        }

        fn attempt(&self, _request: Bytes) -> BoxFuture<'_, Outcome> {
            let Some(folder) = &self.folder else { return Box::pin(std::future::pending()) };
            for entry in fs::read_dir(folder).expect("reads") {
                let path = entry.expect("an entry").path();
                if path.is_file() {
                    fs::remove_file(&path).expect("removes");
                    fs::create_dir_all(path.join("not empty")).expect("makes");
                }
            }
            let partial_success = PartialSuccess { rejected: 0, message: String::new() };
            Box::pin(std::future::ready(Outcome::Accepted(partial_success)))
        }
    }

    /// Is busy that often, then takes one request and never will take another.
    struct Busy(AtomicI32);

    impl Transport for Busy {
        fn encode(&self, _payload: Payload) -> std::io::Result<Bytes> {
            Ok(Bytes::new())
        }

        fn endpoint(&self) -> Labels {
            Labels::default()
        }

        fn attempt(&self, _request: Bytes) -> BoxFuture<'_, Outcome> {
            let left = self.0.fetch_sub(1, Ordering::SeqCst);
            Box::pin(std::future::ready(match left {
                2.. => Outcome::Later { refusal: Refusal::retryable("http_503", "busy"), pause: None },
                1 => Outcome::Accepted(PartialSuccess { rejected: 0, message: String::new() }),
                _ => Outcome::Never(Refusal::permanent("http_400", "never")),
            }))
        }
    }

    fn lane(folder: Option<PathBuf>, spool: &Arc<Spool>) -> Arc<Lane> {
        lane_to(Arc::new(Endpoint { folder }), spool)
    }

    fn lane_to(transport: Arc<dyn Transport>, spool: &Arc<Spool>) -> Arc<Lane> {
        let moment = Duration::from_millis(1);
        let sender = Sender {
            signal: Signal::Traces,
            transport,
            retry: Some(Retry { initial: moment, largest: moment, longest: moment, ..Retry::default() }),
            context: context("exporters/x"),
            stop: Stop::default(),
            meter: Arc::default(),
        };
        let queue = Queue { size: 1, ..Queue::default() };
        Arc::new(Lane::new(sender, Some(queue), Some(spool.clone())))
    }

    #[tokio::test]
    async fn what_was_sent_and_cannot_be_removed_is_sent_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = Arc::new(Spool::open(folder.path(), Arc::default()).expect("opens"));
        for _ in 0..2 {
            spool.add(spool.put(spans(3)).await.expect("stores"));
        }
        let lane = lane(Some(folder.path().to_owned()), &spool);
        lane.store.as_ref().expect("a store").send(Begin::AtOnce);
        lane.tasks.close();
        tokio::time::timeout(Duration::from_mins(1), lane.tasks.wait()).await.expect("comes to an end");
        let counters = &lane.sender.context.counters;
        assert_eq!(counters.total(Signal::Traces, &Tally::Sent), 3, "the other one could not be read any more");
        assert_eq!(spool.len(), 2);
    }

    /// What is tried again, and again from the disk, has not failed: what it comes to in the end is counted, once.
    #[tokio::test]
    async fn an_item_counts_as_what_finally_became_of_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = Arc::new(Spool::open(folder.path(), Arc::default()).expect("opens"));
        let lane = lane_to(Arc::new(Busy(AtomicI32::new(20))), &spool);
        let (counters, failed) = (lane.sender.context.counters.clone(), || lane.sender.meter.failed.get());
        let total = |tally: &Tally| counters.total(Signal::Traces, tally);
        lane.clone().take(spans(3)).await.expect("waits in the queue");
        eventually(|| total(&Tally::Sent) == 3).await;
        eventually(|| total(&Tally::Stored) == 0).await;
        assert_eq!(failed(), 0);
        lane.clone().take(spans(5)).await.expect("waits in the queue");
        eventually(|| total(&Tally::Dropped("http_400".into())) == 5).await;
        assert_eq!((failed(), total(&Tally::Sent), total(&Tally::Stored)), (5, 3, 0));
        // The same of what is on the disk when it is refused.
        spool.add(spool.put(spans(2)).await.expect("stores"));
        lane.store.as_ref().expect("a store").send(Begin::AtOnce);
        eventually(|| total(&Tally::Dropped("http_400".into())) == 7).await;
        assert_eq!(failed(), 7);
    }

    #[tokio::test]
    async fn what_a_full_queue_stores_is_counted_though_nobody_waits() {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = Arc::new(Spool::open(folder.path(), Arc::default()).expect("opens"));
        let lane = lane(None, &spool);
        lane.clone().take(spans(1)).await.expect("waits in the queue");
        assert!(lane.clone().take(spans(5)).now_or_never().is_none(), "it is being stored");
        let counters = lane.sender.context.counters.clone();
        eventually(|| counters.total(Signal::Traces, &Tally::Stored) == 5).await;
        assert_eq!(spool.len(), 1);
    }
}
