//! What one signal could not send: put on disk, counted, and sent later.
//!
//! As long as something is stored, one task tries to send it, the oldest first: at once when the endpoint has taken
//! something, by the back-off otherwise, and once more at the stop. A request that the endpoint does not take keeps no other
//! one back: each is tried once in a [`Round`], and the pauses are those of rounds.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::backoff::{Backoff, Retry};
use super::sender::{Sender, Untaken};
use crate::collector::component::Refusal;
use crate::collector::counters::Tally;
use crate::collector::items::counted_items;
use crate::collector::owed::Owed;
use crate::collector::storage::Spool;
use crate::otlp::Payload;

/// So many in a row end a round in which the endpoint took nothing yet: it is the endpoint that is at fault, not they, and to
/// read all that is stored again and again would only cost time.
pub(super) const MOST_IN_VAIN: usize = 8;

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
        let retry = Retry { longest: Duration::ZERO, ..self.sender.retry.unwrap_or_default() };
        let mut backoff = Backoff::new(retry);
        let mut progress = Instant::now();
        let mut round = Round::default();
        let mut rests = begin == Begin::AfterRest;
        let mut put_off = BTreeSet::new();
        loop {
            if rests {
                let pause = backoff.next(Duration::ZERO, round.pause, fastrand::f64()).unwrap_or(retry.largest);
                self.rest(pause, round.own_fault).await;
            }
            // A round that a stop finds half done is followed by a whole one.
            let last = self.sender.stop.last_try.is_cancelled();
            round = self.round(round.next, &mut put_off).await;
            if round.decided {
                (backoff, progress) = (Backoff::new(retry), Instant::now());
            }
            rests = round.why.is_some();
            let Some(why) = &round.why else {
                if self.spool.is_empty() {
                    self.spool.settle(None);
                    return;
                }
                // It came while the others were sent.
                continue;
            };
            self.sender.context.failed(&format!("what is stored stays there: {why}"));
            if last || round.own_fault || self.is_long(progress.elapsed()) {
                self.spool.settle(Some(why.clone()));
            }
            if last {
                return;
            }
        }
    }

    /// Whether whoever waits for an end has waited long enough: as long as for one request.
    fn is_long(&self, time: Duration) -> bool {
        self.sender.retry.is_none_or(|retry| !retry.longest.is_zero() && time >= retry.longest)
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

    /// Tries what is stored: each request once, in order, but first those from `first` on, as long as nothing is taken.
    /// `put_off`: those for which the endpoint asked for a pause come after the others, which it may take without one.
    async fn round(&self, first: Option<PathBuf>, put_off: &mut BTreeSet<PathBuf>) -> Round {
        let mut round = Round::default();
        let mut stayed = Vec::new();
        let mut files = self.spool.files(first.as_deref()).into_iter();
        while let Some(file) = files.next() {
            match self.send_file(&file).await {
                Fate::Unreadable => {}
                Fate::Decided if round.decided => {}
                Fate::Decided => {
                    round.decided = true;
                    let mut all = self.spool.files(None);
                    all.retain(|file| !stayed.contains(file));
                    all.sort_by_key(|file| put_off.contains(file));
                    files = all.into_iter();
                }
                Fate::Stays(Untaken { refusal, pause, .. }) => {
                    (round.own_fault, round.pause) = (refusal.of_sender, pause);
                    round.why.get_or_insert(refusal.message);
                    put_off.extend(pause.map(|_| file.clone()));
                    stayed.push(file);
                    // Of other requests it would say the same.
                    let of_all = refusal.of_sender || pause.is_some() || self.sender.stop.abandon.is_cancelled();
                    if of_all || !round.decided && stayed.len() >= MOST_IN_VAIN {
                        round.next = files.next();
                        break;
                    }
                }
            }
        }
        round
    }

    /// Tries to send one stored request.
    async fn send_file(&self, file: &Path) -> Fate {
        let (context, signal) = (&self.sender.context, self.sender.signal);
        let payload = match self.spool.read(file, signal).await {
            Ok(payload) => payload,
            Err(error) => {
                self.name(&format!("cannot read {}: {error}; it stays there", file.display()));
                self.spool.skip(file);
                return Fate::Unreadable;
            }
        };
        let items = payload.item_count();
        match self.sender.send_once(payload).await {
            Ok(()) => {}
            Err(untaken) if untaken.refusal.is_worth_keeping() => return Fate::Stays(untaken),
            Err(untaken) => {
                self.sender.meter.failed.add(items);
                context.count_dropped(signal, items, &untaken.refusal);
            }
        }
        context.counters.take_back(&context.name, signal, &Tally::Stored, items);
        if let Err(error) = self.spool.remove(file) {
            let again = "its fate is known, but a later start would send it again: remove it";
            self.name(&format!("cannot remove {}: {error}; {again}", file.display()));
        }
        Fate::Decided
    }

    /// Says what a person has to look at: each file is named.
    fn name(&self, what: &str) {
        let context = &self.sender.context;
        context.log.error(what);
        context.counters.set_last_error(&context.name, what, context.log.secrets());
    }
}

/// What came of trying all that is stored.
#[derive(Default)]
struct Round {
    /// Why something stays; the first of the reasons.
    why: Option<String>,
    /// Whether the endpoint decided about something: it is there.
    decided: bool,
    /// Whether this sender is refused, and not the data.
    own_fault: bool,
    /// What the endpoint asked for.
    pause: Option<Duration>,
    /// Where the next one begins, as this one broke off there.
    next: Option<PathBuf>,
}

/// What became of one stored request.
enum Fate {
    /// Sent, or dropped.
    Decided,
    Unreadable,
    Stays(Untaken),
}
