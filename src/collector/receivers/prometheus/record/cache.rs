//! The series of one target from scrape to scrape: what their texts mean, and which of them are missed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use indexmap::IndexMap;

use super::super::points::{Metadata, Origin, Series};
use super::labels::Labels;
use super::rules::Rules;

/// The cache of one target. A series is known by its text in the page.
#[derive(Debug)]
pub(super) struct Cache {
    series: IndexMap<Box<[u8]>, Cached>,
    /// Where the next series is looked for first.
    next: usize,
    /// Series that relabelling drops, with the last scrape whose page had them.
    dropped: HashMap<Box<[u8]>, u64>,
    origins: HashSet<Arc<Origin>>,
    /// The number of the current scrape, from 1 on.
    pub scrape: u64,
    size_when_good: usize,
}

/// A series with what is known of it.
#[derive(Debug)]
pub(super) struct Cached {
    pub series: Series,
    /// The last scrape whose page had it.
    pub seen: u64,
    /// The last scrape after which its absence must be said; 0 for never.
    pub tracked: u64,
    /// Whether it was ever in a point.
    pub recorded: bool,
}

impl Default for Cache {
    fn default() -> Self {
        let (series, next, dropped, origins) = Default::default();
        Self { series, next, dropped, origins, scrape: 1, size_when_good: 0 }
    }
}

impl Cache {
    /// Whether this text is known to be dropped; it is then seen in this scrape.
    pub fn is_dropped(&mut self, text: &[u8]) -> bool {
        if self.dropped.is_empty() {
            return false;
        }
        let seen = self.dropped.get_mut(text);
        let known = seen.is_some();
        if let Some(seen) = seen {
            *seen = self.scrape;
        }
        known
    }

    /// Remembers that this text is dropped.
    pub fn remember_dropped(&mut self, text: &[u8]) {
        self.dropped.insert(text.into(), self.scrape);
    }

    /// The place of a series of earlier pages or of this one. Pages keep their order, so it is mostly the one after the
    /// last.
    pub fn find(&mut self, text: &[u8]) -> Option<usize> {
        let expected = self.series.get_index(self.next).is_some_and(|(known, _)| **known == *text);
        let place = if expected { self.next } else { self.series.get_index_of(text)? };
        self.next = place + 1;
        Some(place)
    }

    /// Remembers a new series, seen in this scrape, and gives its place.
    pub fn insert(&mut self, text: &[u8], series: Series) -> usize {
        let cached = Cached { series, seen: self.scrape, tracked: 0, recorded: false };
        self.series.insert_full(text.into(), cached).0
    }

    /// The series at a place.
    pub fn at(&mut self, place: usize) -> Option<&mut Cached> {
        self.series.get_index_mut(place).map(|(_, cached)| cached)
    }

    /// A series of these labels, with its origin shared.
    pub fn with_origin(&mut self, rules: &Rules, labels: Labels) -> Series {
        let origin = Origin::of(&labels, &rules.target);
        let known = self.origins.get(&origin).cloned();
        let origin = known.unwrap_or_else(|| {
            let origin = Arc::new(origin);
            self.origins.insert(Arc::clone(&origin));
            origin
        });
        Series::new(labels, origin)
    }

    /// The series that the last scrape had and this one lacks, each label set once.
    pub fn gone(&self) -> Vec<&Series> {
        let last = self.scrape - 1;
        let missed = |cached: &&Cached| cached.tracked != 0 && cached.tracked == last;
        let missed: Vec<&Series> = self.series.values().filter(missed).map(|cached| &cached.series).collect();
        if missed.is_empty() {
            return missed;
        }
        let here = |cached: &&Cached| cached.tracked == self.scrape;
        let mut known: HashSet<u64> =
            self.series.values().filter(here).map(|cached| cached.series.identity()).collect();
        missed.into_iter().filter(|series| known.insert(series.identity())).collect()
    }

    /// Forgets what was not in a good page, and what pages that failed have piled up.
    pub fn end_scrape(&mut self, good: bool, metadata: &mut Metadata) {
        let size = self.series.len() + self.dropped.len() + metadata.size();
        if good {
            self.size_when_good = size;
        }
        if good || size > self.size_when_good * 2 + 1000 {
            let scrape = self.scrape;
            self.series.retain(|_, cached| cached.seen == scrape);
            self.dropped.retain(|_, seen| *seen == scrape);
            // An origin that no series has is held by the list alone.
            self.origins.retain(|origin| Arc::strong_count(origin) > 1);
            metadata.forget_old(scrape);
        }
        self.scrape += 1;
        self.next = 0;
    }
}
