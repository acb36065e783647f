//! A map with an index of its keys, for those who look up or put many of them: a list alone would be searched from its
//! beginning for each.

use std::collections::HashMap;

use crate::otlp::{AnyValue, KeyValue, Text};

/// The map. Of entries of equal keys the first one counts.
#[derive(Debug, Default)]
pub(super) struct Indexed {
    entries: Vec<KeyValue>,
    places: HashMap<Text, usize>,
}

impl Indexed {
    /// The map of these entries.
    pub fn new(entries: Vec<KeyValue>) -> Self {
        let mut places = HashMap::with_capacity(entries.len());
        for (place, entry) in entries.iter().enumerate() {
            places.entry(entry.key.clone()).or_insert(place);
        }
        Self { entries, places }
    }

    /// Whether there is an entry of this key.
    pub fn has(&self, key: &Text) -> bool {
        self.places.contains_key(key)
    }

    /// Its value.
    pub fn get(&self, key: &Text) -> Option<&AnyValue> {
        self.places.get(key).map(|place| &self.entries[*place].value)
    }

    /// Its value, to be changed; it is added if it is not there.
    pub fn entry(&mut self, key: Text) -> &mut AnyValue {
        let Self { entries, places } = self;
        let place = *places.entry(key.clone()).or_insert_with(|| {
            entries.push(KeyValue { key, value: AnyValue::Empty });
            entries.len() - 1
        });
        &mut entries[place].value
    }

    /// All entries, in their order.
    pub fn entries(&self) -> &[KeyValue] {
        &self.entries
    }

    /// The same, without the index.
    pub fn into_entries(self) -> Vec<KeyValue> {
        self.entries
    }
}
