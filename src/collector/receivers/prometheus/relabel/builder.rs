//! A label set that is being changed.

use super::super::record::Labels;

/// Changes on top of a label set. A label without a value is none.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    base: Labels,
    added: Vec<(String, String)>,
    removed: Vec<String>,
}

impl Builder {
    /// No changes yet, but labels of `base` that have no value are gone.
    #[must_use]
    pub fn new(base: Labels) -> Self {
        let removed = base.iter().filter(|(_, value)| value.is_empty()).map(|(name, _)| name.to_owned()).collect();
        Self { base, added: Vec::new(), removed }
    }

    /// The value of a label; an absent one has the empty value.
    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        match self.added.iter().find(|label| label.0 == name) {
            Some(label) => &label.1,
            None if self.removed.iter().any(|removed| removed == name) => "",
            None => self.base.get(name),
        }
    }

    /// Gives a label this value, whatever it was; the empty value removes it.
    pub fn set(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            self.remove(name);
        } else if let Some(label) = self.added.iter_mut().find(|label| label.0 == name) {
            value.clone_into(&mut label.1);
        } else {
            self.added.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Removes a label, be it there or not.
    pub fn remove(&mut self, name: &str) {
        self.added.retain(|label| label.0 != name);
        self.removed.push(name.to_owned());
    }

    /// What stands now: first what was not changed, by name, then the rest in the order of the changes.
    #[must_use]
    pub fn list(&self) -> Vec<(String, String)> {
        let kept = |(name, _): &(&str, &str)| {
            !self.removed.iter().any(|removed| removed == name) && !self.added.iter().any(|added| added.0 == *name)
        };
        let base = self.base.iter().filter(kept).map(|(name, value)| (name.to_owned(), value.to_owned()));
        base.chain(self.added.iter().cloned()).collect()
    }

    /// The label set. Of a name that stood twice, only the first was changed: it still stands twice.
    #[must_use]
    pub fn finish(self) -> Labels {
        if self.added.is_empty() && self.removed.is_empty() {
            return self.base;
        }
        let mut left: Vec<Option<(String, String)>> = self.added.into_iter().map(Some).collect();
        let mut list = Vec::new();
        for (name, value) in self.base.iter().filter(|(name, _)| !self.removed.iter().any(|removed| removed == name)) {
            let changed = left.iter_mut().find(|label| label.as_ref().is_some_and(|label| label.0 == name));
            let changed = changed.and_then(Option::take);
            list.push(changed.unwrap_or_else(|| (name.to_owned(), value.to_owned())));
        }
        list.extend(left.into_iter().flatten());
        Labels::new(list)
    }
}
