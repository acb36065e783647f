//! The exporter: a sender and a queue for each signal.
//!
//! A payload in the queue is a task that waits for its turn, so the queue needs no thread and costs nothing while it is
//! empty. Turns are given in order, but as many are under way as there are consumers, so requests may overtake.

use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::client;
use super::config::{Queue, Settings};
use super::sender::{Sender, Stop, given_up};
use crate::collector::component::{Built, Consumer, Context, Exporter, Refusal, Running, until};
use crate::diag::Problem;
use crate::otlp::{Payload, Signal};

impl Exporter for Settings {
    fn start(mut self: Box<Self>, context: Context, signals: &[Signal]) -> BoxFuture<'static, Result<Built, Problem>> {
        let signals = signals.to_vec();
        Box::pin(async move {
            let client = client::build(&mut self)?;
            let stop = Stop::default();
            let mut lanes: [Option<Arc<Lane>>; 3] = [None, None, None];
            for signal in signals {
                let Some(url) = self.urls[signal as usize].clone() else {
                    let word = signal.name();
                    let problem = Problem::new(format!("there is no endpoint for {word}"));
                    return Err(problem.hint(format!("set `endpoint` or `{word}_endpoint`")));
                };
                let sender = Arc::new(Sender {
                    signal,
                    client: client.clone(),
                    url,
                    headers: self.headers.clone(),
                    gzip: self.gzip,
                    json: self.json,
                    timeout: self.timeout,
                    retry: self.retry,
                    context: context.clone(),
                    stop: stop.clone(),
                });
                lanes[signal as usize] = Some(Arc::new(Lane::new(sender, self.queue)));
            }
            let running = Box::new(Lanes { lanes: lanes.iter().flatten().cloned().collect(), stop });
            Ok(Built { consumer: Arc::new(Entrance { lanes }), running })
        })
    }
}

struct Entrance {
    lanes: [Option<Arc<Lane>>; 3],
}

impl Consumer for Entrance {
    fn consume(&self, payload: Payload) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move {
            match &self.lanes[payload.signal as usize] {
                Some(lane) => lane.clone().take(payload).await,
                None => Err(Refusal::permanent("no_endpoint", "no endpoint for this signal")),
            }
        })
    }
}

/// One signal's sender with its queue.
struct Lane {
    sender: Arc<Sender>,
    queue: Option<QueueState>,
    tasks: TaskTracker,
}

struct QueueState {
    /// Room for requests that wait or are under way.
    room: Arc<Semaphore>,
    /// Turns to be under way.
    turns: Arc<Semaphore>,
    block: bool,
}

impl Lane {
    fn new(sender: Arc<Sender>, queue: Option<Queue>) -> Self {
        let queue = queue.map(|queue| QueueState {
            room: Arc::new(Semaphore::new(queue.size)),
            turns: Arc::new(Semaphore::new(queue.consumers)),
            block: queue.block,
        });
        Self { sender, queue, tasks: TaskTracker::new() }
    }

    async fn take(self: Arc<Self>, payload: Payload) -> Result<(), Refusal> {
        if payload.item_count() == 0 && payload.resources.is_empty() {
            return Ok(());
        }
        let Some(queue) = &self.queue else { return self.sender.clone().send(payload).await };
        let room = if queue.block {
            queue.room.clone().acquire_owned().await.ok()
        } else {
            queue.room.clone().try_acquire_owned().ok()
        };
        let Some(room) = room else {
            return Err(Refusal::retryable("queue_full", "the sending queue is full"));
        };
        let turns = queue.turns.clone();
        self.tasks.spawn(wait_and_send(self.sender.clone(), payload, turns, room));
        Ok(())
    }
}

async fn wait_and_send(sender: Arc<Sender>, payload: Payload, turns: Arc<Semaphore>, room: OwnedSemaphorePermit) {
    let items = payload.item_count();
    let owed = sender.context.owe(sender.signal, items);
    let turn = tokio::select! {
        turn = turns.acquire_owned() => turn.ok(),
        () = sender.stop.abandon.cancelled() => None,
    };
    let result = if turn.is_some() { sender.clone().send(payload).await } else { Err(given_up()) };
    owed.settled();
    if let Err(refusal) = result {
        sender.context.count_dropped(sender.signal, items, &refusal);
    }
    drop((turn, room));
}

struct Lanes {
    lanes: Vec<Arc<Lane>>,
    stop: Stop,
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
