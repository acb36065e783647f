//! Edits: one message whose fields are read from its wire form and written anew one by one. What nobody
//! changes is copied as it stands when the edit is finished, unknown fields included.

use bytes::Bytes;

use super::value::{AnyValue, KeyValue, Text, slice};
use super::view::Attributes;
use super::wire::{Reader, Value, Writer, fields};

/// A message being edited. Making one costs nothing; reading looks through the top level of the message.
///
/// Where a field stands twice, the last one counts, and messages are joined, as protobuf says.
#[derive(Debug, Clone, Default)]
pub struct Edit {
    message: Bytes,
    /// By number: the fields that stand instead of those of the message; none if they were removed.
    changed: Vec<(u32, Vec<u8>)>,
    /// By number: lists of attributes that were changed.
    lists: Vec<(u32, Vec<KeyValue>)>,
}

impl Edit {
    /// An edit of a validated message.
    #[must_use]
    pub fn new(message: Bytes) -> Self {
        Self { message, changed: Vec::new(), lists: Vec::new() }
    }

    /// Whether something was changed.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        !self.changed.is_empty() || !self.lists.is_empty()
    }

    /// The message with its changes.
    #[must_use]
    pub fn finish(&self) -> Bytes {
        if !self.is_changed() {
            return self.message.clone();
        }
        let mut writer = Writer::with_capacity(self.message.len() + 64);
        let mut reader = Reader::new(&self.message);
        let (mut start, mut kept) = (0, 0..0);
        while let Ok(Some((number, _))) = reader.read() {
            if self.replaced(number) {
                writer.raw(&self.message[kept]);
                kept = reader.position()..reader.position();
            } else {
                kept = if kept.end == start { kept.start..reader.position() } else { start..reader.position() };
            }
            start = reader.position();
        }
        writer.raw(&self.message[kept]);
        for (_, field) in &self.changed {
            writer.raw(field);
        }
        for (number, attributes) in &self.lists {
            for attribute in attributes {
                writer.message_field(*number, |inner| attribute.encode(inner));
            }
        }
        writer.into_bytes()
    }

    fn replaced(&self, number: u32) -> bool {
        self.written(number).is_some() || self.list(number).is_some()
    }

    fn written(&self, number: u32) -> Option<&[u8]> {
        self.changed.iter().find(|(of, _)| *of == number).map(|(_, field)| field.as_slice())
    }

    fn list(&self, number: u32) -> Option<&[KeyValue]> {
        self.lists.iter().find(|(of, _)| *of == number).map(|(_, list)| list.as_slice())
    }

    /// The bytes in which fields of this number stand.
    fn source(&self, number: u32) -> &[u8] {
        self.written(number).unwrap_or(&self.message)
    }

    fn each(&self, number: u32) -> impl Iterator<Item = Value<'_>> {
        fields(self.source(number)).filter(move |(of, _)| *of == number).map(|(_, value)| value)
    }

    /// The last of the fields of this number.
    #[must_use]
    pub fn last(&self, number: u32) -> Option<Value<'_>> {
        self.each(number).last()
    }

    /// Of several fields of which one is set, the number of the last one.
    #[must_use]
    pub fn last_of(&self, numbers: &[u32]) -> Option<u32> {
        if let Some((number, _)) =
            self.changed.iter().rev().find(|(of, field)| numbers.contains(of) && !field.is_empty())
        {
            return Some(*number);
        }
        let known = |(number, _): (u32, Value<'_>)| Some(number).filter(|number| numbers.contains(number));
        fields(&self.message).filter_map(known).filter(|number| self.written(*number).is_none()).last()
    }

    /// The number or its bits; 0 where the field is not there.
    #[must_use]
    pub fn bits(&self, number: u32) -> u64 {
        self.last(number).map_or(0, Value::bits)
    }

    /// The bytes of a text, id or message; empty where the field is not there.
    #[must_use]
    pub fn bytes(&self, number: u32) -> &[u8] {
        self.last(number).map_or(&[], Value::bytes)
    }

    /// The text of a field, shared with the message.
    #[must_use]
    pub fn text(&self, number: u32) -> Text {
        self.last(number).map_or_else(Text::default, |value| slice(&self.message, value).into())
    }

    /// A message that stands at most once; what stands several times is joined.
    #[must_use]
    pub fn inner(&self, number: u32) -> Bytes {
        let mut all = self.each(number);
        let Some(first) = all.next() else { return Bytes::new() };
        let Some(second) = all.next() else { return slice(&self.message, first) };
        let mut joined = [first.bytes(), second.bytes()].concat();
        all.for_each(|value| joined.extend_from_slice(value.bytes()));
        joined.into()
    }

    /// The messages of a list.
    #[must_use]
    pub fn messages(&self, number: u32) -> Vec<Bytes> {
        self.each(number).map(|value| slice(&self.message, value)).collect()
    }

    /// The numbers of a list of fixed64 or double, packed or not, as bits.
    #[must_use]
    pub fn fixed64s(&self, number: u32) -> Vec<u64> {
        let mut numbers = Vec::new();
        for value in self.each(number) {
            match value {
                Value::Bytes(packed) => {
                    numbers.extend(packed.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)));
                }
                other => numbers.push(other.bits()),
            }
        }
        numbers
    }

    /// The numbers of a list of varints, packed or not.
    #[must_use]
    pub fn varints(&self, number: u32) -> Vec<u64> {
        let mut numbers = Vec::new();
        for value in self.each(number) {
            match value {
                Value::Bytes(packed) => {
                    let mut reader = Reader::new(packed);
                    while reader.position() < packed.len()
                        && let Ok(number) = reader.varint()
                    {
                        numbers.push(number);
                    }
                }
                other => numbers.push(other.bits()),
            }
        }
        numbers
    }

    /// Puts what `write` writes (fields of this number, or nothing) in the place of the fields of this number.
    pub fn set(&mut self, number: u32, write: impl FnOnce(&mut Writer)) {
        let mut writer = Writer::new();
        write(&mut writer);
        self.lists.retain(|(of, _)| *of != number);
        // Behind the others: of fields that exclude each other, the last one counts.
        self.changed.retain(|(of, _)| *of != number);
        self.changed.push((number, writer.into_vec()));
    }

    /// Edits the message that stands in this field; it is written even if it is empty afterwards.
    pub fn set_inner(&mut self, number: u32, edit: impl FnOnce(&mut Edit)) {
        let mut inner = Self::new(self.inner(number));
        edit(&mut inner);
        let message = inner.finish();
        self.set(number, |writer| writer.bytes_field(number, &message));
    }

    /// A list of messages in place of the fields of this number.
    pub fn set_messages(&mut self, number: u32, messages: &[Bytes]) {
        self.set(number, |writer| messages.iter().for_each(|message| writer.bytes_field(number, message)));
    }

    /// The value of the first attribute of this key, in the list of this number.
    #[must_use]
    pub fn attribute(&self, number: u32, key: &[u8]) -> Option<AnyValue> {
        if let Some(list) = self.list(number) {
            let found = list.iter().find(|attribute| attribute.key.as_bytes() == key);
            return found.map(|attribute| attribute.value.clone());
        }
        let found = Attributes::of(self.source(number), number).iter().find(|(name, _)| *name == key);
        found.map(|(_, value)| value.decode_from(&self.message))
    }

    /// The attributes of the list of this number.
    #[must_use]
    pub fn attributes(&self, number: u32) -> Vec<KeyValue> {
        match self.list(number) {
            Some(list) => list.to_vec(),
            None => self.each(number).map(|value| KeyValue::decode(&self.message, value.bytes())).collect(),
        }
    }

    /// The same, to be changed.
    pub fn attributes_mut(&mut self, number: u32) -> &mut Vec<KeyValue> {
        let place = self.lists.iter().position(|(of, _)| *of == number).unwrap_or_else(|| {
            let list = self.attributes(number);
            self.changed.retain(|(of, _)| *of != number);
            self.lists.push((number, list));
            self.lists.len() - 1
        });
        &mut self.lists[place].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::SpanView;

    fn span() -> Bytes {
        let mut writer = Writer::new();
        writer.bytes_field(1, &[1; 16]);
        writer.bytes_field(5, b"first");
        for (key, value) in [("a", 1), ("b", 2)] {
            writer.message_field(9, |inner| KeyValue::new(key, value).encode(inner));
        }
        writer.message_field(15, |status| status.bytes_field(2, b"said"));
        writer.bytes_field(5, b"last");
        writer.varint_field(99, 7);
        writer.message_field(15, |status| status.varint_field(3, 2));
        writer.into_bytes()
    }

    #[test]
    fn what_is_not_changed_stays_the_same_slice() {
        let message = span();
        let edit = Edit::new(message.clone());
        assert_eq!(edit.text(5), *"last");
        assert_eq!(edit.attribute(9, b"b"), Some(AnyValue::Int(2)));
        assert_eq!(edit.inner(15).len(), 8, "two messages are joined");
        assert!(!edit.is_changed());
        assert_eq!(edit.finish().as_ptr(), message.as_ptr());
    }

    #[test]
    fn changes_replace_all_fields_of_their_number_and_keep_the_rest() {
        let mut edit = Edit::new(span());
        edit.set(5, |writer| writer.bytes_field(5, b"new"));
        edit.attributes_mut(9).retain(|attribute| attribute.key == "b");
        edit.set_inner(15, |status| status.set(3, |writer| writer.varint_field(3, 1)));
        assert_eq!((edit.text(5), edit.attributes(9).len()), (Text::from("new"), 1));
        let message = edit.finish();
        let view = SpanView::new(&message);
        assert_eq!((view.name, view.status_code, view.trace_id), (&b"new"[..], 1, &[1; 16][..]));
        assert_eq!(view.attributes().iter().count(), 1);
        let edited = Edit::new(message);
        assert_eq!((edited.bits(99), edited.messages(15).len()), (7, 1));
        assert_eq!(Edit::new(edited.inner(15)).text(2), *"said");
    }

    #[test]
    fn one_of_several_and_lists_of_numbers() {
        let mut writer = Writer::new();
        writer.double_field(4, 1.5);
        writer.packed_fixed64(6, [1, 2].into_iter());
        writer.fixed64_field(6, 3);
        writer.packed_varint(2, [1, 300]);
        writer.varint_field(2, 5);
        let mut edit = Edit::new(writer.into_bytes());
        assert_eq!((edit.fixed64s(6), edit.varints(2)), (vec![1, 2, 3], vec![1, 300, 5]));
        assert_eq!(edit.last_of(&[4, 7]), Some(4));
        edit.set(4, |_| ());
        assert_eq!(edit.last_of(&[4, 7]), None);
        edit.set(7, |writer| writer.fixed64_field(7, 9));
        assert_eq!(edit.last_of(&[4, 7]), Some(7));
        assert_eq!(Edit::new(edit.finish()).last_of(&[4, 7]), Some(7));
    }
}
