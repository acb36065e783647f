//! One signal's lane: queue, batches, sender, and the storage for what cannot be sent.
//!
//! A payload in the queue is a task that waits for its turn, so the queue needs no thread and costs nothing while it is
//! empty. Turns are given in order, but as many are under way as there are consumers, so requests may overtake.
//!
//! As long as something is stored, one task tries to send it, the oldest first: at once when the endpoint has taken
//! something, by the back-off otherwise, and once more at the stop.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use tokio::sync::{Mutex, Notify, Semaphore};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::backoff::{Backoff, Retry};
use super::batcher::{Batcher, Load};
use super::meter::register;
use super::queue::Queue;
use super::room::Room;
use super::sender::{Sender, Stop, Transport, given_up};
use crate::collector::component::{Built, Consumer, Context, Refusal, Running, items_word, until};
use crate::collector::counters::Tally;
use crate::collector::deadline::Deadline;
use crate::collector::storage::{Spool, Storages};
use crate::diag::Problem;
use crate::otlp::{Payload, Signal};

/// The most of a stop's time that is kept for storing what was not sent.
const LONGEST_STORING: Duration = Duration::from_secs(2);

/// Between two tries to send what is stored, whatever the back-off says.
const SHORTEST_REST: Duration = Duration::from_millis(50);

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
            lane.send_stored(Begin::AtOnce);
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
            let stores = self.lanes.iter().any(|lane| lane.spool.is_some());
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
    sender: Sender,
    queue: Option<QueueState>,
    spool: Option<Arc<Spool>>,
    /// Held by the one task that sends what is stored.
    sending_stored: Arc<Mutex<()>>,
    /// Ends that task's rest.
    taken: Notify,
    tasks: TaskTracker,
}

