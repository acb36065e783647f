//! What one signal could not send: put on disk, counted, and sent later.
//!
//! As long as something is stored, one task tries to send it, the oldest first: at once when the endpoint has taken
//! something, by the back-off otherwise, and once more at the stop.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, Notify};
use tokio_util::task::TaskTracker;

use super::backoff::{Backoff, Retry};
use super::sender::Sender;
use crate::collector::component::Refusal;
use crate::collector::counters::Tally;
use crate::collector::items::counted_items;
use crate::collector::owed::Owed;
use crate::collector::storage::Spool;
use crate::otlp::Payload;

/// Between two tries, whatever the back-off says.
const SHORTEST_REST: Duration = Duration::from_millis(50);

/// When sending begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    AtOnce,
    AfterRest,
}

/// The storage of one signal.
pub(super) struct Store {
    sender: Arc<Sender>,
    spool: Arc<Spool>,
    /// What a stop waits for.
    tasks: TaskTracker,
    /// Held by the one task that sends what is stored.
    sending: Arc<Mutex<()>>,
    /// Ends that task's rest.
    taken: Notify,
}

impl Store {
    /// Sends nothing yet.
    pub fn new(sender: Arc<Sender>, spool: Arc<Spool>, tasks: TaskTracker) -> Arc<Self> {
        Arc::new(Self { sender, spool, tasks, sending: Arc::default(), taken: Notify::new() })
    }

    /// Keeps what a queue does not take. Whoever gives up waiting does not end it.
    pub async fn keep_whatever_comes(self: &Arc<Self>, payload: Payload, refusal: Refusal) {
        let store = self.clone();
        let task = self.tasks.spawn(async move {
            let items = payload.item_count();
            let owed = store.sender.context.owe(store.sender.signal, items);
            if !store.keep(payload, &refusal, owed).await {
                store.sender.meter.not_queued.add(items);
            }
        });
        // It fails only if it panicked, and then what is owed is counted.
        let _ = task.await;
    }

    /// Keeps what is owed and was refused, and counts it; what cannot be stored either is dropped. Whether it is kept.
    pub async fn keep(self: &Arc<Self>, payload: Payload, why: &Refusal, owed: Owed) -> bool {
        let (context, signal, items) = (&self.sender.context, self.sender.signal, payload.item_count());
        let put = self.spool.put(payload).await;
        owed.settled();
        let kept = put.is_ok();
        match put {
            Ok(put) => {
                // It is counted before anybody can send it, who takes it out of the count.
                context.count(signal, Tally::Stored, items);
                self.spool.add(put);
                context.failed(&format!("stored {} ({}): {}", counted_items(signal, items), why.reason, why.message));
                self.send(Begin::AfterRest);
            }
            Err(error) => {
                let message = format!("{}; and it cannot be stored: {error}", why.message);
                context.count_dropped(signal, items, &Refusal { message, ..why.clone() });
            }
        }
        kept
    }

    /// Sees to it that what is stored is being sent, at once or after a rest.
    pub fn send(self: &Arc<Self>, begin: Begin) {
        if self.spool.is_empty() {
            return;
        }
        if begin == Begin::AtOnce {
            self.taken.notify_waiters();
        } else if self.sender.stop.last_try.is_cancelled() {
            return;
        }
        let Ok(sending) = self.sending.clone().try_lock_owned() else { return };
        let store = self.clone();
        self.tasks.spawn(async move {
            store.send_until_empty(begin).await;
            drop(sending);
            // Whoever stored something meanwhile found this task at work.
            store.send(Begin::AfterRest);
        });
    }

    /// Sends what is stored until there is nothing more, or until it failed at the stop.
    async fn send_until_empty(&self, begin: Begin) {
        let retry = self.sender.retry.unwrap_or_default();
        let mut backoff = Backoff::new(Retry { longest: Duration::ZERO, ..retry });
        let mut rests = begin == Begin::AfterRest;
        let mut own_fault = false;
        loop {
            if rests {
                let pause = backoff.next(Duration::ZERO, None, fastrand::f64()).unwrap_or(retry.largest);
                self.rest(pause.max(SHORTEST_REST), own_fault).await;
            }
            let before = self.spool.len();
            let refusal = self.send_all().await.err();
            self.spool.settle(refusal.as_ref().map(|refusal| refusal.message.clone()));
            let Some(refusal) = refusal else { return };
            self.sender.context.failed(&format!("what is stored stays there: {}", refusal.message));
            own_fault = refusal.of_sender;
            if self.sender.stop.last_try.is_cancelled() {
                return;
            }
            if self.spool.len() < before {
                // The endpoint took some of it.
                backoff = Backoff::new(Retry { longest: Duration::ZERO, ..retry });
            }
            rests = true;
        }
    }

    /// Waits for the pause, or until there is a reason to try sooner. Whoever was refused for who it is (a token, an address)
    /// learns nothing from what the endpoint takes of others.
    async fn rest(&self, pause: Duration, own_fault: bool) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.taken.notified(), if !own_fault => {}
            () = self.sender.stop.last_try.cancelled() => {}
        }
    }

    /// Sends one stored request after the other; an error at the first that stays where it is.
    async fn send_all(&self) -> Result<(), Refusal> {
        while let Some(entry) = self.spool.oldest() {
            self.send_entry(&entry).await?;
        }
        Ok(())
    }

    /// Sends one stored request; an error if it stays where it is.
    async fn send_entry(&self, entry: &Path) -> Result<(), Refusal> {
        let (context, signal) = (&self.sender.context, self.sender.signal);
        let payload = match self.spool.read(entry, signal).await {
            Ok(payload) => payload,
            Err(error) => {
                self.name(&format!("cannot read {}: {error}; it stays there", entry.display()));
                self.spool.skip(entry);
                return Ok(());
            }
        };
        let items = payload.item_count();
        match self.sender.send(payload).await {
            Ok(()) => {}
            Err(refusal) if refusal.is_worth_keeping() => return Err(refusal),
            Err(refusal) => {
                self.sender.meter.failed.add(items);
                context.count_dropped(signal, items, &refusal);
            }
        }
        context.counters.take_back(&context.name, signal, &Tally::Stored, items);
        if let Err(error) = self.spool.remove(entry) {
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
