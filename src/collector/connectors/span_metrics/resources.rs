//! The resources that are counted for: so many, the least recently seen go first.

use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;

use super::series::Table;
use crate::otlp::Resource;

/// What is counted for one resource.
pub(super) struct OfResource {
    /// The first resource of this key.
    pub resource: Arc<Resource>,
    pub calls: Table,
    /// `None`: the series of the calls have their durations.
    pub durations: Option<Table>,
    pub events: Table,
    /// When its last span came, in nanoseconds since the epoch.
    pub last_seen: u64,
}

/// All resources. One that has to go is handed on once more, and comes back if a span of it comes before that.
pub(super) struct Resources {
    kept: LruCache<Vec<u8>, OfResource>,
    going: LruCache<Vec<u8>, OfResource>,
}

impl Resources {
    /// Room for so many.
    pub fn new(size: NonZeroUsize) -> Self {
        Self { kept: LruCache::new(size), going: LruCache::unbounded() }
    }

    /// The resource of this key; `make` makes it if it is new.
    pub fn get(&mut self, key: &[u8], make: impl FnOnce() -> OfResource) -> Option<&mut OfResource> {
        if !self.kept.contains(key) {
            let of = self.going.pop(key).unwrap_or_else(make);
            if let Some((gone, of)) = self.kept.push(key.to_vec(), of) {
                self.going.put(gone, of);
            }
        }
        self.kept.get_mut(key)
    }

    /// All of them, the least recently seen first, those that go last.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &OfResource)> {
        let kept = self.kept.iter().rev().map(|(key, of)| (key.as_slice(), of));
        kept.chain(self.going.iter().rev().map(|(key, of)| (key.as_slice(), of)))
    }

    /// All that stay, to be changed.
    pub fn kept_mut(&mut self) -> impl Iterator<Item = &mut OfResource> {
        self.kept.iter_mut().map(|(_, of)| of)
    }

    /// Those that had to go have been handed on.
    pub fn forget_going(&mut self) {
        self.going.clear();
    }

    /// Those that had no span since `then` have to go.
    pub fn expire(&mut self, then: u64) {
        let old: Vec<Vec<u8>> =
            self.kept.iter().rev().filter(|(_, of)| of.last_seen <= then).map(|(key, _)| key.clone()).collect();
        for key in old {
            if let Some(of) = self.kept.pop(&key) {
                self.going.put(key, of);
            }
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.kept.clear();
        self.going.clear();
    }
}
