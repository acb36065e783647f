//! The resource of a payload, decoded, with the edits that processors make.

use bytes::Bytes;

use super::value::{AnyValue, KeyValue, Text};
use super::wire::{Reader, Writer};

/// What the telemetry is about. Shared behind an `Arc` in payloads; edit through `Arc::make_mut`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Resource {
    /// The attributes in the order of the sender; a key may repeat.
    pub attributes: Vec<KeyValue>,
    /// How many attributes the sender left out.
    pub dropped_attributes_count: u32,
    /// Entity references as wire form: whole fields of number 3.
    pub entity_refs: Bytes,
}

impl Resource {
    /// A resource with these attributes.
    pub fn new<K: Into<Text>, V: Into<AnyValue>>(attributes: impl IntoIterator<Item = (K, V)>) -> Self {
        let attributes = attributes.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect();
        Self { attributes, ..Self::default() }
    }

    /// The value of the first attribute of this name.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&AnyValue> {
        self.attributes.iter().find(|attribute| attribute.key == *key).map(|attribute| &attribute.value)
    }

    /// Adds an attribute unless the key is there already; says whether it was added.
    pub fn insert(&mut self, key: &str, value: impl Into<AnyValue>) -> bool {
        let absent = self.get(key).is_none();
        if absent {
            self.attributes.push(KeyValue::new(key, value));
        }
        absent
    }

    /// Sets an attribute that is there already; says whether it was.
    pub fn update(&mut self, key: &str, value: impl Into<AnyValue>) -> bool {
        let found = self.attributes.iter_mut().find(|attribute| attribute.key == *key);
        found.map(|attribute| attribute.value = value.into()).is_some()
    }

    /// Sets an attribute whether or not it is there.
    pub fn upsert(&mut self, key: &str, value: impl Into<AnyValue>) {
        match self.attributes.iter_mut().find(|attribute| attribute.key == *key) {
            Some(attribute) => attribute.value = value.into(),
            None => self.attributes.push(KeyValue::new(key, value)),
        }
    }

    /// Removes the first attribute of this name and gives its value.
    pub fn delete(&mut self, key: &str) -> Option<AnyValue> {
        let place = self.attributes.iter().position(|attribute| attribute.key == *key)?;
        Some(self.attributes.remove(place).value)
    }

    /// Takes up the fields of a validated Resource message. A second message of one payload adds to
    /// the first, as protobuf says.
    pub(super) fn merge(&mut self, whole: &Bytes, message: &[u8]) {
        let mut reader = Reader::new(message);
        let mut start = 0;
        let mut entity_refs = Vec::new();
        while let Ok(Some((number, value))) = reader.read() {
            match number {
                1 => self.attributes.push(KeyValue::decode(whole, value.bytes())),
                2 => self.dropped_attributes_count = value.uint32(),
                3 => entity_refs.extend_from_slice(&message[start..reader.position()]),
                _ => {}
            }
            start = reader.position();
        }
        if !entity_refs.is_empty() {
            self.entity_refs = [&self.entity_refs, entity_refs.as_slice()].concat().into();
        }
    }

    /// The same with bytes of its own. A resource shares those that it was received in, and keeps all of them: who keeps
    /// it beyond its payload keeps this instead.
    #[must_use]
    pub fn detached(&self) -> Self {
        let mut writer = Writer::new();
        self.encode(&mut writer);
        let message = writer.into_bytes();
        let mut detached = Self::default();
        detached.merge(&message, &message);
        detached
    }

    /// About how many bytes [`Resource::encode`] writes.
    pub(super) fn size(&self) -> usize {
        self.attributes.iter().map(KeyValue::size).sum::<usize>() + self.entity_refs.len() + 4
    }

    /// Writes the content of a Resource message.
    pub fn encode(&self, writer: &mut Writer) {
        for attribute in &self.attributes {
            writer.message_field(1, |inner| attribute.encode(inner));
        }
        if self.dropped_attributes_count != 0 {
            writer.varint_field(2, self.dropped_attributes_count.into());
        }
        writer.raw(&self.entity_refs);
    }
}
