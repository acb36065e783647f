//! A label set that is being changed.

use std::collections::{HashMap, HashSet};

use super::super::record::Labels;

/// Changes on top of a label set. A label without a value is none.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    base: Labels,
    /// By name: when it was added, and its value.
    added: HashMap<String, (usize, String)>,
    removed: HashSet<String>,
    changes: usize,
}

impl Builder {
    /// No changes yet, but labels of `base` that have no value are gone.
    #[must_use]
    pub fn new(base: Labels) -> Self {
        let removed = base.iter().filter(|(_, value)| value.is_empty()).map(|(name, _)| name.to_owned()).collect();
        Self { base, added: HashMap::new(), removed, changes: 0 }
    }

    /// The value of a label; an absent one has the empty value.
    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        match self.added.get(name) {
            Some((_, value)) => value,
            None if self.removed.contains(name) => "",
            None => self.base.get(name),
        }
    }

    /// Gives a label this value, whatever it was; the empty value removes it.
    pub fn set(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            self.remove(name);
        } else if let Some((_, known)) = self.added.get_mut(name) {
            value.clone_into(known);
        } else {
            self.added.insert(name.to_owned(), (self.changes, value.to_owned()));
            self.changes += 1;
        }
    }

    /// Removes a label, be it there or not.
    pub fn remove(&mut self, name: &str) {
        self.added.remove(name);
        self.removed.insert(name.to_owned());
    }

    /// What stands now: first what was not changed, by name, then the rest in the order of the changes.
    #[must_use]
    pub fn list(&self) -> Vec<(String, String)> {
        let kept = |(name, _): &(&str, &str)| !self.removed.contains(*name) && !self.added.contains_key(*name);
        let base = self.base.iter().filter(kept).map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut added: Vec<(&String, &(usize, String))> = self.added.iter().collect();
        added.sort_unstable_by_key(|(_, (when, _))| *when);
        base.chain(added.into_iter().map(|(name, (_, value))| (name.clone(), value.clone()))).collect()
    }

    /// The label set. Of a name that stood twice, only the first was changed: it still stands twice.
    #[must_use]
    pub fn finish(mut self) -> Labels {
        if self.added.is_empty() && self.removed.is_empty() {
            return self.base;
        }
        let mut list = Vec::new();
        for (name, value) in self.base.iter().filter(|(name, _)| !self.removed.contains(*name)) {
            let changed = self.added.remove(name).map(|(_, value)| value);
            list.push((name.to_owned(), changed.unwrap_or_else(|| value.to_owned())));
        }
        list.extend(self.added.into_iter().map(|(name, (_, value))| (name, value)));
        Labels::new(list)
    }
}
