//! How much may wait and be under way at once.
//!
//! Beside the configured size there is a limit in bytes, so that a queue of a thousand large requests cannot fill the memory
//! of the node. [`Ticket`]s stand for one request until all its data is decided.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, oneshot};

use super::queue::Sizer;
use crate::collector::component::Refusal;
use crate::collector::owed::lost;
use crate::otlp::Payload;

/// The most bytes that one signal's queue holds.
const MOST_BYTES: u64 = 256 << 20;

/// The room of one queue.
pub(super) struct Room {
    sizer: Sizer,
    capacity: u64,
    used: Mutex<Used>,
    freed: Notify,
}

#[derive(Default)]
struct Used {
    size: u64,
    bytes: u64,
}

impl Room {
    /// An empty room.
    pub fn new(sizer: Sizer, capacity: u64) -> Arc<Self> {
        Arc::new(Self { sizer, capacity, used: Mutex::default(), freed: Notify::new() })
    }

    /// How much of it is taken, and how much there is.
    pub fn fill(&self) -> (u64, u64) {
        (self.used.lock().unwrap_or_else(PoisonError::into_inner).size, self.capacity)
    }

    /// A ticket for the payload; if there is no room, it waits or is refused.
    pub async fn enter(self: &Arc<Self>, payload: &Payload, wait: bool) -> Result<Ticket, Refusal> {
        let (size, bytes) = (self.sizer.measure(payload), payload.size() as u64);
        if size > self.capacity {
            let message = format!("a request of {size} does not fit into a sending queue of {}", self.capacity);
            return Err(Refusal::permanent("too_large", message));
        }
        loop {
            let freed = self.freed.notified();
            if self.try_enter(size, bytes) {
                let outcome = Mutex::new(Outcome::default());
                let place = Place { room: self.clone(), size, bytes, outcome };
                return Ok(Ticket { place: Arc::new(place), settled: false });
            }
            if !wait {
                return Err(Refusal::retryable("queue_full", "the sending queue is full"));
            }
            freed.await;
        }
    }

    fn try_enter(&self, size: u64, bytes: u64) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = used.size + size <= self.capacity && (used.bytes == 0 || used.bytes + bytes <= MOST_BYTES);
        if fits {
            used.size += size;
            used.bytes += bytes;
        }
        fits
    }
}

/// One request in the room. When the last of those who hold it lets it go, its room is free and whoever waits for the
/// result has it.
struct Place {
    room: Arc<Room>,
    size: u64,
    bytes: u64,
    outcome: Mutex<Outcome>,
}

#[derive(Default)]
struct Outcome {
    waiter: Option<oneshot::Sender<Result<(), Refusal>>>,
    refusal: Option<Refusal>,
}

impl Place {
    fn outcome(&self) -> std::sync::MutexGuard<'_, Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers for a part of a request. Unless it is settled the request is refused, whatever ended its task.
pub(super) struct Ticket {
    place: Arc<Place>,
    settled: bool,
}

impl Clone for Ticket {
    /// That of another part.
    fn clone(&self) -> Self {
        Self { place: self.place.clone(), settled: false }
    }
}

impl Ticket {
    /// Gets the result of the request.
    pub fn wait(&self) -> oneshot::Receiver<Result<(), Refusal>> {
        let (sender, receiver) = oneshot::channel();
        self.place.outcome().waiter = Some(sender);
        receiver
    }

    /// Says that the part came to a good end, or that others answer for all of it.
    pub fn settle(mut self) {
        self.settled = true;
    }

    /// Says that it was refused; false if nobody waits for that.
    pub fn refuse(mut self, refusal: &Refusal) -> bool {
        self.settled = true;
        let mut outcome = self.place.outcome();
        outcome.refusal.get_or_insert_with(|| refusal.clone());
        outcome.waiter.is_some()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.settled {
            self.place.outcome().refusal.get_or_insert_with(lost);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut used = self.room.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.size -= self.size;
        used.bytes -= self.bytes;
        drop(used);
        self.room.freed.notify_waiters();
        let Outcome { waiter, refusal } = std::mem::take(&mut *self.outcome());
        if let Some(waiter) = waiter {
            // Whoever waited may have gone.
            let _ = waiter.send(refusal.map_or(Ok(()), Err));
        }
    }
}
