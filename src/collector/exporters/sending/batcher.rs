//! Joins requests until they are large enough, or have waited long enough.

use std::sync::{Arc, Mutex, PoisonError};

use super::queue::{Batch, Sizer};
use super::room::Ticket;
use crate::otlp::Payload;

/// What is sent at once, and on whose behalf.
pub(super) struct Load {
    pub payload: Payload,
    pub tickets: Vec<Arc<Ticket>>,
}

/// What waits for more.
pub(super) struct Batcher {
    pub settings: Batch,
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    load: Option<Load>,
    /// Counts the loads, so that a timer knows whether its own still waits.
    generation: u64,
}

/// What became of a request that was added.
pub(super) struct Added {
    /// Large enough to go.
    pub ready: Vec<Load>,
    /// A new load that begins to wait: it needs a timer.
    pub begun: Option<u64>,
}

impl Batcher {
    pub fn new(settings: Batch) -> Self {
        Self { settings, pending: Mutex::default() }
    }

    /// Adds a request.
    pub fn add(&self, payload: Payload, ticket: Arc<Ticket>) -> Added {
        let mut pending = self.pending();
        let waited = pending.load.is_some();
        let load = match pending.load.take() {
            None => Load { payload, tickets: vec![ticket] },
            Some(mut load) => {
                load.payload.resources.extend(payload.resources);
                load.tickets.push(ticket);
                load
            }
        };
        let (ready, rest) = self.divide(load);
        // What is left has a timer only if it is the load that had one before.
        let begun = rest.is_some() && (!waited || !ready.is_empty());
        if begun {
            pending.generation += 1;
        }
        pending.load = rest;
        Added { ready, begun: begun.then_some(pending.generation) }
    }

    /// The load of a timer, if it still waits.
    pub fn take(&self, generation: u64) -> Option<Load> {
        let mut pending = self.pending();
        if pending.generation == generation { pending.load.take() } else { None }
    }

    /// What is large enough to go, and what waits on.
    fn divide(&self, load: Load) -> (Vec<Load>, Option<Load>) {
        let Load { payload, tickets } = load;
        let mut parts = Vec::new();
        self.settings.divide(payload, &mut parts);
        let last = parts.pop_if(|last| self.settings.sizer.measure(last) < self.settings.least);
        let load = |payload| Load { payload, tickets: tickets.clone() };
        (parts.into_iter().map(load).collect(), last.map(load))
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Batch {
    /// Parts that are not larger than they may be, unless one item alone is.
    fn divide(&self, payload: Payload, parts: &mut Vec<Payload>) {
        let (size, items) = (self.sizer.measure(&payload), payload.item_count() as u64);
        if self.most == 0 || size <= self.most || items <= 1 {
            parts.push(payload);
            return;
        }
        // By bytes the items are taken to be of one size; a part in which they are larger is divided once more.
        let fitting = if self.sizer == Sizer::Items { self.most } else { items * self.most / size };
        for part in payload.into_chunks(usize::try_from(fitting.min(items - 1)).unwrap_or(usize::MAX)) {
            self.divide(part, parts);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::room::Room;
    use super::*;
    use crate::collector::testing::spans;

    async fn add(batcher: &Batcher, room: &Arc<Room>, count: usize) -> (Vec<usize>, bool) {
        let payload = spans(count);
        let ticket = room.enter(&payload, false).await.expect("room");
        let added = batcher.add(payload, ticket);
        (added.ready.iter().map(|load| load.payload.item_count()).collect(), added.begun.is_some())
    }

    #[tokio::test]
    async fn requests_are_joined_and_divided() {
        let flush_timeout = Duration::from_secs(1);
        let batcher = Batcher::new(Batch { sizer: Sizer::Items, flush_timeout, least: 5, most: 7 });
        let room = Room::new(Sizer::Items, 100);
        assert_eq!(add(&batcher, &room, 3).await, (vec![], true));
        assert_eq!(add(&batcher, &room, 1).await, (vec![], false));
        assert_eq!(add(&batcher, &room, 2).await, (vec![6], false));
        assert_eq!(add(&batcher, &room, 17).await, (vec![7, 7], true));
        assert_eq!(batcher.take(2).expect("the rest").payload.item_count(), 3);
        assert!(batcher.take(1).is_none());
        assert!(room.enter(&spans(100), false).await.is_ok(), "all room is free again");
    }
}
