//! Where events go.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::event::{Event, EventKind};

/// Where events go. Cheap to clone; readers must not block.
#[derive(Clone)]
pub struct Sink {
    started: Instant,
    send: Arc<dyn Fn(EventKind) + Send + Sync>,
}

impl Sink {
    /// A sink that hands each event to `send`, which must return at once. Events come in the order of their times, whoever
    /// says them.
    pub fn new(send: impl Fn(Event) + Send + Sync + 'static) -> Self {
        let started = Instant::now();
        let turn = Mutex::new(());
        let stamp = move |kind| {
            let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            let time = i64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX);
            send(Event { time, elapsed: started.elapsed(), kind });
        };
        Self { started, send: Arc::new(stamp) }
    }

    /// The same sink, until it is closed.
    #[must_use]
    pub fn closable(&self) -> (Self, Closing) {
        let closing = Closing(Arc::new(Mutex::new(false)));
        let (send, gate) = (Arc::clone(&self.send), closing.clone());
        let gated = move |kind| {
            // Held while it is sent, which returns at once.
            let closed = gate.lock();
            if !*closed {
                send(kind);
            }
        };
        (Self { started: self.started, send: Arc::new(gated) }, closing)
    }

    /// Says what happened, now.
    pub fn emit(&self, kind: EventKind) {
        (self.send)(kind);
    }

    /// How long it is since gymrun started: the clock of all events.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The same sink, for somebody whose events another one sees first; `see` must return at once.
    #[must_use]
    pub fn seen_by(&self, see: impl Fn(&EventKind) + Send + Sync + 'static) -> Self {
        let send = Arc::clone(&self.send);
        let both = move |kind| {
            see(&kind);
            send(kind);
        };
        Self { started: self.started, send: Arc::new(both) }
    }

    /// A warning about a process or the job.
    pub fn warn(&self, process: Option<&str>, message: impl Into<String>, hint: Option<String>) {
        self.emit(EventKind::Warning { process: process.map(str::to_owned), message: message.into(), hint });
    }
}

/// Closes a sink. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Closing(Arc<Mutex<bool>>);

impl Closing {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is said from now on is not heard any more, whoever is about to say it.
    pub fn close(&self) {
        *self.lock() = true;
    }
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sink").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Event, EventKind, Sink};

    #[test]
    fn events_come_in_the_order_of_their_times() {
        let (send, events) = std::sync::mpsc::channel();
        let sink = Sink::new(move |event| send.send(event).expect("somebody listens"));
        std::thread::scope(|scope| {
            for slow in [false, true, false, true] {
                let sink = sink.seen_by(move |_| {
                    if slow {
                        std::thread::yield_now();
                    }
                });
                scope.spawn(move || (0..500).for_each(|_| sink.warn(None, "now", None)));
            }
        });
        drop(sink);
        let elapsed: Vec<Duration> = events.iter().map(|event: Event| event.elapsed).collect();
        assert_eq!(elapsed.len(), 2000);
        assert!(elapsed.is_sorted());
    }

    #[test]
    fn a_sink_is_closed_at_once_whatever_its_users_wait_for() {
        let (send, events) = std::sync::mpsc::channel();
        let sink = Sink::new(move |event| send.send(event).expect("somebody listens"));
        let (own, closing) = sink.closable();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let wait = std::sync::Mutex::new(wait);
        // One who takes its time before it says anything.
        let slow = own.seen_by(move |_| {
            let _ = wait.lock().expect("nobody panics here").recv();
        });
        std::thread::scope(|scope| {
            own.warn(None, "before", None);
            scope.spawn(|| slow.warn(None, "late", None));
            closing.close();
            own.warn(None, "after", None);
            go.send(()).expect("somebody waits");
        });
        sink.warn(None, "another's", None);
        drop((sink, own, slow));
        let said: Vec<String> = events
            .iter()
            .filter_map(|event: Event| match event.kind {
                EventKind::Warning { message, .. } => Some(message),
                _ => None,
            })
            .collect();
        assert_eq!(said, ["before", "another's"]);
    }
}
