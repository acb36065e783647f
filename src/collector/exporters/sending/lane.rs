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
use super::room::{Room, Ticket};
use super::sender::{Sender, Stop, Transport, given_up};
use super::store::{Begin, Store};
use crate::collector::component::{Built, Consumer, Context, Refusal, Running};
use crate::collector::deadline::Deadline;
use crate::collector::owed::lost;
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
            Some(result) => {
                result.await.unwrap_or_else(|_| Err(lost())).inspect_err(|_| self.sender.meter.not_queued.add(items))
            }
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
            tickets.into_iter().for_each(Ticket::settle);
            if let Some((store, _)) = kept {
                store.send(Begin::AtOnce);
            }
            return;
        };
        if let Some((store, payload)) = kept.filter(|_| refusal.is_worth_keeping()) {
            if !store.keep(payload, &refusal, owed).await {
                self.sender.meter.failed.add(items);
            }
            tickets.into_iter().for_each(Ticket::settle);
            return;
        }
        owed.settled();
        self.sender.meter.failed.add(items);
        if tickets.into_iter().map(|ticket| ticket.refuse(&refusal)).filter(|told| *told).count() == 0 {
            self.sender.context.count_dropped(self.sender.signal, items, &refusal);
        }
    }
}

#[cfg(test)]
#[path = "lane_tests.rs"]
mod tests;
