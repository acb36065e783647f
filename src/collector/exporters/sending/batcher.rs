//! Joins requests until they are large enough, or have waited long enough.

use std::sync::{Mutex, PoisonError};

use super::queue::{Batch, Sizer};
use super::room::Ticket;
use crate::otlp::Payload;

/// What is sent at once, and on whose behalf.
pub(super) struct Load {
    pub payload: Payload,
    pub tickets: Vec<Ticket>,
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
    pub fn add(&self, payload: Payload, ticket: Ticket) -> Added {
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
        let mut parts = self.settings.filled(parts);
        let last = parts.pop_if(|(_, size)| *size < self.settings.least);
        let load = |(payload, _)| Load { payload, tickets: tickets.clone() };
        let divided = (parts.into_iter().map(load).collect(), last.map(load));
        tickets.into_iter().for_each(Ticket::settle);
        divided
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Batch {
    /// Parts that are not larger than they may be, unless one item alone is, with their sizes.
    fn divide(&self, payload: Payload, parts: &mut Vec<(Payload, u64)>) {
        let size = self.sizer.measure(&payload);
        let fits = self.most == 0 || size <= self.most;
        let items = if fits { 0 } else { payload.item_count() as u64 };
        if items <= 1 {
            parts.push((payload, size));
            return;
        }
        // By bytes the items are taken to be of one size; a part in which they are larger is divided once more, and at least
        // into halves, so that this ends soon wherever the large ones stand.
        let fitting = if self.sizer == Sizer::Items { self.most } else { (items * self.most / size).min(items / 2) };
        for part in payload.into_chunks(usize::try_from(fitting).unwrap_or(usize::MAX)) {
            self.divide(part, parts);
        }
    }

    /// Joins parts that stand side by side where both fit into one.
    fn filled(&self, parts: Vec<(Payload, u64)>) -> Vec<(Payload, u64)> {
        let mut filled = Vec::<(Payload, u64)>::new();
        for (part, size) in parts {
            match filled.last_mut() {
                Some((last, filled)) if *filled + size <= self.most => {
                    last.resources.extend(part.resources);
                    *filled += size;
                }
                _ => filled.push((part, size)),
            }
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::super::room::Room;
    use super::*;
    use crate::collector::testing::spans;
    use crate::otlp::Items;

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

    /// Wherever the large items stand, no request is larger than it may be unless one item is, and none is nearly empty.
    #[test]
    fn by_bytes_large_and_small_items_fill_requests() {
        let of = |sizes: &[usize]| {
            let mut payload = spans(1);
            payload.resources[0].scopes[0].items = Items::Records(sizes.iter().map(|size| vec![0x2a; *size]).collect());
            payload
        };
        let batch = Batch { sizer: Sizer::Bytes, flush_timeout: Duration::from_secs(1), least: 0, most: 20_000 };
        for (large, place) in [(5_000, "front"), (5_000, "end"), (30_000, "front"), (30_000, "end")] {
            let mut sizes = vec![10; 20_000];
            let from = if place == "front" { 0 } else { sizes.len() - 20 };
            sizes[from..from + 20].fill(large);
            let payload = of(&sizes);
            let (whole, items) = (payload.size() as u64, payload.item_count());
            let mut parts = Vec::new();
            batch.divide(payload, &mut parts);
            let parts = batch.filled(parts);
            assert!(parts.iter().all(|(part, size)| part.size() as u64 == *size));
            let parts: Vec<Payload> = parts.into_iter().map(|(part, _)| part).collect();
            assert_eq!(parts.iter().map(Payload::item_count).sum::<usize>(), items);
            for part in &parts {
                assert!(part.size() <= 20_000 || part.item_count() == 1, "{large} at the {place}: {}", part.size());
            }
            let most = 2 * whole / 20_000 + 20;
            assert!((parts.len() as u64) < most, "{large} at the {place}: {} parts, {whole} bytes", parts.len());
        }
        // One item alone is too large, before very many small ones: this has no depth.
        let mut sizes = vec![0; 400_000];
        sizes[0] = 700_000;
        let mut parts = Vec::new();
        Batch { most: 600_000, ..batch }.divide(of(&sizes), &mut parts);
        assert_eq!(parts.iter().map(|(part, _)| part.item_count()).sum::<usize>(), 400_000);
    }
}
