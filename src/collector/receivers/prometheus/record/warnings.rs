//! What is said of pages that were not refused: once, and of one scrape only so much.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::diag::counted;

/// Of one scrape so many are said.
const MOST: usize = 10;

/// Of one target so many are said.
const MOST_SAID: usize = 1000;

/// The warnings of one scrape.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    list: Vec<String>,
    more: usize,
    any: bool,
}

/// Hashes of what was said of a target: the texts may be long.
#[derive(Debug, Default)]
pub(super) struct Said(HashSet<u64>);

impl Warnings {
    /// One more, unless it has been said.
    pub fn add(&mut self, said: &Said, text: String) {
        self.any = true;
        if said.0.len() >= MOST_SAID || said.0.contains(&hash(&text)) || self.list.contains(&text) {
            return;
        }
        if self.list.len() < MOST {
            self.list.push(text);
        } else {
            self.more += 1;
        }
    }

    /// Whether there was nothing to be said, or to be said again.
    pub fn is_empty(&self) -> bool {
        !self.any
    }

    /// The scrape has failed: that is what is said.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// What is to be said; it is said now.
    pub fn into_said(self, said: &mut Said) -> Vec<String> {
        let Self { mut list, more, .. } = self;
        said.0.extend(list.iter().map(|text| hash(text)));
        if more > 0 {
            list.push(counted(
                more,
                "more warning of this page is not shown",
                "more warnings of this page are not shown",
            ));
        }
        list
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