/// When sending begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begin {
    AtOnce,
    AfterRest,
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
        let (sending_stored, taken) = (Arc::default(), Notify::new());
        Self { sender, queue, spool, sending_stored, taken, tasks: TaskTracker::new() }
    }

    async fn take(self: Arc<Self>, payload: Payload) -> Result<(), Refusal> {
        if payload.item_count() == 0 && payload.resources.is_empty() {
            return Ok(());
        }
        let Some(queue) = &self.queue else { return self.sender.send(payload).await };
        let ticket = match queue.room.enter(&payload, queue.block).await {
            Ok(ticket) => ticket,
            Err(refusal) if self.spool.is_some() => {
                self.store(payload, refusal).await;
                return Ok(());
            }
            Err(refusal) => {
                self.sender.meter.not_queued.add(payload.item_count());
                return Err(refusal);
            }
        };
        let items = payload.item_count();
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
        let kept = self.spool.is_some().then(|| payload.clone());
        let result = if turn.is_some() { self.sender.send(payload).await } else { Err(given_up()) };
        drop(turn);
        let Err(refusal) = result else {
            owed.settled();
            self.send_stored(Begin::AtOnce);
            return;
        };
        if let Some(payload) = kept.filter(|_| refusal.is_worth_keeping()) {
            let stored = self.put(payload, &refusal).await;
            owed.settled();
            self.count_stored(items, &refusal, stored);
            self.send_stored(Begin::AfterRest);
            return;
        }
        owed.settled();
        if tickets.iter().filter(|ticket| ticket.refuse(&refusal)).count() == 0 {
            self.sender.context.count_dropped(self.sender.signal, items, &refusal);
        }
    }

    /// Keeps what the queue does not take, and counts it. Whoever gives up waiting does not end it.
    async fn store(self: Arc<Self>, payload: Payload, refusal: Refusal) {
        let lane = self.clone();
        let task = self.tasks.spawn(async move {
            let items = payload.item_count();
            let owed = lane.sender.context.owe(lane.sender.signal, items);
            let stored = lane.put(payload, &refusal).await;
            owed.settled();
            lane.count_stored(items, &refusal, stored);
            lane.send_stored(Begin::AfterRest);
        });
        // It fails only if it panicked, and then what is owed is counted.
        let _ = task.await;
    }

    /// Keeps what cannot be sent.
    async fn put(&self, payload: Payload, why: &Refusal) -> Result<(), Refusal> {
        let Some(spool) = &self.spool else { return Err(why.clone()) };
        spool.put(payload).await.map_err(|error| {
            let message = format!("{}; and it cannot be stored: {error}", why.message);
            Refusal { message, ..why.clone() }
        })
    }

    /// Counts what was stored; what cannot be stored either is dropped.
    fn count_stored(&self, items: usize, why: &Refusal, stored: Result<(), Refusal>) {
        let (context, signal) = (&self.sender.context, self.sender.signal);
        match stored {
            Ok(()) => {
                context.count(signal, Tally::Stored, items);
                context.failed(&format!("stored {items} {} ({}): {}", items_word(signal), why.reason, why.message));
            }
            Err(refusal) => context.count_dropped(signal, items, &refusal),
        }
    }

    /// Sees to it that what is stored is being sent, at once or after a rest.
    fn send_stored(self: &Arc<Self>, begin: Begin) {
        let Some(spool) = self.spool.clone().filter(|spool| !spool.is_empty()) else { return };
        if begin == Begin::AtOnce {
            self.taken.notify_waiters();
        } else if self.sender.stop.last_try.is_cancelled() {
            return;
        }
        let Ok(sending) = self.sending_stored.clone().try_lock_owned() else { return };
        let lane = self.clone();
        self.tasks.spawn(async move {
            lane.send_until_empty(&spool, begin).await;
            drop(sending);
            // Whoever stored something meanwhile found this task at work.
            lane.send_stored(Begin::AfterRest);
        });
    }

    /// Sends what is stored until there is nothing more, or until it failed at the stop.
    async fn send_until_empty(&self, spool: &Spool, begin: Begin) {
        let retry = self.sender.retry.unwrap_or_default();
        let mut backoff = Backoff::new(Retry { longest: Duration::ZERO, ..retry });
        let mut rests = begin == Begin::AfterRest;
        loop {
            if rests {
                let pause = backoff.next(Duration::ZERO, None, fastrand::f64()).unwrap_or(retry.largest);
                self.rest(pause.max(SHORTEST_REST)).await;
            }
            let sent = self.send_all(spool).await;
            let problem = sent.err().map(|refusal| refusal.message);
            spool.settle(problem.clone());
            let Some(problem) = problem else { return };
            self.sender.context.failed(&format!("what is stored stays there: {problem}"));
            if self.sender.stop.last_try.is_cancelled() {
                return;
            }
            rests = true;
        }
    }

    /// Waits for the pause, or until there is a reason to try sooner.
    async fn rest(&self, pause: Duration) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.taken.notified() => {}
            () = self.sender.stop.last_try.cancelled() => {}
        }
    }

    /// Sends one stored request after the other; an error at the first that stays where it is.
    async fn send_all(&self, spool: &Spool) -> Result<(), Refusal> {
        while let Some(entry) = spool.oldest() {
            self.send_entry(spool, &entry).await?;
        }
        Ok(())
    }

    /// Sends one stored request; an error if it stays where it is.
    async fn send_entry(&self, spool: &Spool, entry: &std::path::Path) -> Result<(), Refusal> {
        let (context, signal) = (&self.sender.context, self.sender.signal);
        let payload = match spool.read(entry, signal).await {
            Ok(payload) => payload,
            Err(error) => {
                self.name(&format!("cannot read {}: {error}; it stays there", entry.display()));
                spool.skip(entry);
                return Ok(());
            }
        };
        let items = payload.item_count();
        match self.sender.send(payload).await {
            Ok(()) => {}
            Err(refusal) if refusal.is_worth_keeping() => return Err(refusal),
            Err(refusal) => context.count_dropped(signal, items, &refusal),
        }
        context.counters.take_back(&context.name, signal, &Tally::Stored, items);
        if let Err(error) = spool.remove(entry) {
            let again = "its fate is known, but a later start would send it again: remove it";
            self.name(&format!("cannot remove {}: {error}; {again}", entry.display()));
        }
        Ok(())
    }

    /// Says what a person has to look at: each file is named.
    fn name(&self, what: &str) {
        let context = &self.sender.context;
        context.log.error(what);
        context.counters.set_last_error(&format!("{}: {what}", context.name));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use bytes::Bytes;
    use futures_util::FutureExt as _;

    use super::super::outcome::{Outcome, PartialSuccess};
    use super::*;
    use crate::collector::own::Labels;
    use crate::collector::testing::{context, eventually, spans};

    /// Takes everything, and makes the files of a folder such that they cannot be removed; without one it never answers.
    struct Endpoint {
        folder: Option<PathBuf>,
    }

    impl Transport for Endpoint {
        fn encode(&self, _payload: &Payload) -> std::io::Result<Bytes> {
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

    fn lane(folder: Option<PathBuf>, spool: &Arc<Spool>) -> Arc<Lane> {
        let sender = Sender {
            signal: Signal::Traces,
            transport: Arc::new(Endpoint { folder }),
            retry: None,
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
            spool.put(spans(3)).await.expect("stores");
        }
        let lane = lane(Some(folder.path().to_owned()), &spool);
        lane.send_stored(Begin::AtOnce);
        lane.tasks.close();
        tokio::time::timeout(Duration::from_mins(1), lane.tasks.wait()).await.expect("comes to an end");
        let counters = &lane.sender.context.counters;
        assert_eq!(counters.total(Signal::Traces, &Tally::Sent), 3, "the other one could not be read any more");
        assert_eq!(spool.len(), 2);
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
