//! One signal's lane: queue, batches, sender, and the storage for what cannot be sent.
//!
//! A payload in the queue is a task that waits for its turn, so the queue needs no thread and costs nothing while it is
//! empty. Turns are given in order, but as many are under way as there are consumers, so requests may overtake.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::{BoxFuture, join_all};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::backoff::Retry;
use super::batcher::{Batcher, Load};
use super::queue::Queue;
use super::room::Room;
use super::sender::{Sender, Stop, Transport, given_up};
use crate::collector::component::{Built, Consumer, Context, Refusal, Running, until};
use crate::collector::counters::Tally;
use crate::collector::storage::{Spool, Storages};
use crate::diag::Problem;
use crate::otlp::{Payload, Signal};

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
            let sender = Sender { signal, transport, retry, context: context.clone(), stop: stop.clone() };
            let storage = queue.and_then(|queue| queue.storage.as_deref());
            let spool = match storage {
                Some(id) => Some(context.shared.get::<Storages>().open(id, context, signal)?),
                None => None,
            };
            let lane = Arc::new(Lane::new(sender, queue.cloned(), spool));
            lane.send_stored();
            lanes.push(lane);
        }
        let entrance = Entrance { lanes: lanes.clone() };
        Ok(Built { consumer: Arc::new(entrance), running: Box::new(Self { lanes, stop }) })
    }
}

impl Running for Lanes {
    fn shutdown(self: Box<Self>, deadline: Instant) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.stop.last_try.cancel();
            for lane in &self.lanes {
                lane.tasks.close();
            }
            let ended = || join_all(self.lanes.iter().map(|lane| lane.tasks.wait()));
            if until(deadline, ended()).await.is_none() {
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
    sender: Sender,
    queue: Option<QueueState>,
    spool: Option<Arc<Spool>>,
    /// Whether what is stored is being sent.
    sending_stored: AtomicBool,
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
        Self { sender, queue, spool, sending_stored: AtomicBool::new(false), tasks: TaskTracker::new() }
    }

    async fn take(self: Arc<Self>, payload: Payload) -> Result<(), Refusal> {
        if payload.item_count() == 0 && payload.resources.is_empty() {
            return Ok(());
        }
        let Some(queue) = &self.queue else { return self.sender.send(payload).await };
        let ticket = match queue.room.enter(&payload, queue.block).await {
            Ok(ticket) => ticket,
            Err(refusal) if self.spool.is_some() => {
                self.store(payload, &refusal).await;
                return Ok(());
            }
            Err(refusal) => return Err(refusal),
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
            Some(result) => result.await.unwrap_or(Ok(())),
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
        let turn = tokio::select! {
            turn = queue.turns.acquire() => turn.ok(),
            () = self.sender.stop.abandon.cancelled() => None,
        };
        let kept = self.spool.is_some().then(|| payload.clone());
        let items = payload.item_count();
        let owed = self.sender.context.owe(self.sender.signal, items);
        let result = if turn.is_some() { self.sender.send(payload).await } else { Err(given_up()) };
        owed.settled();
        drop(turn);
        let Err(refusal) = result else {
            self.send_stored();
            return;
        };
        if let Some(payload) = kept.filter(|_| refusal.retryable) {
            self.store(payload, &refusal).await;
        } else if tickets.iter().filter(|ticket| ticket.refuse(&refusal)).count() == 0 {
            self.sender.context.count_dropped(self.sender.signal, items, &refusal);
        }
    }

    /// Keeps what cannot be sent; what cannot be kept either is dropped.
    async fn store(&self, payload: Payload, why: &Refusal) {
        let Some(spool) = &self.spool else { return };
        let (context, signal, items) = (&self.sender.context, self.sender.signal, payload.item_count());
        match spool.put(payload).await {
            Ok(()) => {
                context.count(signal, Tally::Stored, items);
                let word = crate::collector::component::items_word(signal);
                context.failed(&format!("stored {items} {word} ({}): {}", why.reason, why.message));
            }
            Err(error) => {
                let message = format!("{}; and it cannot be stored: {error}", why.message);
                context.count_dropped(signal, items, &Refusal { message, ..why.clone() });
            }
        }
    }

    /// Begins to send what is stored, unless that is under way.
    fn send_stored(self: &Arc<Self>) {
        let Some(spool) = self.spool.clone().filter(|spool| !spool.is_empty()) else { return };
        if self.sending_stored.swap(true, Ordering::SeqCst) {
            return;
        }
        let lane = self.clone();
        self.tasks.spawn(async move {
            let mut outcome = Ok(());
            while outcome.is_ok() && !lane.sender.stop.last_try.is_cancelled() {
                let Some(entry) = spool.oldest() else { break };
                outcome = lane.send_entry(&spool, &entry).await;
            }
            lane.sending_stored.store(false, Ordering::SeqCst);
            spool.settle(outcome.err().map(|refusal| refusal.message));
        });
    }

    /// Sends one stored request; an error if it stays where it is.
    async fn send_entry(&self, spool: &Spool, entry: &std::path::Path) -> Result<(), Refusal> {
        let (context, signal) = (&self.sender.context, self.sender.signal);
        let payload = match spool.read(entry, signal).await {
            Ok(payload) => payload,
            Err(error) => {
                context.failed(&format!("cannot read {}: {error}; it stays there", entry.display()));
                spool.skip(entry);
                return Ok(());
            }
        };
        let items = payload.item_count();
        match self.sender.send(payload).await {
            Ok(()) => {}
            Err(refusal) if refusal.retryable => return Err(refusal),
            Err(refusal) => context.count_dropped(signal, items, &refusal),
        }
        context.counters.take_back(&context.name, signal, &Tally::Stored, items);
        spool.remove(entry);
        Ok(())
    }
}
